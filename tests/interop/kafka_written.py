"""Partition directories written by a real Kafka: how they are made, and what Kafka serves of them.

As a program it renews the golden directories: kafka_written.py TARGET
"""

import hashlib
import pathlib
import shutil
import sys
import tempfile
import time

import brokers
import clients
import dependencies
import handover
import kafka_log
from record_batch import encode_batch

TINY = {"segment.index.bytes": 1200, "internal.segment.bytes": 4000, "index.interval.bytes": 200,
        "file.delete.delay.ms": 0}
COMPACT = {**TINY, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01,
           "segment.ms": 604800000, "max.compaction.lag.ms": 9223372036854775807,
           "delete.retention.ms": 86400000}
TOPICS = {"plain": 1, "transactions": 1, "transactions-gzip": 1, "transactions-open": 1,
          "compacted": 1, "trimmed": 1}
CONFIGS = {"plain": TINY, "transactions": TINY, "transactions-gzip": TINY,
           "transactions-open": {"segment.index.bytes": 1200}, "compacted": COMPACT,
           "trimmed": TINY}
SETTINGS = {"log.cleaner.backoff.ms": 200, "log.cleaner.dedupe.buffer.size": 4 << 20,
            "log.retention.hours": -1, "log.cleaner.io.buffer.size": 65536,
            "log.initial.task.delay.ms": 100,
            "log.flush.start.offset.checkpoint.interval.ms": 300}
CODECS = ("none", "gzip", "snappy", "snappy-xerial", "lz4", "zstd")
LAYOUT = "%o %T %K %k %S %s %h\n"
ISOLATION = ("read_committed", "read_uncommitted")
TRIMMED_TO = 21
BASE_TIME = 1_790_000_000_000


def visible(broker, topic, isolation):
    """What kcat sees: offset, timestamp, key, value and headers of every record."""
    return clients.kcat_consume(broker, topic, "-X", f"isolation.level={isolation}", layout=LAYOUT)


def visible_everywhere(broker):
    return {(topic, isolation): visible(broker, topic, isolation)
            for topic in TOPICS for isolation in ISOLATION}


def _send(connection, topic, records, codec, **fields):
    answer = connection.produce(topic, 0, encode_batch(records, codec, **fields))
    if answer.error != 0:
        raise ValueError(f"Produce to {topic} answered {answer.error}")


def _write_plain(connection):
    producer_id, epoch = connection.init_producer_id()
    clock = BASE_TIME
    for number in range(36):
        count = 1 + number % 4
        records = [(clock + (n * 53) % 17, b"k%d" % n, b"plain %d.%d " % (number, n) * 9,
                    (("round", b"%d" % number), ("null", None))) for n in range(count)]
        clock += 1000
        _send(connection, "plain", records, CODECS[number % len(CODECS)])
    for number in range(4):
        now = int(time.time() * 1000)  # an old producer would be forgotten at the next start
        _send(connection, "plain", [(now, None, b"idempotent %d" % number)], "none",
              producer_id=producer_id, producer_epoch=epoch, base_sequence=number)


def _write_compacted(connection):
    for number in range(60):
        records = [(BASE_TIME + number * 100 + n, b"key-%d" % ((number * 3 + n) % 11),
                    None if (number + n) % 13 == 0 else b"value %d.%d " % (number, n) * 8)
                   for n in range(3)]
        _send(connection, "compacted", records, CODECS[number % len(CODECS)])


def _wait_for_background_work(broker, seconds=60):
    """Until Kafka has compacted what it may and written down the log start of `trimmed`."""
    folder = broker.log_dir / "compacted-0"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        cleaned = kafka_log.offset_checkpoint(broker.log_dir, "cleaner-offset-checkpoint")
        starts = kafka_log.offset_checkpoint(broker.log_dir, "log-start-offset-checkpoint")
        bases = sorted(int(path.stem) for path in folder.glob("*.log"))
        compacted = cleaned.get("compacted-0", -1) >= bases[-1] > 0
        if compacted and starts.get("trimmed-0") == TRIMMED_TO:
            return
        time.sleep(0.2)
    raise TimeoutError(f"not done in {seconds} s: {cleaned}, {starts}")


