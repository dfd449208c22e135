"""The rows of the scoreboard that are taken in rounds, full and quick."""

from contestants import DURABLE, MEMORY, POLYLOGS
from loads import Load
from sampling import Cell
from start_up import CACHES

KIB, MIB = 1 << 10, 1 << 20
JVMS = ("Kafka", "RocketMQ")

TITLES = {
    1: "Produce into one partition (rdkafka_performance, batch.size 1,000,000, linger 5 ms)",
    2: "Produce into many partitions, batches of 16 KiB in turn, 1 KiB records, 4 connections",
    3: "Durable produce by request size, 1 KiB records, 5 requests in flight a connection",
    4: "1,000 dirty partitions, one batch of 4 KiB each, durable in one round",
    5: "Latency at 10,000 records a second of 1 KiB, one a request, 16 partitions, open loop",
    7: "Catch-up read, 16 partitions of 1 KiB records",
    8: "Start after kill -9, writes in flight",
    9: "Memory",
    14: "Unbatched requests: 100 B, 1,000 connections, one in flight each",
}


class Profile:
    """How much is done; `quick` fits into five minutes, the full one into twenty."""

    def __init__(self, quick):
        self.quick = quick
        self.minutes = 4.5 if quick else 18.5
        self.warm_seconds = 8 if quick else 60
        self.sample_seconds = 0.8 if quick else 1.5
        self.sample_bytes = (192 if quick else 512) * MIB
        self.rounds_max = 5
        self.backlog_gib = 0.25 if quick else 2.0
        self.beside_seconds = 1.5 if quick else 4
        self.caches = ("cold",) if quick else CACHES
        self.store_gib = 0.25 if quick else 2.0
        self.store_partitions = 200 if quick else 1000
        self.memory_partitions = 1_000 if quick else 10_000
        self.memory_connections = 1_000 if quick else 8_000
        self.memory_groups = 200 if quick else 1_000
        self.memory_mib = 64 if quick else 1024


def produce(profile):
    """Row 1."""
    who = ("mock", *JVMS, "NATS", "Redis", *POLYLOGS)
    cells = []
    for size, count in ((100, 3_000_000), (1024, 1_000_000)):
        if profile.quick:
            count //= 2
        # For those librdkafka does not drive: 64 KiB a request where the protocol has batches.
        load = Load(record_bytes=size, batch_bytes=64 * KIB, connections=1, in_flight=16,
                    records=count, seconds=2 * profile.sample_seconds)
        cells.append(Cell(1, "100 B" if size == 100 else "1 KiB", MEMORY, who, load,
                          librdkafka=True))
    return cells


def scaling(profile):
    """Row 2."""
    counts = (1, 1000) if profile.quick else (1, 100, 1000, 10_000)
    cells = []
    for partitions in counts:
        # RocketMQ's client would keep 10,000 queues of one topic in one route.
        who = ("ideal", "Kafka", *(("RocketMQ",) if partitions <= 1000 else ()), *POLYLOGS)
        load = Load(partitions=partitions, batch_bytes=16 * KIB, connections=4, in_flight=32,
                    records=profile.sample_bytes // KIB,
                    seconds=4 * profile.sample_seconds if partitions > 1000
                    else 2 * profile.sample_seconds)
        cells.append(Cell(2, f"{partitions:,} partitions", MEMORY, who, load))
    return cells


def durable(profile):
    """Row 3, and the same without a sync where one connection has large requests."""
    sizes = ((128, (1,)), (16, (16,))) if profile.quick else (
        (16, (1, 16)), (128, (1, 16)), (1024, (1, 16)))
    cells = []
    for kib, connections in sizes:
        for count in connections:
            who = ("ideal", *JVMS, *POLYLOGS)
            if kib == 16 and count == 16:
                who += ("Redis", "NATS")
            load = Load(batch_bytes=kib * KIB, connections=count, in_flight=5, partitions=count,
                        records=profile.sample_bytes // KIB, seconds=profile.sample_seconds)
            name = f"{kib} KiB requests, {count} connection{'s' if count > 1 else ''}"
            cells.append(Cell(3, name, DURABLE, who, load))
            if kib >= 128 and count == 1:
                cells.append(Cell(3, name, MEMORY, ("ideal", *POLYLOGS), load))
    return cells


def dirty_partitions(profile):
    """Row 4."""
    load = Load("rounds", partitions=1000, partitions_per_request=250, record_bytes=1000,
                batch_bytes=4200, connections=4, rounds=200, seconds=2 * profile.sample_seconds)
    who = ("ideal", *JVMS, *POLYLOGS, "polylog journal")
    return [Cell(4, "1,000 partitions", DURABLE, who, load, "round")]


def latency(profile):
    """Row 5."""
    load = Load("rate", partitions=16, record_bytes=1024, connections=4, rate=10_000,
                seconds=1.2 if profile.quick else 6)
    return [Cell(5, "10,000 a second", MEMORY, ("ideal", *JVMS, "NATS", "Redis", *POLYLOGS), load,
                 "latency"),
            Cell(5, "10,000 a second", DURABLE, ("ideal", *JVMS, "NATS", "Redis", *POLYLOGS),
                 load, "latency")]


def unbatched(profile):
    """Row 14."""
    load = Load(partitions=16, record_bytes=100, connections=1000, in_flight=1,
                seconds=profile.sample_seconds)
    who = ("ideal", *JVMS, "NATS", "Redis", *POLYLOGS)
    return [Cell(14, "1,000 connections", mode, who, load, raw=True) for mode in (MEMORY, DURABLE)]


# Number of the row: how its cells are made, and its share of the time that is left for rounds.
IN_ROUNDS = {1: (produce, 2.0), 2: (scaling, 4.5), 3: (durable, 3.5), 4: (dirty_partitions, 1.0),
             5: (latency, 4.0), 14: (unbatched, 2.0)}
