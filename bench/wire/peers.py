"""What a produce round is measured against: librdkafka's mock broker (the load tool's own
ceiling), a real Kafka 4.x, and polylog with and without a sync behind each acknowledgement.

All are driven by the same librdkafka load tool on 127.0.0.1.
"""

import os
import pathlib
from typing import NamedTuple

import load_tool
import paths  # noqa: F401
import brokers
from load_tool import LibrdkafkaLoad, RoundFailed

CLIENT = ("batch.size=1000000", "linger.ms=5", "queue.buffering.max.messages=2000000",
          "queue.buffering.max.kbytes=2097151", "batch.num.messages=1000000",
          "message.max.bytes=1000000")
WARM_SECONDS = float(os.environ.get("POLYLOG_BENCH_WARM_SECONDS", "60"))


class Sample(NamedTuple):
    """One run of the load tool."""

    messages_per_second: float
    seconds: float
    broker_cpu_seconds: float  # over the run; the mock's cannot be told from the client's
    client_cpu_seconds: float
    peak_rss_bytes: int
    messages: int


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
        done = load_tool.run(None, LibrdkafkaLoad("bench", size, count, CLIENT))
        return Sample(done.rate, done.seconds, 0.0, done.client_cpu_seconds, 0, done.messages)


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

    def sample(self, load):
        """One measured run into a topic that exists."""
        cpu = self.broker.cpu_seconds()
        done = load_tool.run(self.broker.address, load)
        cpu = self.broker.cpu_seconds() - cpu
        return Sample(done.rate, done.seconds, cpu, done.client_cpu_seconds,
                      self.broker.peak_rss_bytes(), done.messages)

    def produce(self, size, count):
        self.samples += 1
        topic = f"bench-{self.samples}"
        with self.broker.connect() as connection:
            error, message = connection.create_topic(topic, 1, self.topic_configs)
            if error != 0:
                raise RoundFailed(f"creating {topic}: {error} {message}")
            sample = self.sample(LibrdkafkaLoad(topic, size, count, CLIENT))
            connection.delete_topic(topic)
        return sample


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

    def make(self, folder):
        broker = brokers.KafkaBroker(folder, {"log.segment.delete.delay.ms": 0,
                                              "log.cleaner.enable": "true"}, heap="1g")
        broker.jvm_options = ["-XX:+UseG1GC", "-Xms1g"]
        return broker

    def warm_up(self):
        spent = 0.0
        while spent < WARM_SECONDS:
            spent += max(0.05, self.produce(100, 500_000).seconds)
            spent += max(0.05, self.produce(1024, 200_000).seconds)


PEERS = {peer.name: peer for peer in (MockPeer, KafkaPeer, PolylogNever, PolylogAck)}
