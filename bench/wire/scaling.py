"""`run.py scaling`: what many partitions cost, in each storage layout and beside a real Kafka.

Several producers write batches of 16 KiB to one topic, to its partitions in turn. One run covers
all partition counts, without a sync behind each acknowledgement and with one. --load librdkafka
takes librdkafka's load tool instead, each record to a random partition: with many partitions that
measures librdkafka (the column "client"), not the broker.
"""

import os
import pathlib
import resource
import shutil
import time

import guard
import load_tool
import paths  # noqa: F401
import peers
import brokers
import scaling_report
from kafka_wire import NONE, Writer
from load_tool import BatchLoad, LibrdkafkaLoad, RoundFailed
from report import machine, say, write_json

CREATE_PARTITIONS = 37
POLICY_VIOLATION = 44  # Kafka's answer to a request that makes more than some thousand partitions
CREATED_AT_ONCE = 5000
# Topics of so many partitions are made once and written to in every round: Kafka would go on
# deleting them while the next one is measured.
REUSED_FROM = 1000
OPEN_FILES = min(200_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
# A queue that is never what limits; without the sticky partitioner each record goes to a partition
# of its own.
CLIENT = ("batch.size=16384", "linger.ms=5", "queue.buffering.max.messages=500000",
          "queue.buffering.max.kbytes=1048576", "sticky.partitioning.linger.ms=0")
TRIES = 3  # of a group of samples until one is quiet


class Skipped(Exception):
    """This peer cannot take part, and why."""


class PolylogLayout(peers.BrokerPeer):
    def make(self, folder):
        broker = brokers.PolylogBroker(folder, {"log.segment.delete.delay.ms": 0})
        broker.files_max = OPEN_FILES
        return broker

    def configs(self, durable):
        return {"polylog.layout": self.layout, "polylog.flush": "ack" if durable else "never"}


class PolylogKafka(PolylogLayout):
    name = "polylog-kafka"
    layout = "kafka"


class PolylogRocketmq(PolylogLayout):
    name = "polylog-rocketmq"
    layout = "rocketmq"


class Kafka(peers.KafkaPeer):
    def make(self, folder):
        broker = super().make(folder)
        broker.files_max = OPEN_FILES
        return broker

    def configs(self, durable):
        return {"flush.messages": 1} if durable else {}


PEERS = {peer.name: peer for peer in (Kafka, PolylogKafka, PolylogRocketmq)}


def add_options(parser):
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 100, 1000, 10_000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024])
    parser.add_argument("--messages", type=int, default=2_000_000, help="per sample")
    parser.add_argument("--producers", type=int, default=4)
    parser.add_argument("--in-flight", type=int, default=32, help="requests of each producer")
    parser.add_argument("--load", choices=("batches", "librdkafka"), default="batches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--modes", nargs="+", choices=("memory", "durable"),
                        default=["memory", "durable"],
                        help="durable: a sync behind each acknowledgement")
    parser.add_argument("--seconds-max", type=float, default=20.0, help="of a sample")
    parser.add_argument("--kafka-durable-max", type=int, default=1000,
                        help="most partitions of Kafka with flush.messages=1")


def add_partitions(connection, topic, partitions):
    writer = Writer().array(1).string(topic).put("i", partitions).array(None).put("ib", 120_000, 0)
    reader = connection.request(CREATE_PARTITIONS, 1, writer.data)
    reader.get("i")
    reader.array()
    reader.string()
    return reader.get("h"), reader.string()


def make_topic(connection, topic, partitions, configs):
    try:
        return connection.create_topic(topic, partitions, configs)
    except TimeoutError:
        return NONE, None  # made; its leaders are waited for elsewhere


def create(broker, topic, partitions, configs):
    """Makes the topic and waits until all of it has a leader."""
    with broker.connect(timeout=300) as connection:
        error, message = make_topic(connection, topic, partitions, configs)
        if error == POLICY_VIOLATION and partitions > CREATED_AT_ONCE:
            error, message = make_topic(connection, topic, CREATED_AT_ONCE, configs)
            if error == NONE:
                error, message = add_partitions(connection, topic, partitions)
        if error != NONE:
            raise Skipped(message or f"the broker refuses the topic, error {error}")
        connection.wait_for_topic(topic, partitions, seconds=300)


