"""A true power cut during acks=all load, again and again (BR-01): nothing acknowledged is lost,
and no offset once fetched ever holds another record.

POLYLOG_POWER_CUTS sets the number of cycles, POLYLOG_SEED the random seed.
"""

import os
import random
import shutil
import threading
import time
import unittest

import interop_path  # noqa: F401
import brokers
import kafka_wire
import testbed
from disks import LoopDisk
from record_batch import decode_batches, encode_batch

CYCLES = int(os.environ.get("POLYLOG_POWER_CUTS", testbed.size(100, 1000)))
SEED = int(os.environ.get("POLYLOG_SEED", "1"))
STEADY, PARTITIONS = "steady", 4
SMALL = {"internal.segment.bytes": 30_000, "index.interval.bytes": 1024}
GONE = (OSError, ConnectionError, ValueError, TimeoutError, KeyError)


class History:
    """What the clients were told: acknowledged records, records seen, topics created.

    Nobody hears anything from a machine without power, but this one goes on running when its disk
    is shut down, and ext4's fdatasync can return success while that happens without having
    written (11 of 35 such calls here; none of those that returned before). What comes after the cut
    has begun therefore counts for nothing."""

    def __init__(self):
        self.lock = threading.Lock()
        self.powered = True
        self.acked, self.seen, self.topics = {}, {}, set()
        self.problems = []

    def power(self, on):
        with self.lock:
            self.powered = on

    def created(self, topic):
        with self.lock:
            if self.powered:
                self.topics.add(topic)

    def note(self, kind, topic, partition, offset, value):
        with self.lock:
            if not self.powered:
                return
            known = kind.setdefault((topic, partition), {})
            if known.setdefault(offset, value) != value:
                self.problems.append(f"{topic}-{partition} offset {offset}: {known[offset]!r}, "
                                     f"then {value!r}")

    def count(self):
        return sum(map(len, self.acked.values()))


class Load:
    """Producers and a reader on one broker, until they are told to stop or it is gone."""

    def __init__(self, broker, history, cycle, rng, configs):
        self.broker, self.history, self.cycle, self.configs = broker, history, cycle, configs
        self.ended = threading.Event()
        seeds = [rng.getrandbits(32) for _ in range(4)]
        self.threads = [
            threading.Thread(target=self.guard, args=(self.write_steady, seeds[0], 0), daemon=True),
            threading.Thread(target=self.guard, args=(self.write_steady, seeds[1], 1), daemon=True),
            threading.Thread(target=self.guard, args=(self.write_new, seeds[2], 2), daemon=True),
            threading.Thread(target=self.guard, args=(self.read, seeds[3], 3), daemon=True)]
        for thread in self.threads:
            thread.start()

    def guard(self, body, seed, number):
        try:
            with self.broker.connect(timeout=10) as connection:
                body(connection, random.Random(seed), number)
        except GONE:
            pass  # the power is off

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(30)

    def batch(self, rng, number, serial):
        count, size = rng.choice((1, 1, 2, 5)), rng.choice((20, 300, 2000))
        values = [b"%d/%d/%d/%d " % (self.cycle, number, serial, n) + b"." * size
                  for n in range(count)]
        now = int(time.time() * 1000)
        codec = rng.choice(("none", "none", "lz4", "zstd"))
        return values, encode_batch([(now, None, value) for value in values], codec)

    def acknowledged(self, topic, partition, values, answer):
        if answer.error == 0:
            for n, value in enumerate(values):
                self.history.note(self.history.acked, topic, partition,
                                  answer.base_offset + n, value)

    def write_steady(self, connection, rng, number):
        """Up to three requests in flight."""
        serial, waiting = 0, []
        while not self.ended.is_set():
            partition = rng.randrange(PARTITIONS)
            values, batch = self.batch(rng, number, serial)
            waiting.append((connection.send_produce(STEADY, partition, batch), partition, values))
            serial += 1
            while len(waiting) >= 3:
                correlation, where, sent = waiting.pop(0)
                self.acknowledged(STEADY, where, sent, connection.receive_produce(correlation))

    def write_new(self, connection, rng, number):
        """The first records of brand-new topics."""
        serial = 0
        while not self.ended.is_set():
            topic = f"new-{self.cycle}-{serial}"
            if connection.create_topic(topic, 1, self.configs)[0] == 0:
                self.history.created(topic)
            values, batch = self.batch(rng, number, serial)
            self.acknowledged(topic, 0, values, connection.produce(topic, 0, batch))
            serial += 1
            time.sleep(0.05)

    def read(self, connection, rng, _number):
        """Follows the end of the steady partitions."""
        offsets = {p: connection.list_offset(STEADY, p, kafka_wire.LATEST).offset
                   for p in range(PARTITIONS)}
        while not self.ended.is_set():
            partition = rng.randrange(PARTITIONS)
            got = connection.fetch(STEADY, partition, offsets[partition], max_wait_ms=5)
            for batch in decode_batches(got.records):
                for record in batch.records():
                    self.history.note(self.history.seen, STEADY, partition, record.offset,
                                      record.value)
                offsets[partition] = max(offsets[partition], batch.last_offset + 1)


