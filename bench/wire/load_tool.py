"""The load tools, as measured samples: librdkafka's own rdkafka_performance, and
load/wire_load.cc where librdkafka itself would be what is measured.
"""

import json
import os
import re
import signal
import subprocess
import time
from typing import NamedTuple

import paths  # noqa: F401
import dependencies
import peer_packages

RESULT = re.compile(r"(\d+) delivered \(.*?, (\d+) failed\) in (\d+)ms: \d+ msgs/s")
QUIET_MS = 3_600_000  # between reports: building one for 10,000 partitions takes a while
STOP_SECONDS = 60
SECONDS_MAX = 300


class RoundFailed(Exception):
    """The load tool did not deliver everything."""


class LibrdkafkaLoad(NamedTuple):
    """rdkafka_performance with acks=all."""

    topic: str
    size: int
    count: int  # of messages, over all producers
    client: tuple  # librdkafka settings, "name=value"
    partition: int | None = 0  # None: a random one for each message
    producers: int = 1  # processes
    seconds_max: float | None = None  # then the producers are stopped and what was acked counts

    def command(self, address, _number, count):
        command = [dependencies.rdkafka_performance(), "-P", "-t", self.topic, "-s",
                   str(self.size), "-c", str(count), "-a", "-1", "-q", "-i", str(QUIET_MS)]
        if self.partition is not None:
            command += ["-p", str(self.partition)]
        command += ["-b", address] if address else ["-X", "test.mock.num.brokers=1"]
        for option in self.client:
            command += ["-X", option]
        return command

    def result(self, output):
        """(delivered, failed, milliseconds), or None."""
        found = RESULT.search(output)
        return tuple(map(int, found.groups())) if found else None


class BatchLoad(NamedTuple):
    """wire_load with acks=all: whole batches to the partitions in turn."""

    topic: str
    size: int
    count: int
    partitions: int
    batch_bytes: int = 16_384
    in_flight: int = 32  # requests of each producer
    producers: int = 1
    seconds_max: float | None = None

    def command(self, address, number, count):
        host, port = address.split(":")
        first = self.partitions * number // self.producers
        options = {"topic": self.topic, "partitions": self.partitions, "first": first,
                   "records": count, "record-bytes": self.size, "batch-bytes": self.batch_bytes,
                   "in-flight": self.in_flight}
        return [peer_packages.wire_load(), "produce", host, port,
                *(word for name, value in options.items() for word in (f"--{name}", str(value)))]

    def result(self, output):
        """(delivered, failed, milliseconds), or None."""
        lines = [line for line in output.splitlines() if line.startswith('{"records"')]
        if not lines:
            return None
        said = json.loads(lines[-1])
        return (min(said["records"], self.count), said["refused"],
                max(1, round(said["seconds"] * 1000)))


class Delivered(NamedTuple):
    """What came of a load. `messages` is less than asked if time ran out."""

    messages: int
    seconds: float
    client_cpu_seconds: float

    @property
    def rate(self):
        return self.messages / self.seconds


def _collect(process, deadline):
    """Its output, and whether it had to be stopped."""
    try:
        return process.communicate(timeout=max(0.001, deadline - time.monotonic()))[0], False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=STOP_SECONDS)[0], True
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RoundFailed("the load tool does not stop") from None


def _judge(load, count, process, output, stopped):
    """(messages, milliseconds) of one producer.

    Only the counts are looked at, not the exit code: rdkafka_performance subtracts what is in its
    event queue from the messages sent, and a statistics event that waits there at the end makes it
    exit with 1 though every message was delivered.
    """
    found = load.result(output)
    if found and found[1] == 0 and (stopped or found[0] >= count):
        return min(found[0], count), found[2]
    said = [line for line in output.splitlines() if "CONFWARN" not in line]
    raise RoundFailed(f"{load.topic}: {count} messages asked, exit code {process.returncode}: "
                      + "\n".join(said)[-600:])


def run(address, load):
    """Runs the producers side by side; without an address, on librdkafka's mock broker."""
    counts = [load.count // load.producers] * load.producers
    counts[0] += load.count - sum(counts)
    before = os.times()
    deadline = time.monotonic() + (load.seconds_max or SECONDS_MAX)
    processes = [subprocess.Popen(load.command(address, number, count), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
                 for number, count in enumerate(counts)]
    outputs = [_collect(process, deadline) for process in processes]
    after = os.times()
    if load.seconds_max is None and any(stopped for _, stopped in outputs):
        raise RoundFailed(f"{load.topic}: not delivered in {SECONDS_MAX} s")
    messages, seconds = 0, 0.0
    for count, process, (output, stopped) in zip(counts, processes, outputs):
        delivered, milliseconds = _judge(load, count, process, output, stopped)
        messages += delivered
        # A stopped rdkafka_performance counts its own tidying up as well.
        seconds = max(seconds, load.seconds_max if stopped else milliseconds / 1000)
    client_cpu = (after.children_user + after.children_system
                  - before.children_user - before.children_system)
    return Delivered(messages, max(seconds, 1e-3), client_cpu)
