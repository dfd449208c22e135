"""Partition directories that a real Kafka wrote are served as Kafka served them: several codecs
and segments, compacted, transactional (committed, aborted, still open), with a moved log start."""

import shutil
import struct
import unittest

import brokers
import dependencies
import kafka_log
import kafka_wire
import kafka_written
import testbed
from record_batch import encode_batch

GOLDEN = dependencies.SOURCE_DIR / "tests" / "golden" / "kafka_log"


def golden_served():
    return {(topic, isolation): (GOLDEN / "served" / f"{topic}.{isolation}").read_bytes()
            for topic in kafka_written.TOPICS for isolation in kafka_written.ISOLATION}


class KafkaWritten(unittest.TestCase):
    def setUp(self):
        self.folder = testbed.scratch_folder("KafkaWritten")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def receiver(self):
        broker = brokers.broker_under_test(self.folder / "data", {"log.retention.hours": -1})
        self.addCleanup(broker.close)
        return broker

    def assert_serves(self, broker, served):
        for (topic, isolation), expected in served.items():
            with self.subTest(topic=topic, isolation=isolation):
                got = kafka_written.visible(broker, topic, isolation)
                self.assertEqual(got.decode().splitlines(), expected.decode().splitlines())

    def assert_knows_the_producer(self, broker):
        """Kafka's last idempotent batch, sent again, is a duplicate; the next one is not."""
        with broker.connect() as connection:
            last = kafka_wire.read_all(connection, "plain")[-1]
            self.assertGreaterEqual(last.producer_id, 0)
            resent = struct.pack(">q", 0) + last.raw[8:12] + struct.pack(">i", -1) + last.raw[16:]
            answer = connection.produce("plain", 0, resent)
            self.assertEqual((answer.error, answer.base_offset), (0, last.base_offset))
            following = encode_batch([(last.max_timestamp, None, b"after")], "none",
                                     last.producer_id, last.producer_epoch, last.base_sequence + 1)
            answer = connection.produce("plain", 0, following)
            self.assertEqual((answer.error, answer.base_offset), (0, last.last_offset + 1))

    def assert_goes_on(self, broker):
        """The log is a living one: a new batch goes to its end, the log start is where it was."""
        with broker.connect() as connection:
            end = connection.list_offset("plain", 0, -1).offset
            answer = connection.produce("plain", 0, encode_batch(
                [(kafka_written.BASE_TIME, None, b"after all")]))
            self.assertEqual((answer.error, answer.base_offset), (0, end))
            self.assertEqual(connection.list_offset("trimmed", 0, -2).offset,
                             kafka_written.TRIMMED_TO)

    def check(self, source, clean, served, recent=False):
        broker = kafka_written.hand_to(self.receiver(), source, clean)
        self.assert_serves(broker, served)
        if recent:
            self.assert_knows_the_producer(broker)
        self.assert_goes_on(broker)
        for step in ("restart", "kill -9"):
            with self.subTest(step):
                broker.stop() if step == "restart" else broker.kill9()
                broker.start()
                left_out = {key: text for key, text in served.items() if key[0] != "plain"}
                self.assert_serves(broker, left_out)
        broker.stop()
        self.assertEqual(kafka_log.check_log_dir(broker.log_dir, compacted=("compacted",)), [])

    def test_golden_after_a_clean_stop(self):
        self.check(GOLDEN / "clean", True, golden_served())

    def test_golden_after_kill_9(self):
        self.check(GOLDEN / "killed", False, golden_served())

    def test_written_now(self):
        kafka = brokers.KafkaBroker(self.folder / "kafka", kafka_written.SETTINGS)
        self.addCleanup(kafka.close)
        kafka.start()
        kafka_written.write(kafka)
        served = kafka_written.visible_everywhere(kafka)
        kafka.stop()
        self.check(kafka.log_dir, True, served, recent=True)


if __name__ == "__main__":
    testbed.main()
