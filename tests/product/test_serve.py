"""How the broker starts, refuses to start, and stops."""

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import program
from program import BINARY, PATIENCE_SECONDS, ProductTest, Served, free_port, run, tree

NOBODY = 65534


class StartTest(ProductTest):
    def refused(self, data, *options, code=1, words=(), **run_options):
        """`serve` on `data` fails in one line and leaves what is there untouched."""
        before = tree(self.folder)
        done = run("serve", "--data", data, "--kafka", f"127.0.0.1:{free_port()}",
                   "--http", f"127.0.0.1:{free_port()}", *options, **run_options)
        line = self.check_refused(done, code, *words)
        self.assertEqual(tree(self.folder), before)
        return line

    def port_in_use(self, kafka, http):
        done = run("serve", "--data", self.folder / "data", "--kafka", kafka, "--http", http)
        self.check_refused(done, 1, "in use")
        self.assertEqual(tree(self.folder), {})

    def test_ports_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.port_in_use(address, f"127.0.0.1:{free_port()}")
            self.port_in_use(f"127.0.0.1:{free_port()}", address)

    def test_a_directory_that_another_broker_holds(self):
        broker = self.serve()
        done = run("serve", "--data", broker.data, "--kafka", f"127.0.0.1:{free_port()}",
                   "--http", f"127.0.0.1:{free_port()}")
        self.check_refused(done, 1, str(broker.data), "lock")
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)

    def test_a_directory_that_a_kafka_broker_holds(self):
        (self.folder / "data/kafka").mkdir(parents=True)
        with open(self.folder / "data/kafka/.lock", "w", encoding="utf-8") as held:
            fcntl.lockf(held, fcntl.LOCK_EX)
            self.refused(self.folder / "data", words=("data/kafka", "lock"))

    def test_a_directory_that_nobody_may_write_to(self):
        data = self.folder / "data"
        data.mkdir()
        options = {}
        if os.geteuid() == 0:
            # Root may write everywhere: the program is run by somebody else, from where he can.
            shutil.copy(BINARY, self.folder / "polylog")
            self.folder.chmod(0o755)
            data.chmod(0o755)
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            self.addCleanup(setattr, program, "BINARY", BINARY)
            program.BINARY = self.folder / "polylog"
        else:
            data.chmod(0o555)
        self.refused(data, words=(str(data), "ermission denied"), **options)
        self.refused(data / "below", words=(str(data), "ermission denied"), **options)

    def test_a_file_where_the_directory_should_be(self):
        data = self.folder / "data"
        data.write_text("precious")
        self.refused(data, words=(str(data),))
        self.refused(data / "below", words=(str(data),))
        self.assertEqual(data.read_text(), "precious")

    def test_a_foreign_directory_among_the_partitions(self):
        (self.folder / "data/kafka/holiday pictures").mkdir(parents=True)
        self.refused(self.folder / "data", words=("holiday pictures",))

    def test_a_kafka_log_directory_that_is_given_itself(self):
        (self.folder / "data/orders-0").mkdir(parents=True)
        (self.folder / "data/meta.properties").write_text("version=1\nnode.id=1\n")
        self.refused(self.folder / "data", words=("itself a Kafka log directory", "data/kafka"))

    def test_a_directory_of_another_kind(self):
        (self.folder / "data/kafka").mkdir(parents=True)
        (self.folder / "data/kafka/meta.properties").write_text("version=7\nnode.id=1\n")
        self.refused(self.folder / "data", words=("meta.properties",))

    def test_settings_that_are_wrong(self):
        data = self.folder / "data"
        self.refused(data, "--set", "log.retention.hour=1", code=2,
                     words=("log.retention.hour", "log.retention.hours"))
        self.refused(data, "--set", "num.partitions=some", code=2, words=("num.partitions",))
        self.refused(data, "--set", "num.partitions", code=2, words=("key=value",))
        self.refused(data, "--config", self.folder / "missing.toml", code=2,
                     words=("missing.toml",))
        config = self.folder / "broken.toml"
        config.write_text("[log\n")
        self.refused(data, "--config", config, code=2, words=("broken.toml",))

    def test_addresses_that_are_none(self):
        for address in ("9092", "localhost:kafka", "localhost:99999"):
            with self.subTest(address=address):
                done = run("serve", "--data", self.folder / "data", "--kafka", address)
                self.check_refused(done, 1, address.rpartition(":")[2])
        self.assertEqual(tree(self.folder), {})