def write(broker):
    """Fills a running Kafka with the topics above."""
    with broker.connect() as connection:
        for name, partitions in TOPICS.items():
            error, message = connection.create_topic(name, partitions, CONFIGS[name])
            if error != 0:
                raise ValueError(f"creating {name}: {error} {message}")
        _write_plain(connection)
        _write_compacted(connection)
        for number in range(40):
            _send(connection, "trimmed", [(BASE_TIME + number, b"k", b"t" * 300)], "none")
        if connection.delete_records("trimmed", 0, TRIMMED_TO) != (0, TRIMMED_TO):
            raise ValueError("DeleteRecords failed")
    for topic, codec, last in (("transactions", "none", ""), ("transactions-gzip", "gzip", ""),
                               ("transactions-open", "none", "open")):
        clients.java("TransactionWriter", broker.address, topic, codec, last)
    _wait_for_background_work(broker)


def hand_to(receiver, source, clean):
    """Gives a Kafka log directory to a broker and starts it.

    polylog takes the directory as it stands; Kafka only takes partitions it knows.
    """
    if receiver.kind == "polylog":
        receiver.log_dir.mkdir(parents=True)
        for name in handover.partition_names(TOPICS):
            shutil.copytree(source / name, receiver.log_dir / name)
        for path in source.iterdir():
            if path.is_file() and path.name != ".lock":
                shutil.copy2(path, receiver.log_dir)
    else:
        names = handover.partition_names(TOPICS)
        handover.prepare_receiver(receiver, TOPICS, CONFIGS, handover.newest_epoch(source, names))
        handover.replace_partitions(source, receiver.log_dir, names, clean)
    receiver.start()
    handover.wait_until_served(receiver, TOPICS)
    return receiver


def _copy_golden(source, target):
    target.mkdir(parents=True)
    for name in handover.partition_names(TOPICS):
        shutil.copytree(source / name, target / name)
    for path in source.iterdir():
        if path.is_file() and path.name != ".lock":
            shutil.copy2(path, target)


def write_manifest(target, program, what):
    """Says of the files below `target` who made them, and which they are."""
    lines = [f"system: Apache Kafka {dependencies.kafka_version()}, KRaft, one node",
             f"command: tests/interop/{program} tests/golden/{target.name}",
             "licence: the records were made for these tests; Kafka's own text is not included",
             what, ""]
    for path in sorted(target.rglob("*")):
        if path.is_file() and path.name not in ("MANIFEST", "README.md"):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(target)}")
    (target / "MANIFEST").write_text("\n".join(lines) + "\n")


def main(arguments):
    target = pathlib.Path(arguments[0])
    for name in ("clean", "killed", "served"):
        shutil.rmtree(target / name, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="polylog-golden-") as folder:
        kafka = brokers.KafkaBroker(pathlib.Path(folder) / "data", SETTINGS)
        with kafka:
            write(kafka)
            served = visible_everywhere(kafka)
            kafka.kill9()
            _copy_golden(kafka.log_dir, target / "killed")
            kafka.start()
            again = visible_everywhere(kafka)
            changed = [key for key in served if served[key] != again[key]]
            if changed:
                raise ValueError(f"Kafka itself serves {changed} differently after its restart")
            kafka.stop()
            _copy_golden(kafka.log_dir, target / "clean")
    (target / "served").mkdir()
    for (topic, isolation), text in served.items():
        (target / "served" / f"{topic}.{isolation}").write_bytes(text)
    write_manifest(target, "kafka_written.py",
                   "clean/ after an orderly stop; killed/ after kill -9; served/ what Kafka served "
                   "(kcat, offset timestamp key-size key value-size value headers)")


if __name__ == "__main__":
    main(sys.argv[1:])
