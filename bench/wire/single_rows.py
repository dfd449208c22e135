"""The rows of the scoreboard that are measured once: catch-up reads, starts after kill -9,
memory."""

import os
import pathlib
import shutil
import socket
import struct
import threading
import time

import loads
import memory
import paths  # noqa: F401
import brokers
import contestants
import start_up
from contestants import BY_NAME, LAYOUTS, MEMORY, POLYLOGS
from load_tool import RoundFailed
from report import say

KIB, MIB = 1 << 10, 1 << 20
READ_PARTITIONS = 16
PRODUCER_BYTES_PER_SECOND = 100_000_000
API_VERSIONS_REQUEST = struct.pack(">ihhih", 10, 18, 0, 1, -1)


# --- row 7 -------------------------------------------------------------------------------------


def drop_from_page_cache(folder):
    """Of the files of a folder only; what is dirty is written first."""
    os.sync()
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file() and path.stat().st_size:
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def sequential_read(folder, mib=512):
    """Bytes a second of one cold file: the disk's share of a catch-up read."""
    path = pathlib.Path(folder) / "sequential.dat"
    block = memoryview(bytearray(os.urandom(MIB)))
    with open(path, "wb", buffering=0) as file:
        for _ in range(mib):
            file.write(block)
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass
    took = time.monotonic() - before
    path.unlink()
    return mib * MIB / took


class Beside(threading.Thread):
    """A producer of 100 MB/s at a fixed rate, beside whatever runs meanwhile."""

    def __init__(self, contestant, topic, seconds):
        super().__init__()
        each = loads.Load(batch_bytes=16 * KIB).records_per_batch
        rate = PRODUCER_BYTES_PER_SECOND / (each * KIB)
        self.contestant, self.topic = contestant, topic
        self.load = loads.Load("rate", READ_PARTITIONS, batch_bytes=16 * KIB, connections=4,
                               rate=rate, seconds=seconds)
        self.numbers = self.problem = None

    def run(self):
        try:
            self.numbers = self.contestant.load(MEMORY, self.topic, self.load)
        except (RoundFailed, OSError) as problem:
            self.problem = problem

    def result(self):
        self.join()
        if self.problem:
            raise RoundFailed(str(self.problem))
        return self.numbers


def catch_up_of(contestant, profile):
    """Rates in MB/s, latencies of the producer in us."""
    backlog = contestant.make(MEMORY, READ_PARTITIONS)
    beside = contestant.make(MEMORY, READ_PARTITIONS)
    records = int(profile.backlog_gib * 2**30 / KIB)
    contestant.load(MEMORY, backlog, loads.Load(
        partitions=READ_PARTITIONS, batch_bytes=128 * KIB, connections=4, in_flight=5,
        records=records, seconds=60))
    address, data = contestant.broker(MEMORY).address, contestant.broker(MEMORY).data_dir

    def read(connections, cold):
        if cold:
            drop_from_page_cache(data)
        cpu = contestant.broker(MEMORY).cpu_seconds()
        got = loads.fetch(address, backlog, READ_PARTITIONS, connections)
        if got["records"] < records:
            raise RoundFailed(f"{got['records']} of {records} records were read")
        return (got["records"] * KIB / got["seconds"] / 1e6,
                (contestant.broker(MEMORY).cpu_seconds() - cpu) / got["bytes"] * 1e9)

    row = {}
    row["cold_1"], row["cpu_s_per_gb_cold"] = read(1, True)
    row["cold_4"], _ = read(4, True)
    row["warm_4"], row["cpu_s_per_gb_warm"] = read(4, False)
    producer = Beside(contestant, beside, profile.beside_seconds)
    producer.start()
    row["quiet_p99_us"] = producer.result()["p99_us"]
    producer = Beside(contestant, beside, profile.beside_seconds)
    drop_from_page_cache(data)
    producer.start()
    row["cold_4_beside"], _ = read(4, False)
    while producer.is_alive():
        read(4, True)
    row["busy_p99_us"] = producer.result()["p99_us"]
    contestant.drop(MEMORY, backlog)
    contestant.drop(MEMORY, beside)
    return row


