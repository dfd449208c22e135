"""A real Kafka reads what the broker under test wrote: its dump tool without complaint, and a
broker started on the partition directories, after a clean stop and after kill -9."""

import re
import shutil
import time
import unittest

import brokers
import clients
import dependencies
import handover
import kafka_log
import kafka_wire
import testbed
from record_batch import encode_batch

TOPICS = {"mixed": 2, "idempotent": 1, "appendtime": 1, "trimmed": 1, "shapes": 1, "empty": 1}
SMALL = {"internal.segment.bytes": 200_000}
CONFIGS = {"mixed": SMALL, "idempotent": SMALL, "trimmed": SMALL,
           "appendtime": {"message.timestamp.type": "LogAppendTime"}}
CODECS = ("none", "gzip", "snappy", "snappy-xerial", "lz4", "zstd")
FALSE_ALARM = re.compile(r"\s-1 is followed by \d+")
BAD_LINE = re.compile(r"Mismatches in|is followed by|timestamp mismatch|out of order"
                      r"|Non-consecutive|bytes remaining|isvalid: false|are not found"
                      r"|Indexed offset|Exception|Error")
NOW = int(time.time() * 1000) - 3_600_000


class Workload:
    """Fills a broker with every kind of record; remembers the last idempotent batch."""

    def __init__(self, broker):
        self.broker = broker
        self.sequence = 0
        self.clock = NOW
        with broker.connect() as connection:
            for name, partitions in TOPICS.items():
                error, message = connection.create_topic(name, partitions, CONFIGS.get(name))
                if error != 0:
                    raise ValueError(f"creating {name}: {error} {message}")
            self.producer = connection.init_producer_id()

    def tick(self):
        self.clock += 7
        return self.clock

    def write(self, rounds):
        with self.broker.connect() as connection:
            for number in range(rounds):
                codec = CODECS[number % len(CODECS)]
                self.write_mixed(connection, number, codec)
                self.write_idempotent(connection, number, codec)
                self.send(connection, "appendtime", 0,
                          encode_batch([(self.tick(), None, b"a" * 400)] * 5, codec))
                self.send(connection, "trimmed", 0,
                          encode_batch([(self.tick(), b"k", b"t%d" % number * 4000)] * 2))
            self.write_shapes(connection)
            error, _ = connection.delete_records("trimmed", 0, rounds)
            if error != 0:
                raise ValueError(f"DeleteRecords answered {error}")

    def send(self, connection, topic, partition, batch):
        answer = connection.produce(topic, partition, batch)
        if answer.error != 0:
            raise ValueError(f"Produce to {topic} answered {answer.error}")
        return answer.base_offset

    def write_mixed(self, connection, number, codec):
        for partition in range(2):
            count = 1 + (number * 7 + partition) % 23
            # Timestamps inside a batch are not in order.
            stamps = [self.clock + (n * 37) % 101 for n in range(count)]
            self.clock += 101
            batch = encode_batch([(stamp, b"key-%d" % n, b"%d/%d " % (number, n) * 400)
                                  for n, stamp in enumerate(stamps)], codec)
            self.send(connection, "mixed", partition, batch)

    def write_idempotent(self, connection, number, codec):
        count = 1 + number % 5
        records = [(self.tick(), None, b"idempotent %d " % (self.sequence + n) * 100)
                   for n in range(count)]
        self.last_batch = encode_batch(records, codec, *self.producer, base_sequence=self.sequence)
        self.last_offset = self.send(connection, "idempotent", 0, self.last_batch)
        self.sequence += count

    def write_shapes(self, connection):
        headers = (("h", b""), ("h", None), ("", b"x"), ("häder", b"\x00\xff"))
        for codec in CODECS:
            self.send(connection, "shapes", 0, encode_batch(
                [(self.tick(), None, None), (self.tick(), b"", b""), (self.tick(), b"k", None),
                 (self.tick(), None, b"v", headers)], codec))


