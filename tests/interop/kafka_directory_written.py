"""A whole log directory of a real Kafka, its metadata log and its groups' offsets in it.

As a program it renews the golden directory: kafka_directory_written.py TARGET
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import brokers
import kafka_written
from record_batch import encode_batch

BASE_TIME = 1_790_000_000_000
GROUPS = {"billing": {"orders": {0: 3, 1: 1}}, "audit": {"orders": {2: 2}, "compacted": {0: 5}}}
# Snapshots come quickly in the first run and not at all in the second, so that what changes then
# is in the log alone.
FIRST = {"metadata.log.max.record.bytes.between.snapshots": 600, "metadata.max.idle.interval.ms": 0,
         "offsets.topic.num.partitions": 3, "log.cleaner.enable": "false",
         "log.index.size.max.bytes": 1000}
SECOND = {**FIRST, "metadata.log.max.record.bytes.between.snapshots": 20 << 20}
SHOWN = ("orders", "compacted", "forever", "plain", "again", "sized")


def _alter(kafka, *arguments):
    command = kafka.java("org.apache.kafka.tools.ConfigCommand",
                         "--bootstrap-server", kafka.address, *arguments)
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def _alter_topic(kafka, topic, *arguments):
    return _alter(kafka, "--alter", "--entity-type", "topics", "--entity-name", topic, *arguments)


def _settings(kafka, topic):
    """The settings a topic has of its own, as Kafka describes them."""
    said = _alter(kafka, "--describe", "--entity-type", "topics", "--entity-name", topic)
    return dict(re.findall(r"^\s+([a-z.]+)=(\S+) sensitive=", said, re.MULTILINE))


def _produce(connection, topic, partition, count):
    for n in range(count):
        answer = connection.produce(topic, partition, encode_batch(
            [(BASE_TIME + n, b"k%d" % n, b"%s %d" % (topic.encode(), n))], "none"))
        if answer.error != 0:
            raise ValueError(f"Produce to {topic} answered {answer.error}")


def _create(connection, name, partitions=1, configs=None):
    error, message = connection.create_topic(name, partitions, configs)
    if error != 0:
        raise ValueError(f"creating {name}: {error} {message}")


def _wait_for_snapshot(kafka, seconds=30):
    folder = kafka.metadata_dir / "__cluster_metadata-0"
    until = time.monotonic() + seconds
    while not list(folder.glob("*.checkpoint")):
        if time.monotonic() > until:
            raise TimeoutError(f"no snapshot in {folder}")
        time.sleep(0.2)


def _first_run(kafka):
    with kafka.connect() as connection:
        _create(connection, "orders", 3, {"retention.ms": 3600000, "max.message.bytes": 2000000})
        _create(connection, "compacted", 1, {"cleanup.policy": "compact"})
        _create(connection, "forever", 1, {"retention.ms": -1})
        _create(connection, "plain", 2)
        _create(connection, "gone", 1, {"retention.ms": 1})
        _create(connection, "again", 1, {"retention.ms": 2})
        for partition in range(3):
            _produce(connection, "orders", partition, 4)
        _produce(connection, "compacted", 0, 6)
        _produce(connection, "again", 0, 2)
        connection.commit("billing", "orders", {0: 1})
    _wait_for_snapshot(kafka)


def _second_run(kafka):
    with kafka.connect() as connection:
        for topic in ("gone", "again"):
            connection.delete_topic(topic)
        _alter_topic(kafka, "orders", "--delete-config", "max.message.bytes", "--add-config",
                     "retention.ms=7200000,message.timestamp.type=LogAppendTime")
        _alter(kafka, "--alter", "--entity-type", "brokers", "--entity-default", "--add-config",
               "log.retention.ms=86400000")
        _create(connection, "again", 1)
        _create(connection, "sized", 1, {"retention.bytes": 5000, "segment.bytes": 2000000})
        _produce(connection, "again", 0, 1)
        _produce(connection, "plain", 1, 2)
        for group, topics in GROUPS.items():
            for topic, offsets in topics.items():
                connection.commit(group, topic, offsets)


def _described(kafka):
    topics = {}
    with kafka.connect() as connection:
        for name in SHOWN:
            info = connection.metadata([name])[name]
            topics[name] = {"id": str(info.topic_id), "partitions": len(info.partitions),
                            "configs": _settings(kafka, name)}
        groups = {group: {topic: connection.committed(group, topic, list(offsets))
                          for topic, offsets in asked.items()}
                  for group, asked in GROUPS.items()}
    return {"topics": topics, "groups": groups}


def _left_out(folder, names):
    """The lock, and the metadata log's indexes: 10 MiB each, and read by nobody but Kafka."""
    indexes = {name for name in names if name.endswith("index")}
    return {".lock"} & set(names) | (indexes if "__cluster_metadata" in str(folder) else set())


def main(arguments):
    target = pathlib.Path(arguments[0])
    shutil.rmtree(target / "written", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="polylog-golden-") as folder:
        data = pathlib.Path(folder) / "data"
        kafka = brokers.KafkaBroker(data, FIRST, metadata_dir=data)
        with kafka:
            _first_run(kafka)
            kafka.stop()
            kafka.settings = SECOND
            kafka.start()
            _second_run(kafka)
            described = _described(kafka)
            kafka.stop()
        shutil.copytree(data, target / "written", ignore=_left_out)
    (target / "described.json").write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")
    kafka_written.write_manifest(target, "kafka_directory_written.py",
                                 "written/ after an orderly stop; described.json what Kafka said")


if __name__ == "__main__":
    main(sys.argv[1:])
