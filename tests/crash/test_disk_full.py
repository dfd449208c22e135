"""BR-29: a full disk stops writers with a retriable error and nobody else; the broker starts on
it, and writes resume by themselves once there is room: in the kafka layout by deleting a topic, in
a shared log, whose files go by age alone, by what else the disk holds."""

import shutil
import time
import unittest

import interop_path  # noqa: F401
import brokers
import clients
import kafka_log
import kafka_wire
import rocketmq_store
import testbed
from disks import LoopDisk
from record_batch import encode_batch

DISK = 64 << 20
RESUME_SECONDS = 5.0
CYCLES = testbed.size(3, 20)
DELETE_DELAY_MS = 200


class DiskFull(unittest.TestCase):
    settings = {"log.segment.delete.delay.ms": DELETE_DELAY_MS, "log.segment.bytes": 4 << 20}

    def setUp(self):
        folder = testbed.scratch_folder("DiskFull")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.disk = LoopDisk(folder, DISK)
        self.addCleanup(self.disk.close)
        self.broker = brokers.broker_under_test(self.disk.mount_point / "data", self.settings)
        self.broker.output = folder / "broker.out"
        self.addCleanup(self.broker.close)
        self.broker.start()
        self.acked = {}

    def batch(self, topic, size):
        serial = len(self.acked.get(topic, ()))
        value = b"%s %d " % (topic.encode(), serial) + b"x" * size
        return value, encode_batch([(int(time.time() * 1000), None, value)])

    def send(self, connection, topic, size):
        value, batch = self.batch(topic, size)
        answer = connection.produce(topic, 0, batch)
        if answer.error == 0:
            self.assertEqual(answer.base_offset, len(self.acked.setdefault(topic, [])))
            self.acked[topic].append(value[:30])
        return answer.error

    def fill(self, connection, topic):
        """Until the disk is full: each error must be one a producer retries."""
        errors = []
        for size in (200_000, 20_000, 500):
            for _ in range(2000):
                error = self.send(connection, topic, size)
                if error != 0:
                    errors.append(error)
                    break
        self.assertEqual(len(errors), 3, "the disk never filled")
        self.assertEqual([e for e in errors if e not in kafka_wire.RETRIABLE], [])

    def assert_all_there(self, step):
        with self.subTest(step), self.broker.connect(timeout=60) as connection:
            for topic, values in self.acked.items():
                records = kafka_wire.read_records(connection, topic)
                got = [record.value[:30] for record in records[:len(values)]]
                self.assertEqual(len(got), len(values), topic)
                self.assertEqual(got, values, topic)

    def test_full_disk(self):
        with self.broker.connect() as connection:
            self.assertEqual(connection.create_topic("kept")[0], 0)
            for _ in range(20):
                self.assertEqual(self.send(connection, "kept", 50_000), 0)
        for cycle in range(CYCLES):
            filler = f"filler-{cycle}"
            with self.subTest(cycle=cycle):
                self.one_cycle(filler)
        self.broker.stop()
        self.assert_well_formed()

    def assert_well_formed(self):
        self.assertEqual(kafka_log.check_log_dir(self.broker.log_dir, decode=False), [])

    def make_room(self, connection, filler):
        self.assertEqual(connection.delete_topic(filler), 0)
        del self.acked[filler]

    def one_cycle(self, filler):
        with self.broker.connect() as connection:
            self.assertEqual(connection.create_topic(filler)[0], 0)
            self.fill(connection, filler)
            self.assertIn(self.send(connection, "kept", 200_000), kafka_wire.RETRIABLE)
        self.assert_all_there("full")
        done = clients.kcat(self.broker, "-P", "-t", filler, "-X", "message.timeout.ms=2000",
                            given=b"y" * 100_000 + b"\n", check=False)
        self.assertNotEqual(done.returncode, 0)
        # Closing indexes needs room, so this stop may say that it was not clean.
        self.broker.stop(may_fail=True)
        self.broker.start()
        self.assert_all_there("started on a full disk after a stop")
        self.broker.kill9()
        self.broker.start()
        self.assert_all_there("started on a full disk after kill -9")
        with self.broker.connect() as connection:
            self.make_room(connection, filler)
            freed = time.monotonic()
            while self.send(connection, "kept", 200_000) != 0:
                self.assertLess(time.monotonic() - freed, RESUME_SECONDS + DELETE_DELAY_MS / 1000,
                                "writes did not resume: " + self.broker.tail())
                time.sleep(0.05)
        self.assert_all_there("after there was room again")


@unittest.skipIf(brokers.is_kafka(), "Kafka has one layout")
class DiskFullOnOneSharedLog(DiskFull):
    sizes = rocketmq_store.Sizes(4 << 20, 60_000, 1000, 20_000)
    settings = {"polylog.layout": "rocketmq", **sizes.polylog_settings()}

    def setUp(self):
        super().setUp()
        for cycle in range(CYCLES):
            (self.disk.mount_point / f"other-{cycle}").write_bytes(bytes(DISK // 2 // CYCLES))

    def make_room(self, connection, filler):
        others = sorted(self.disk.mount_point.glob("other-*"))
        others[0].unlink()

    def assert_well_formed(self):
        store = rocketmq_store.Store(self.broker.data_dir / "rocketmq", self.sizes)
        self.assertEqual(store.complaints, [])


if __name__ == "__main__":
    testbed.main()
