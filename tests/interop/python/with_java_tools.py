"""Kafka's command-line tools as a driver of the client matrix: the classes behind its scripts."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import contract

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import dependencies  # noqa: E402

TOOLS = "org.apache.kafka.tools."
TOPICS = TOOLS + "TopicCommand"
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
OFFSETS = TOOLS + "GetOffsetShell"
DELETE_RECORDS = TOOLS + "DeleteRecordsCommand"
PRODUCER = TOOLS + "ConsoleProducer"
CONSUMER = TOOLS + "consumer.ConsoleConsumer"
FORMAT = ("print.key", "print.partition", "print.offset", "print.value")


def command(main_class, *arguments):
    log4j = dependencies.PINS / "log4j2.properties"
    return [str(part) for part in (
        "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
        f"-Dlog4j2.configurationFile={log4j}", "-cp", f"{dependencies.kafka()}/*", main_class,
        *arguments)]


def tool(a, main_class, *arguments, given=None):
    done = subprocess.run(command(main_class, "--bootstrap-server", a.bootstrap, *arguments),
                          input=given, capture_output=True, check=False, timeout=80)
    if done.returncode != 0:
        raise RuntimeError(f"{main_class} ended with {done.returncode}: "
                           f"{(done.stdout + done.stderr).decode()[-800:]}")
    return done.stdout.decode()


def produce(a):
    if a.partitions != 1:
        raise ValueError("the console producer cannot be told a partition")
    lines = "".join(f"{contract.key_of(n)}\t{contract.value_of(a.prefix, n)}\n"
                    for n in range(a.count))
    tool(a, PRODUCER, "--topic", a.topic, "--compression-codec", a.codec, "--reader-property",
         "parse.key=true", "--command-property",
         f"enable.idempotence={'true' if a.idempotent else 'false'}", given=lines.encode())
    return {"count": a.count}


def printing():
    return [part for name in FORMAT for part in ("--formatter-property", f"{name}=true")]


def parsed(line):
    """Partition:0<tab>Offset:5<tab>key<tab>value"""
    partition, offset, key, value = line.split("\t")
    return int(partition.split(":")[1]), int(offset.split(":")[1]), key, value


def read(a):
    text = tool(a, CONSUMER, "--topic", a.topic, "--from-beginning", "--max-messages", a.count,
                "--timeout-ms", 20000, *printing())
    for line in text.splitlines():
        contract.emit(record=list(parsed(line)))
    return {"count": a.count}


def consume(a):
    positions = contract.Positions(a)
    properties = {"auto.commit.interval.ms": 200, "reconnect.backoff.max.ms": 500,
                  "group.protocol": a.protocol, "auto.offset.reset": "earliest"}
    if a.protocol == "classic":
        properties.update({"session.timeout.ms": 10000, "heartbeat.interval.ms": 500})
    flags = [part for key, value in properties.items()
             for part in ("--command-property", f"{key}={value}")]
    process = subprocess.Popen(
        command(CONSUMER, "--bootstrap-server", a.bootstrap, "--topic", a.topic, "--group",
                a.group, *flags, *printing()), stdout=subprocess.PIPE)
    os.set_blocking(process.stdout.fileno(), False)
    pending, ended = b"", False
    while not ended:
        if positions.stopped() and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        ended = process.poll() is not None
        pending += process.stdout.read() or b""
        *lines, pending = pending.split(b"\n")
        for line in lines:
            # The tool's own warnings stand between the records.
            if line.startswith(b"Partition:"):
                partition, offset, _, value = parsed(line.decode())
                positions.record(partition, offset, value)
        time.sleep(0.02)
    if process.returncode not in (0, 128 + signal.SIGTERM):
        raise RuntimeError(f"the console consumer ended with {process.returncode}")
    return {"count": positions.count}


def seek(a):
    text = tool(a, OFFSETS, "--topic-partitions", f"{a.topic}:0", "--time", a.time)
    offset = int(text.split(":")[2])
    value = tool(a, CONSUMER, "--topic", a.topic, "--partition", 0, "--offset", offset,
                 "--max-messages", 1, "--timeout-ms", 20000)
    return {"offset": offset, "value": value.rstrip("\n")}


def admin(a):
    def step(name, **fields):
        contract.emit(step=name, **fields)

    def described():
        return tool(a, TOPICS, "--describe", "--topic", a.topic)

    def partitions():
        return int(re.search(r"PartitionCount: (\d+)", described())[1])

    def configs(*arguments):
        main_class = dependencies.kafka_class(TOOLS + "ConfigCommand", "kafka.admin.ConfigCommand")
        return tool(a, main_class, "--entity-type", "topics", "--entity-name", a.topic, *arguments)

    def retention():
        return re.search(r"retention\.ms=(\d+)", configs("--describe"))[1]

    tool(a, TOPICS, "--create", "--topic", a.topic, "--partitions", 2, "--config",
         f"retention.ms={contract.RETENTION}")
    step("create-topic")
    step("describe-topic", partitions=partitions())
    step("describe-config", value=retention())
    configs("--alter", "--add-config", f"retention.ms={contract.ALTERED_RETENTION}")
    step("alter-config", value=retention())
    tool(a, TOPICS, "--alter", "--topic", a.topic, "--partitions", 4)
    step("create-partitions", partitions=partitions())
    step("list-groups", groups=tool(a, GROUPS, "--list").split())
    state = tool(a, GROUPS, "--describe", "--state", "--group", a.group)
    step("describe-group", state=re.search(r"\b(Empty|Stable|Dead)\b", state)[1])
    rows = [line.split() for line in
            tool(a, GROUPS, "--describe", "--offsets", "--group", a.group).splitlines()]
    step("group-offsets", offsets={row[2]: int(row[3]) for row in rows
                                   if row[:2] == [a.group, a.data]})
    tool(a, GROUPS, "--delete", "--group", a.group)
    step("delete-group")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as wanted:
        json.dump({"version": 1, "partitions": [
            {"topic": a.data, "partition": 0, "offset": 5}]}, wanted)
        wanted.flush()
        text = tool(a, DELETE_RECORDS, "--offset-json-file", wanted.name)
    step("delete-records", low=int(re.search(r"low_watermark: (\d+)", text)[1]))
    tool(a, TOPICS, "--delete", "--topic", a.topic)
    step("delete-topic")
    step("list-topics", topics=tool(a, TOPICS, "--list").split())


if __name__ == "__main__":
    contract.run({"produce": produce, "read": read, "consume": consume, "seek": seek,
                  "admin": admin})