def observe(broker):
    """Everything a client can learn about the topics: bytes, bounds, epochs, times."""
    seen = {}
    with broker.connect(timeout=60) as connection:
        for name, partitions in TOPICS.items():
            for partition in range(partitions):
                batches = kafka_wire.read_all(connection, name, partition)
                stamps = sorted({b.max_timestamp for b in batches})
                times = stamps[:: max(1, len(stamps) // 7)] + [1, stamps[-1] + 1] if stamps else [1]
                seen[f"{name}-{partition}"] = {
                    "batches": [b.raw for b in batches],
                    "earliest": connection.list_offset(name, partition, -2)[:3],
                    "latest": connection.list_offset(name, partition, -1)[:3],
                    "largest": connection.list_offset(name, partition, -3)[:3],
                    "times": [connection.list_offset(name, partition, t)[:3] for t in times],
                    "epochs": [connection.end_of_epoch(name, partition, epoch)
                               for epoch in sorted({b.leader_epoch for b in batches})[:-1]],
                }
    return seen


def dump_tool():
    return dependencies.kafka_class("org.apache.kafka.tools.DumpLogSegments",
                                    "kafka.tools.DumpLogSegments")


def dump_complaints(folders):
    """What DumpLogSegments says against the files of some partition directories."""
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [p for folder in folders for p in sorted(folder.iterdir()) if p.suffix in suffixes]
    done = clients.java(dump_tool(), "--deep-iteration", "--max-message-size", 20 << 20,
                        "--files", ",".join(map(str, files)), check=False)
    lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
    complaints = [f"exit code {done.returncode}"] if done.returncode else []
    current, dumped = "", 0
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("Dumping "):
            current, dumped = line, dumped + 1
        elif FALSE_ALARM.search(line) or (line.startswith("Non-consecutive offsets")
                                          and FALSE_ALARM.search(following)):
            continue  # said of every segment that does not begin with offset 0
        elif BAD_LINE.search(line):
            complaints.append(f"{current}: {line}")
    if dumped != len(files):
        complaints.append(f"{dumped} of {len(files)} files dumped")
    return complaints


def loud_lines(kafka):
    """Warnings and errors of a Kafka about its logs since its last start."""
    return [line for line in kafka.log_text().splitlines()
            if re.search(r"\] (WARN|ERROR|FATAL) ", line)
            and re.search(r"storage\.internals|kafka\.log|LogManager|Replica|stray|artition"
                          r"|offline", line)]


class RealKafka(unittest.TestCase):
    def setUp(self):
        self.folder = testbed.scratch_folder("RealKafka")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.broker = brokers.broker_under_test(self.folder / "data",
                                                {"log.index.interval.bytes": 512})
        self.broker.start()
        self.addCleanup(self.broker.close)

    def fill(self, clean):
        """Three runs of the broker with an unclean end between them, then the wanted end."""
        workload = Workload(self.broker)
        rounds = testbed.size(120, 600)
        for _ in range(2):
            workload.write(rounds // 3)
            self.broker.kill9()
            self.broker.start()
        workload.write(rounds // 3)
        seen = observe(self.broker)
        if clean:
            self.broker.stop()
        else:
            self.broker.kill9()
        return workload, seen

    def start_kafka(self, clean):
        names = handover.partition_names(TOPICS)
        kafka = brokers.KafkaBroker(self.folder / "kafka")
        self.addCleanup(kafka.close)
        handover.prepare_receiver(kafka, TOPICS, CONFIGS,
                                  handover.newest_epoch(self.broker.log_dir, names))
        handover.replace_partitions(self.broker.log_dir, kafka.log_dir, names, clean)
        kafka.start()
        handover.wait_until_served(kafka, TOPICS)
        return kafka

    def assert_kafka_serves_the_same(self, clean):
        workload, ours = self.fill(clean)
        with self.subTest("the independent checker"):
            self.assertEqual(kafka_log.check_log_dir(self.broker.log_dir, closed=clean), [])
        self.assertGreater(len(list((self.broker.log_dir / "mixed-0").glob("*.log"))), 1)
        # The tool itself fails on the zero-filled index of an empty log of a killed Kafka.
        names = [name for name in handover.partition_names(TOPICS)
                 if not (brokers.is_kafka() and name == "empty-0")]
        with self.subTest("DumpLogSegments"):
            folders = [self.broker.log_dir / name for name in names]
            self.assertEqual(dump_complaints(folders), [])
        kafka = self.start_kafka(clean)
        with self.subTest("Kafka's own warnings"):
            self.assertEqual(loud_lines(kafka), [])
        theirs = observe(kafka)
        for name, partition in ours.items():
            for what, value in partition.items():
                with self.subTest(partition=name, what=what):
                    self.assert_same(name, what, theirs[name][what], value, clean)
        self.assert_resend_is_a_duplicate(kafka, workload)

    def assert_same(self, name, what, theirs, ours, clean):
        if name == "trimmed-0" and not clean:
            # A log start is checkpointed lazily: after a kill Kafka may show deleted records again.
            if what == "batches":
                self.assertEqual(theirs[-len(ours):], ours)
            if what != "latest":
                return
        if what == "batches":
            self.assertEqual(len(theirs), len(ours))
            different = [n for n, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]]
            self.assertEqual(different, [])
        elif what == "times" and name == "trimmed-0":
            # Where a segment's only hits lie below the log start Kafka gives up; polylog goes on.
            for kafkas, own in zip(theirs, ours):
                if kafkas[1:] != (-1, -1):
                    self.assertEqual(kafkas, own)
        else:
            self.assertEqual(theirs, ours)

    def assert_resend_is_a_duplicate(self, broker, workload):
        with broker.connect() as connection:
            end = connection.list_offset("idempotent", 0, -1).offset
            again = connection.produce("idempotent", 0, workload.last_batch)
            self.assertEqual((again.error, again.base_offset), (0, workload.last_offset))
            self.assertEqual(connection.list_offset("idempotent", 0, -1).offset, end)
            fresh = encode_batch([(workload.tick(), None, b"next")], "none", *workload.producer,
                                 base_sequence=workload.sequence)
            self.assertEqual(connection.produce("idempotent", 0, fresh)[:2], (0, end))
            gap = encode_batch([(workload.tick(), None, b"gap")], "none", *workload.producer,
                               base_sequence=workload.sequence + 5)
            self.assertEqual(connection.produce("idempotent", 0, gap).error,
                             kafka_wire.OUT_OF_ORDER_SEQUENCE)

    def test_after_a_clean_stop(self):
        self.assert_kafka_serves_the_same(clean=True)

    def test_after_kill_9(self):
        self.assert_kafka_serves_the_same(clean=False)


if __name__ == "__main__":
    testbed.main()