class StopTest(ProductTest):
    def test_it_stops_cleanly_when_told_and_starts_again(self):
        broker = self.serve()
        lines = "".join(f"{i}\n" for i in range(100))
        for how in (signal.SIGTERM, signal.SIGINT):
            run("produce", "-t", "kept", "-b", broker.address, stdin=lines)
            self.assertEqual(broker.end(how), 0)
            self.assertTrue((broker.data / "kafka/.kafka_cleanshutdown").exists())
            broker.start()
            self.assertIn("clean stop", broker.text())
            self.assertNotIn("unclean stop", broker.text())
        got = run("consume", "-t", "kept", "-e", "-b", broker.address)
        self.assertEqual(got.stdout, lines * 2)

    def test_a_client_that_waits_does_not_keep_it_from_stopping(self):
        broker = self.serve()
        run("topic", "create", "quiet", "-b", broker.address)
        with subprocess.Popen([BINARY, "consume", "-t", "quiet", "-b", broker.address],
                              stderr=subprocess.PIPE, text=True) as reader:
            try:
                self.assertEqual(broker.end(), 0)
                self.assertEqual(reader.wait(30), 1)
                self.assertTrue(reader.stderr.read().startswith("polylog: "))
            finally:
                reader.kill()

    def test_after_a_kill_it_says_that_the_stop_was_unclean(self):
        broker = self.serve()
        run("produce", "-t", "kept", "-b", broker.address, stdin="x\n")
        broker.end(signal.SIGKILL)
        broker.start()
        self.assertIn("unclean stop", broker.text())
        self.assertEqual(run("consume", "-t", "kept", "-e", "-b", broker.address).stdout, "x\n")


