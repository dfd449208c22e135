"""What a produce round is measured against: librdkafka's mock broker (the load tool's own
ceiling), a real Kafka 4.x, and polylog with and without a sync behind each acknowledgement.

All are driven by the same librdkafka load tool on 127.0.0.1.
"""

import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "interop"))
import brokers  # noqa: E402
import dependencies  # noqa: E402

RESULT = re.compile(r"(\d+) delivered \(.*?, (\d+) failed\) in (\d+)ms: (\d+) msgs/s")
CLIENT = ("batch.size=1000000", "linger.ms=5", "queue.buffering.max.messages=2000000",
          "queue.buffering.max.kbytes=2097151", "batch.num.messages=1000000",
          "message.max.bytes=1000000")
SAMPLE_SECONDS_MAX = 300


class Sample(NamedTuple):
    """One run of the load tool."""

    messages_per_second: float
    seconds: float
    broker_cpu_seconds: float  # over the run; the mock's cannot be told from the client's
    client_cpu_seconds: float
    peak_rss_bytes: int


class RoundFailed(Exception):
    """The load tool did not deliver everything."""


def run_load_tool(address, topic, size, count):
    """Produces `count` messages of `size` bytes to partition 0 with acks=all."""
    command = [dependencies.rdkafka_performance(), "-P", "-t", topic, "-p", "0", "-s", str(size),
               "-c", str(count), "-a", "-1", "-q"]
    command += ["-b", address] if address else ["-X", "test.mock.num.brokers=1"]
    for option in CLIENT:
        command += ["-X", option]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, timeout=SAMPLE_SECONDS_MAX,
                          check=False)
    after = os.times()
    found = RESULT.search(done.stdout + done.stderr)
    if done.returncode != 0 or not found or int(found[1]) != count or int(found[2]) != 0:
        raise RoundFailed(f"{topic}: {(done.stdout + done.stderr)[-600:]}")
    client_cpu = (after.children_user + after.children_system
                  - before.children_user - before.children_system)
    return int(found[4]), int(found[3]) / 1000, client_cpu


class MockPeer:
    """librdkafka's in-process broker: nothing can look faster with this tool."""

    name = "mock"
    broker = None

    def __init__(self, _folder):
        pass

    def start(self):
        pass

    def close(self):
        pass

    def produce(self, size, count):
        rate, seconds, client_cpu = run_load_tool(None, "bench", size, count)
        return Sample(rate, seconds, 0.0, client_cpu, 0)


class BrokerPeer:
    """A broker process; each sample goes to a topic of its own, deleted afterwards."""

    topic_configs = {}

    def __init__(self, folder):
        self.broker = self.make(pathlib.Path(folder) / self.name)
        self.samples = 0

    def start(self):
        self.broker.start()
        self.warm_up()

    def close(self):
        self.broker.close()

    def warm_up(self):
        self.produce(100, 20_000)

    def produce(self, size, count):
        self.samples += 1
        topic = f"bench-{self.samples}"
        with self.broker.connect() as connection:
            error, message = connection.create_topic(topic, 1, self.topic_configs)
            if error != 0:
                raise RoundFailed(f"creating {topic}: {error} {message}")
            cpu = self.broker.cpu_seconds()
            rate, seconds, client_cpu = run_load_tool(self.broker.address, topic, size, count)
            cpu = self.broker.cpu_seconds() - cpu
            peak = self.broker.peak_rss_bytes()
            connection.delete_topic(topic)
        return Sample(rate, seconds, cpu, client_cpu, peak)


class PolylogNever(BrokerPeer):
    name = "polylog-never"
    topic_configs = {"polylog.flush": "never"}

    def make(self, folder):
        return brokers.PolylogBroker(folder, {"log.segment.delete.delay.ms": 0})


class PolylogAck(PolylogNever):
    name = "polylog-ack"
    topic_configs = {"polylog.flush": "ack"}


class KafkaPeer(BrokerPeer):
    """1 GiB of heap, the JVM's own defaults otherwise, warmed up before the first sample."""

    name = "kafka"
    warm_seconds = float(os.environ.get("POLYLOG_BENCH_WARM_SECONDS", "60"))

    def make(self, folder):
        broker = brokers.KafkaBroker(folder, {"log.segment.delete.delay.ms": 0,
                                              "log.cleaner.enable": "true"}, heap="1g")
        broker.jvm_options = ["-XX:+UseG1GC", "-Xms1g"]
        return broker

    def warm_up(self):
        spent = 0.0
        while spent < self.warm_seconds:
            spent += max(0.05, self.produce(100, 500_000).seconds)
            spent += max(0.05, self.produce(1024, 200_000).seconds)


PEERS = {peer.name: peer for peer in (MockPeer, KafkaPeer, PolylogNever, PolylogAck)}
