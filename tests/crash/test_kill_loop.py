"""BR-15: an idempotent librdkafka producer while the broker is killed with -9 again and again:
none lost, none twice, in order."""

import os
import subprocess
import threading
import time
import unittest

import interop_path  # noqa: F401
import brokers
import clients
import testbed

COUNT = int(os.environ.get("POLYLOG_KILL_LOOP_RECORDS", testbed.size(200_000, 1_000_000)))
SECONDS = testbed.size(20, 300)       # the records are spread over this time
KILL_EVERY = 2.0 if not brokers.is_kafka() else 10.0


class KillLoop(testbed.BrokerTest):
    def feed(self, sink):
        """Numbers, one a line, at a steady rate."""
        started, block = time.monotonic(), 1000
        for first in range(0, COUNT, block):
            ahead = first / COUNT * SECONDS - (time.monotonic() - started)
            if ahead > 0:
                time.sleep(ahead)
            sink.write(b"".join(b"%d\n" % n for n in range(first, min(first + block, COUNT))))
            sink.flush()
        sink.close()

    def test_none_lost_none_twice_in_order(self):
        topic = self.topic("numbers")
        command = ["kcat", "-b", self.broker.address, "-P", "-t", topic, "-p", "0", "-E", "-q",
                   "-X", "enable.idempotence=true", "-X", "message.timeout.ms=300000",
                   "-X", "linger.ms=5", "-X", "batch.num.messages=500",
                   "-X", "reconnect.backoff.ms=20", "-X", "reconnect.backoff.max.ms=200",
                   "-X", "retry.backoff.ms=50", "-X", "socket.timeout.ms=5000"]
        with open(self.folder / "kcat.out", "wb") as said:
            producer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said)
        self.addCleanup(producer.kill)
        feeder = threading.Thread(target=self.feed, args=(producer.stdin,), daemon=True)
        feeder.start()
        kills, starts = 0, []
        while producer.poll() is None:
            try:
                producer.wait(KILL_EVERY)
            except subprocess.TimeoutExpired:
                self.broker.kill9()
                before = time.monotonic()
                self.broker.start()
                starts.append(time.monotonic() - before)
                kills += 1
        self.assertEqual(producer.returncode, 0, (self.folder / "kcat.out").read_text()[-1500:])
        self.assertGreaterEqual(kills, SECONDS / KILL_EVERY / 2)
        got = [int(line) for line in clients.kcat_consume(self.broker, topic).split()]
        self.assert_exactly_once(got)
        print(f"{COUNT} records, {kills} kills, slowest start {max(starts):.2f} s", flush=True)

    def assert_exactly_once(self, got):
        if got == list(range(COUNT)):
            return
        twice = len(got) - len(set(got))
        lost = COUNT - len(set(got))
        first = next((n for n, value in enumerate(got) if value != n), len(got))
        self.fail(f"{lost} lost, {twice} twice, first disorder at record {first}: "
                  f"{got[max(0, first - 3):first + 5]}")


@unittest.skipIf(brokers.is_kafka(), "Kafka has one layout")
class KillLoopOnOneSharedLog(KillLoop):
    settings = {"polylog.layout": "rocketmq"}


@unittest.skipIf(brokers.is_kafka(), "Kafka has one layout")
class KillLoopOnSegments(KillLoop):
    settings = {"polylog.layout": "segment"}


if __name__ == "__main__":
    testbed.main()