class MemoryTest(ProductTest):
    def resident_mib(self, broker):
        with open(f"/proc/{broker.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) / 1024

    def test_what_a_burst_took_is_given_back(self):
        broker = self.serve()
        run("topic", "create", "burst", "-p", 32, "-b", broker.address)
        lines = "".join(f"{i:08} {'x' * 900_000}\n" for i in range(64))
        self.assertEqual(run("produce", "-t", "burst", "-b", broker.address,
                             stdin=lines).returncode, 0)
        before = self.resident_mib(broker)
        readers = [subprocess.Popen([BINARY, "consume", "-t", "burst", "-e", "-b", broker.address],
                                    stdout=subprocess.DEVNULL) for _ in range(8)]
        most = before
        while any(reader.poll() is None for reader in readers):
            most = max(most, self.resident_mib(broker))
            time.sleep(0.002)
        self.assertEqual([reader.returncode for reader in readers], [0] * 8)
        self.assertGreater(most, 30)  # or there was no burst
        until = time.monotonic() + PATIENCE_SECONDS
        while (now := self.resident_mib(broker)) > 24 and time.monotonic() < until:
            time.sleep(0.2)
        self.assertLess(now, 24, f"{before} MiB before, {most} at most")


class JournalTest(ProductTest):
    """polylog.journal, switched on and off over one directory."""

    def produced(self, broker, count):
        lines = "".join(f"{broker.port} {n}\n" for n in range(count))
        done = run("produce", "-b", broker.address, "-t", "t", stdin=lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        return lines.splitlines()

    def consumed(self, broker, count):
        done = run("consume", "-b", broker.address, "-t", "t", "-e")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), count)
        return lines

    def test_on_a_kill_on_a_clean_stop_and_off_again(self):
        settings = {"polylog.journal": "true", "polylog.journal.bytes": 1 << 20}
        broker = self.serve(settings)
        journal = broker.data / "journal/polylog.journal"
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)
        self.produced(broker, 10)  # new names
        sent = self.produced(broker, 500)
        self.assertLessEqual(journal.stat().st_size, 1 << 20)
        dumped = run("dump", "--records", journal)
        self.assertIn("write kafka/t-", dumped.stdout)
        broker.end(signal.SIGKILL)
        broker.start()
        self.assertIn("put back into", broker.text())
        self.assertEqual(self.consumed(broker, 510)[10:], sent)
        self.produced(broker, 5)
        self.assertEqual(broker.end(), 0)
        self.assertIn("writes 0", run("dump", journal).stdout)
        broker.settings = {}
        broker.start()
        self.assertFalse(journal.exists())
        self.assertEqual(self.consumed(broker, 515)[10:510], sent)
        self.assertEqual(broker.end(), 0)

    def test_switched_off_after_a_kill(self):
        broker = self.serve({"polylog.journal": "true", "polylog.journal.bytes": 1 << 20})
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)
        self.produced(broker, 10)
        sent = self.produced(broker, 500)
        broker.end(signal.SIGKILL)
        broker.settings = {}
        broker.start()
        self.assertIn("put back into", broker.text())
        self.assertFalse((broker.data / "journal/polylog.journal").exists())
        self.assertEqual(self.consumed(broker, 510)[10:], sent)
        self.assertEqual(broker.end(), 0)

    def test_a_damaged_journal_is_refused(self):
        broker = self.serve({"polylog.journal": "true", "polylog.journal.bytes": 1 << 20})
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)
        for _ in range(3):
            self.produced(broker, 10)
        broker.end(signal.SIGKILL)
        journal = broker.data / "journal/polylog.journal"
        dumped = run("dump", "--records", journal).stdout
        position = int(re.search(r"@(\d+) write kafka/t-", dumped).group(1))
        with journal.open("r+b") as file:
            file.seek(position + 40)
            file.write(b"rot")
        self.assertIn("DAMAGED", run("dump", journal).stdout)
        for settings in (broker.settings, {}):
            broker.settings = settings
            self.check_refused(run(*broker.arguments()), 1, str(journal), "damaged", "remove it")
        journal.unlink()
        broker.start()
        self.consumed(broker, 30)

    def test_a_directory_that_another_program_changed_is_refused(self):
        settings = {"polylog.journal": "true", "polylog.journal.bytes": 1 << 20}
        broker = self.serve(settings)
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)
        self.produced(broker, 10)
        self.produced(broker, 10)
        broker.end(signal.SIGKILL)
        (broker.data / "kafka/recovery-point-offset-checkpoint").write_text("0\n1\nt 0 5\n")
        journal = broker.data / "journal/polylog.journal"
        done = run(*broker.arguments())
        self.check_refused(done, 1, "recovery-point-offset-checkpoint", "another program",
                           str(journal))
        journal.unlink()
        broker.start()


class HttpTest(ProductTest):
    def get(self, broker, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{broker.http_port}{path}",
                                        timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_health_readiness_and_metrics(self):
        broker = self.serve()
        run("produce", "-t", "measured", "-b", broker.address, stdin="x\n")
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.get(broker, path)[0], 200)
        status, text = self.get(broker, "/metrics")
        self.assertEqual(status, 200)
        samples = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.assertTrue(samples)
        for line in samples:
            float(line.rsplit(" ", 1)[1])
        self.assertEqual(self.get(broker, "/elsewhere")[0], 404)

    def test_the_ready_line_names_the_listeners(self):
        broker = Served(self.folder / "data")
        self.addCleanup(broker.close)
        broker.start()
        line = next(l for l in broker.text().splitlines() if l.startswith("polylog ready"))
        self.assertIn(broker.address, line)
        self.assertIn(f"127.0.0.1:{broker.http_port}", line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