def catch_up(running, profile, folder):
    result = {"limit_mb_s": sequential_read(folder) / 1e6, "of": {}, "skipped": {},
              "gib": profile.backlog_gib}
    say(f"  sequential read of a cold file: {result['limit_mb_s']:.0f} MB/s")
    for name in ("Kafka", *POLYLOGS):
        if name not in running:
            continue
        try:
            with contestants.alone(running, name):
                result["of"][name] = catch_up_of(running[name], profile)
        except (RoundFailed, OSError, ValueError) as why:
            result["skipped"][name] = str(why)[:300]
        say(f"  {name}: {result['of'].get(name) or result['skipped'][name]}")
    return result


# --- row 8 -------------------------------------------------------------------------------------


class StoreOptions:
    """What start_up.measure wants to know."""

    def __init__(self, profile):
        self.partitions, self.tail_mib = profile.store_partitions, 100.0 * profile.store_gib / 2


def kafka_store(folder):
    broker = brokers.KafkaBroker(folder / "kafka-store", heap=contestants.HEAP)
    broker.jvm_options = ["-XX:+UseG1GC"]
    broker.files_max = contestants.OPEN_FILES
    return broker


def start_of_rocketmq(running, profile):
    """Its own client writes; what is timed is the first message that is acknowledged."""
    contestant = running["RocketMQ"]
    topic = contestant.make(MEMORY, 100)
    contestant.load(MEMORY, topic, loads.Load(
        partitions=100, batch_bytes=64 * KIB, connections=4, in_flight=8,
        records=int(profile.store_gib * 2**30 / KIB), seconds=120))
    rows = {}
    broker = contestant.broker(MEMORY)
    for cache in profile.caches:
        broker.kill9()
        if cache == "cold":
            start_up.drop_page_cache()
        started = time.monotonic()
        broker.start(wait=False)
        while True:
            try:
                broker.send_once(topic, b"first")
                break
            except (OSError, RoundFailed):
                if time.monotonic() - started > 120:
                    raise RoundFailed("RocketMQ takes no message after 120 s") from None
                time.sleep(0.01)
        rows[cache] = {"ack_s": time.monotonic() - started}
    return rows


def start_after_kill(running, profile, folder):
    result = {"of": {}, "skipped": {}, "gib": profile.store_gib,
              "partitions": profile.store_partitions,
              "title": f"Start after kill -9, {profile.store_partitions:,} partitions, "
                       f"{profile.store_gib:g} GiB, writes in flight"}

    def note(name, measure, who=None):
        try:
            with contestants.alone(running, who):
                result["of"][name] = measure()
        except (RoundFailed, OSError, ValueError, TimeoutError, brokers.BrokerFailed) as why:
            result["skipped"][name] = str(why)[:300]
        say(f"  {name}: {result['of'].get(name) or result['skipped'][name]}")

    def stored(broker, layout):
        try:
            rows = start_up.measure(broker, layout, profile.store_gib, StoreOptions(profile),
                                    show=lambda row: None, caches=profile.caches)
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
        return {row["cache"]: {key: row[key] for key in (
            "port_s", "ack_s", "all_fetched_s", "scanned_bytes", "peak_rss_bytes")}
            for row in rows}

    for layout in LAYOUTS:
        note(f"polylog {layout}", lambda layout=layout: stored(
            polylog(folder / f"{layout}-store", {}), layout))
    if "Kafka" in running:
        note("Kafka", lambda: stored(kafka_store(folder), "kafka"))
    if "RocketMQ" in running:
        note("RocketMQ", lambda: start_of_rocketmq(running, profile), "RocketMQ")
    return result


# --- row 9 -------------------------------------------------------------------------------------


