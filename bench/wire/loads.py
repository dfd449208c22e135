"""The work of one sample, and what came of it; how Kafka's, NATS' and Redis' protocols are loaded
(load/wire_load.cc) and RocketMQ through its own client (java/RocketmqLoad.java)."""

import json
import os
import select
import subprocess
from typing import NamedTuple

import peer_packages
from load_tool import RoundFailed

GRACE_SECONDS = 45


class Load(NamedTuple):
    """`kind`: produce (closed loop), rate (open loop), rounds (each partition once, wait for all).

    `batch_bytes` 0 is one record a request; `rate` is in requests a second; of `records` and
    `seconds` what comes first ends it.
    """

    kind: str = "produce"
    partitions: int = 1
    partitions_per_request: int = 1
    record_bytes: int = 1024
    batch_bytes: int = 0
    connections: int = 1
    in_flight: int = 1
    records: int = 0
    rounds: int = 0
    rate: float = 0.0
    seconds: float = 2.0

    @property
    def records_per_batch(self):
        """Of clients that count records: as many as make a batch of that size in Kafka."""
        overhead = 8 if self.record_bytes < 128 else 10
        return max(1, (self.batch_bytes - 61) // (self.record_bytes + overhead))

    def options(self):
        pairs = {"partitions": self.partitions, "record-bytes": self.record_bytes,
                 "partitions-per-request": self.partitions_per_request,
                 "batch-bytes": self.batch_bytes, "connections": self.connections,
                 "in-flight": self.in_flight, "records": self.records, "rounds": self.rounds,
                 "rate": self.rate, "seconds": self.seconds}
        return [word for name, value in pairs.items() for word in (f"--{name}", str(value))]


def over_the_wire(protocol, address, topic, load):
    """Runs wire_load; answers its numbers."""
    host, port = address.split(":")
    command = [peer_packages.wire_load(), load.kind, host, port, "--protocol", protocol,
               "--topic", topic, *load.options()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=load.seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        raise RoundFailed(f"{topic}: the load did not end") from None
    return _numbers(done.stdout, done.stderr, topic)


def _numbers(output, errors, topic):
    lines = output.strip().splitlines()
    if not lines:
        raise RoundFailed(f"{topic}: the load tool said nothing; {errors[-300:]}")
    numbers = json.loads(lines[-1])
    if "failed" in numbers:
        raise RoundFailed(f"{topic}: {numbers['failed']}")
    if numbers.get("refused"):
        why = numbers.get("why") or errors.strip()[-200:]
        raise RoundFailed(f"{topic}: {numbers['refused']} requests were refused: {why}")
    return numbers


def fetch(address, topic, partitions, connections):
    """Reads a Kafka topic from its start to its end with wire_load."""
    host, port = address.split(":")
    done = subprocess.run([peer_packages.wire_load(), "fetch", host, port, "--topic", topic,
                           "--partitions", str(partitions), "--connections", str(connections)],
                          capture_output=True, text=True, check=False, timeout=300)
    return _numbers(done.stdout, done.stderr, topic)


class RocketmqClient:
    """The Java program, running for as long as the benchmark: its code stays compiled."""

    def __init__(self, name_server, output):
        jars = peer_packages.rocketmq()
        classes = peer_packages.rocketmq_load()
        self.errors = open(output, "ab")  # noqa: SIM115, closed in close()
        self.process = subprocess.Popen(
            ["java", "-Xms512m", "-Xmx1g", "-XX:+UseG1GC", f"-Duser.home={output.parent}",
             "-Drocketmq.client.logLevel=ERROR", "-cp", f"{classes}:{jars}/*", "RocketmqLoad",
             name_server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            text=True)
        self._answer(60)

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def _answer(self, seconds):
        while True:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise RoundFailed("RocketMQ's client does not answer")
            line = self.process.stdout.readline()
            if not line:
                raise RoundFailed("RocketMQ's client has ended")
            if line.startswith("{"):
                return line

    def _ask(self, words, seconds):
        before = self._cpu_seconds()
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        numbers = _numbers(self._answer(seconds), "", " ".join(map(str, words)))
        numbers["cpu_seconds"] = self._cpu_seconds() - before
        return numbers

    def _cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def make_topic(self, topic, address, queues):
        self._ask(("topic", topic, address, queues), 60)

    def load(self, topic, broker, load):
        tail = {"produce": (load.records_per_batch, load.connections, load.in_flight,
                            load.records, load.seconds),
                "rate": (load.connections, load.rate, load.seconds),
                "rounds": (load.records_per_batch, load.connections, load.rounds,
                           load.seconds)}[load.kind]
        return self._ask((load.kind, topic, broker, load.partitions, load.record_bytes, *tail),
                         load.seconds + GRACE_SECONDS)
