"""kcat round trips: the lines that went in come out, in order, for every codec; again after
kill -9; and what is on disk is what the producer compressed."""

import brokers
import clients
import kafka_log
import sample_text
import testbed

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Codecs(testbed.BrokerTest):
    settings = {"log.segment.bytes": 4 << 20}

    @classmethod
    def prepare(cls):
        cls.text = sample_text.sample_lines(testbed.size(8 << 20, 64 << 20))

    def test_round_trip_restart_and_stored_codec(self):
        for codec in CODECS:
            with self.subTest(codec=codec, step="produce and read"):
                clients.kcat(self.broker, "-P", "-t", codec, "-z", codec, given=self.text)
                self.assert_same(codec)
        self.broker.kill9()
        self.broker.start()
        for codec in CODECS:
            with self.subTest(codec=codec, step="after kill -9"):
                self.assert_same(codec)
        self.broker.stop()
        for codec in CODECS:
            with self.subTest(codec=codec, step="on disk"):
                folder = self.broker.log_dir / f"{codec}-0"
                partition = kafka_log.Partition(folder, decode=codec in ("none", "zstd"))
                self.assertEqual(partition.complaints, [])
                # librdkafka leaves a batch plain that compression would not shrink: tiny ones.
                stored = {b.codec for b in partition.batches if b.count > 20}
                self.assertEqual(stored, {codec})
                self.assertGreater(len(partition.segments), 1 if codec == "none" else 0)
        self.assertEqual(kafka_log.check_log_dir(self.broker.log_dir, decode=False), [])
        self.broker.start()

    def assert_same(self, topic):
        got = clients.kcat_consume(self.broker, topic)
        if got != self.text:
            sent, read = self.text.splitlines(), got.splitlines()
            first = next((n for n, pair in enumerate(zip(sent, read)) if pair[0] != pair[1]),
                         min(len(sent), len(read)))
            self.fail(f"{topic}: {len(read)} of {len(sent)} lines, first difference at {first}")


if __name__ == "__main__":
    testbed.main()