def polylog(folder, settings):
    broker = brokers.PolylogBroker(folder, {**contestants.polylog_settings(), **settings})
    broker.files_max = contestants.OPEN_FILES
    return broker


def open_connections(port, count, greeting=API_VERSIONS_REQUEST):
    """Connections that have said something once, and are silent since."""
    links = []
    for _ in range(count):
        link = socket.create_connection(("127.0.0.1", port), timeout=30)
        links.append(link)
        if greeting:
            link.sendall(greeting)
            link.recv(4096)
    return links


def idle_connections(broker, count, greeting):
    """KiB of resident memory of each."""
    before = broker.rss_bytes()
    links = open_connections(broker.port, count, greeting)
    time.sleep(0.5)
    after = broker.rss_bytes()
    for link in links:
        link.close()
    return (after - before) / 1024 / count


def memory_of(layout, profile, folder):
    broker = polylog(folder / f"{layout}-memory", {"polylog.layout": layout,
                                                   "polylog.flush": "never"})
    row = {}
    try:
        broker.start()
        time.sleep(1)
        row["idle_mib"] = broker.rss_bytes() / MIB
        row["kib_per_connection"] = idle_connections(broker, profile.memory_connections,
                                                     API_VERSIONS_REQUEST)
        before = broker.rss_bytes()
        memory.touch_partitions(broker, profile.memory_partitions)
        time.sleep(1)
        after = broker.rss_bytes()
        row["partitions_mib"] = after / MIB
        row["kib_per_partition"] = (after - before) / 1024 / profile.memory_partitions
        with broker.connect(timeout=60) as connection:
            for number in range(profile.memory_groups):
                connection.commit(f"group-{number}", "many-0", {0: 1})
        groups = broker.rss_bytes()
        row["kib_per_group"] = (groups - after) / 1024 / profile.memory_groups
        loads.over_the_wire("kafka", broker.address, "many-0", loads.Load(
            partitions=1000, batch_bytes=64 * KIB, connections=1, in_flight=5,
            records=profile.memory_mib * KIB, seconds=30))
        time.sleep(1)
        row["stored_mib"] = (broker.rss_bytes() - groups) / MIB
        broker.kill9()
        broker.start()
        time.sleep(1)
        row["restarted_mib"] = broker.rss_bytes() / MIB
    finally:
        broker.close()
        shutil.rmtree(broker.data_dir, ignore_errors=True)
    return row


def memory_row(running, profile, folder):
    result = {"of": {}, "skipped": {}, "partitions": profile.memory_partitions,
              "connections": profile.memory_connections, "groups": profile.memory_groups,
              "stored_mib": profile.memory_mib}
    for layout in LAYOUTS:
        try:
            with contestants.alone(running):
                result["of"][f"polylog {layout}"] = memory_of(layout, profile, folder)
        except (RoundFailed, OSError, ValueError, TimeoutError, brokers.BrokerFailed) as why:
            result["skipped"][f"polylog {layout}"] = str(why)[:300]
    greetings = {"Kafka": API_VERSIONS_REQUEST, "RocketMQ": b"", "Redis": b"*1\r\n$4\r\nPING\r\n",
                 "NATS": b'CONNECT {"verbose":false}\r\nPING\r\n'}
    for name, greeting in greetings.items():
        if name in running:
            one = running[name]
            result["of"][name] = {"idle_mib": one.idle_rss_bytes / MIB}
            try:
                result["of"][name]["kib_per_connection"] = idle_connections(
                    one.broker(MEMORY), profile.memory_connections, greeting)
            except OSError as why:
                result["skipped"][name] = f"connections: {why}"
    for name, row in result["of"].items():
        say(f"  {name}: " + ", ".join(f"{key} {value:.2f}" for key, value in row.items()))
    return result


assert set(POLYLOGS) == {f"polylog {layout}" for layout in LAYOUTS} <= set(BY_NAME)