class Contestant:
    """A running peer, and its topics for one mode."""

    def __init__(self, peer, options, durable):
        self.peer, self.options, self.durable = peer, options, durable
        self.topics = {}  # partitions -> name
        self.made = 0

    def topic(self, partitions):
        if partitions not in self.topics:
            if self.peer.name == "kafka" and self.durable and (
                    partitions > self.options.kafka_durable_max):
                raise Skipped("left out, it would take hours (--kafka-durable-max)")
            self.made += 1
            name = f"scaling-{partitions}-{self.made}"
            began = time.monotonic()
            create(self.peer.broker, name, partitions, self.peer.configs(self.durable))
            # Every partition has its files before the clock runs, as Kafka's have.
            load_tool.run(self.peer.broker.address, BatchLoad(name, 100, partitions, partitions,
                                                              batch_bytes=1))
            self.topics[partitions] = name
            say(f"{self.peer.name}: {partitions} partitions made in "
                f"{time.monotonic() - began:.1f} s")
        return self.topics[partitions]

    def sample(self, partitions, size):
        load = self.load(self.topic(partitions), partitions, size)
        os.sync()  # what the one before left behind is not this one's to write
        sample = self.peer.sample(load)
        if sample.messages == 0:
            raise Skipped(f"nothing was acknowledged within {self.options.seconds_max:.0f} s")
        if partitions < REUSED_FROM:
            self.drop(partitions)
        return sample

    def load(self, topic, partitions, size):
        options = self.options
        if options.load == "librdkafka":
            return LibrdkafkaLoad(topic, size, options.messages, CLIENT, None, options.producers,
                                  options.seconds_max)
        return BatchLoad(topic, size, options.messages, partitions, in_flight=options.in_flight,
                         producers=options.producers, seconds_max=options.seconds_max)

    def drop(self, partitions):
        with self.peer.broker.connect(timeout=300) as connection:
            connection.delete_topic(self.topics.pop(partitions))


def one_group(contestants, partitions, size, skipped):
    """A sample of each that can take part."""
    samples = {}
    for name, contestant in contestants.items():
        if (name, partitions) in skipped:
            continue
        try:
            samples[name] = contestant.sample(partitions, size)
        except Skipped as why:
            skipped[name, partitions] = str(why)
            say(f"{name}, {partitions} partitions: skipped: {why}")
    return samples


def quiet_group(contestants, partitions, size, skipped, watch):
    """The first group of samples that the noise guard lets through, or nothing."""
    for _ in range(TRIES):
        os.sync()
        before = watch.read()
        samples = one_group(contestants, partitions, size, skipped)
        os.sync()
        after = watch.read()
        if not samples:
            return {}
        if watch.quiet(before, after):
            say(f"{size} B, {partitions} partitions: " + ", ".join(
                f"{name} {sample.messages_per_second / 1e3:.0f} k/s"
                for name, sample in samples.items()))
            return samples
        say(f"{size} B, {partitions} partitions: thrown away, the machine is busy {before} {after}")
    return {}


def run_mode(options, folder, mode):
    """All rounds of one mode, with brokers of its own: (rounds per size, skipped)."""
    running, skipped = {}, {}
    rounds = {size: [] for size in options.sizes}
    try:
        for name in options.peers:
            peer = PEERS[name](pathlib.Path(folder) / mode)
            running[name] = Contestant(peer, options, mode == "durable")
            say(f"{mode}: starting {name}")
            peer.start()
        watch = guard.Guard(folder)
        for _ in range(5):
            watch.read()
        for size in options.sizes:
            for _ in range(options.rounds):
                rounds[size].append({
                    partitions: quiet_group(running, partitions, size, skipped, watch)
                    for partitions in options.partitions})
    finally:
        for contestant in running.values():
            contestant.peer.close()
        shutil.rmtree(pathlib.Path(folder) / mode, ignore_errors=True)
    return rounds, skipped


def need_room(options, folder):
    """What stays on the disk at worst: nothing of a commit log is freed with its topic."""
    one = options.messages * max(options.sizes)
    kept = sum(partitions >= REUSED_FROM for partitions in options.partitions)
    samples = len(options.partitions) + kept * (len(options.peers) - 1)
    need = options.rounds * len(options.sizes) * samples * one
    free = shutil.disk_usage(folder).free
    if free < need:
        raise RoundFailed(f"{need / 2**30:.0f} GiB are needed in {folder}, "
                          f"{free / 2**30:.0f} GiB are free; take fewer --rounds or --messages")


def run(options, folder):
    need_room(options, folder)
    result = {"machine": machine(), "messages": options.messages, "producers": options.producers,
              "load": options.load, "in_flight": options.in_flight, "modes": {}}
    complete = True
    for mode in options.modes:
        (pathlib.Path(folder) / mode).mkdir()
        rounds, skipped = run_mode(options, folder, mode)
        result["modes"][mode] = {}
        for size in options.sizes:
            table = scaling_report.summary(rounds[size], options)
            scaling_report.print_table(mode, size, table, skipped, options)
            result["modes"][mode][size] = scaling_report.as_json(table, skipped)
            complete &= all((name, partitions) in table or (name, partitions) in skipped
                            for name in options.peers for partitions in options.partitions)
        write_json("scaling", result)
    if not complete:
        say("some samples were never quiet enough; run again on a quiet machine")
    return 0 if complete else 1