class Rig:
    """The broker on a disk that can be cut, and the checks after each cut."""

    def __init__(self, folder, settings, configs):
        self.disk = LoopDisk(folder, 1 << 30)
        self.broker = brokers.broker_under_test(self.disk.mount_point / "data", settings)
        if brokers.is_kafka():
            self.broker.metadata_dir = folder / "metadata"
        self.broker.output = folder / "broker.out"
        self.configs, self.history, self.slowest_start = configs, History(), 0.0
        self.verified = {}
        self.broker.start()
        with self.broker.connect() as connection:
            error, message = connection.create_topic(STEADY, PARTITIONS, configs)
            if error:
                raise ValueError(f"creating {STEADY}: {error} {message}")

    def close(self):
        self.broker.close()
        self.disk.close()

    def cycle(self, number, rng):
        load = Load(self.broker, self.history, number, rng, self.configs)
        time.sleep(rng.uniform(0.15, 0.9))
        self.history.power(False)
        self.disk.cut()
        self.broker.kill9()
        load.stop()
        self.history.power(True)
        self.disk.power_on()
        before = time.monotonic()
        self.broker.start()
        self.slowest_start = max(self.slowest_start, time.monotonic() - before)
        self.verify()

    def verify(self, everything=False):
        """Compares the log with what clients were told; by default only its newer part."""
        history, problems = self.history, self.history.problems
        with self.broker.connect(timeout=60) as connection:
            missing = history.topics - set(connection.metadata(None))
            problems += [f"topic {topic} was created and is gone" for topic in missing]
            for place in set(history.acked) | set(history.seen):
                told = {**history.seen.get(place, {}), **history.acked.get(place, {})}
                start = 0 if everything else self.verified.get(place, 0)
                if not everything and max(told) < start:
                    continue
                problems += self.compare(connection, *place, start, told)
                self.verified[place] = max(start, max(told) + 1 - 50)

    @staticmethod
    def compare(connection, topic, partition, start, told):
        if topic not in connection.metadata([topic]):
            return [f"{topic} is gone"]
        try:
            there = {record.offset: record.value for record in
                     kafka_wire.read_records(connection, topic, partition, start)}
        except ValueError as problem:
            return [f"{topic}-{partition} from {start}: {problem}"]
        return [f"{topic}-{partition} offset {offset}: {told[offset][:40]!r} became "
                f"{there.get(offset, b'nothing')[:40]!r}"
                for offset in sorted(told) if offset >= start and there.get(offset) != told[offset]]


class PowerCut(unittest.TestCase):
    layout = {}

    def rig(self, settings, configs):
        folder = testbed.scratch_folder("PowerCut")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        rig = Rig(folder, {"log.retention.hours": -1, **settings},
                  {**SMALL, **self.layout, **configs})
        self.addCleanup(rig.close)
        return rig

    def test_nothing_acknowledged_is_lost(self):
        rig = self.rig({}, {"flush.messages": 1} if brokers.is_kafka() else {})
        rng = random.Random(SEED)
        for number in range(CYCLES):
            rig.cycle(number, rng)
            self.assertEqual(rig.history.problems[:5], [], f"cycle {number}, seed {SEED}; "
                             f"{len(rig.history.problems)} problems in all")
        rig.verify(everything=True)
        self.assertEqual(rig.history.problems[:5], [], f"at the end, seed {SEED}")
        count = rig.history.count()
        self.assertGreater(count, CYCLES * 5)
        print(f"{CYCLES} power cuts, seed {SEED}: {count} acknowledged records in "
              f"{len(rig.history.acked)} partitions, none lost; slowest start "
              f"{rig.slowest_start:.2f} s", flush=True)

    def test_the_rig_notices_loss_without_flush(self):
        """The same load with no flush must lose something, or this test proves nothing."""
        rig = self.rig({"polylog.flush": "never"}, {})
        rng = random.Random(SEED)
        for number in range(5):
            rig.cycle(number, rng)
            if rig.history.problems:
                return
        self.fail("five power cuts without flush lost nothing")


@unittest.skipIf(brokers.is_kafka(), "Kafka has one layout")
class PowerCutOnOneSharedLog(PowerCut):
    layout = {"polylog.layout": "rocketmq"}


@unittest.skipIf(brokers.is_kafka(), "Kafka has one layout")
class PowerCutOnSegments(PowerCut):
    layout = {"polylog.layout": "segment"}


if __name__ == "__main__":
    testbed.main()
