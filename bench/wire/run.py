#!/usr/bin/env python3
"""Wire benchmarks: polylog beside librdkafka's mock broker and a real Kafka 4.x.

    run.py produce     rate and broker CPU, one partition, 100 B and 1 KiB
    run.py start-up    start after kill -9 with some GiB on disk
    run.py memory      resident memory idle and with many partitions
    run.py all

One table on standard output, the numbers as JSON in build/bench/. Peers take turns within a
round; figures are medians over the rounds that the noise guard let through, ratios the medians of
the rounds' own ratios.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import guard
import peers
import brokers
import dependencies
import kafka_wire
from record_batch import encode_batch

OUT = dependencies.SOURCE_DIR / "build" / "bench"
BASELINE = "mock"


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_json(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(value, indent=2) + "\n")
    say(f"wrote {path}")


def machine():
    model = next((line.split(":")[1].strip() for line in
                  pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "?")
    kernel = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout
    return {"cpu": model, "kernel": kernel.strip(), "kafka": dependencies.kafka_version(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def one_round(running, size, count):
    return {name: peer.produce(size, count) for name, peer in running.items()}


def quiet_rounds(running, size, count, rounds, watch):
    """Rounds that count; at most twice as many are tried."""
    kept, thrown = [], 0
    before = watch.read()
    while len(kept) < rounds and thrown <= rounds:
        samples = one_round(running, size, count)
        after = watch.read()
        if watch.quiet(before, after):
            kept.append(samples)
            say(f"{size} B, round {len(kept)}: " + ", ".join(
                f"{name} {sample.messages_per_second / 1e6:.2f} M/s"
                for name, sample in samples.items()))
        else:
            thrown += 1
            say(f"{size} B: a round is thrown away, the machine is busy {after}")
        before = after
    return kept, thrown


def summary(kept, count):
    """Medians per peer, and of the per-round ratios to the mock and to Kafka."""
    table = {}
    for name in kept[0]:
        samples = [samples[name] for samples in kept]
        row = {"messages_per_second": statistics.median(s.messages_per_second for s in samples),
               "broker_cpu_s_per_million": statistics.median(
                   s.broker_cpu_seconds / count * 1e6 for s in samples),
               "client_cpu_s_per_million": statistics.median(
                   s.client_cpu_seconds / count * 1e6 for s in samples),
               "peak_rss_mib": max(s.peak_rss_bytes for s in samples) / 2**20}
        for other in (BASELINE, "kafka"):
            if other in kept[0]:
                row[f"rate_to_{other}"] = statistics.median(
                    k[name].messages_per_second / k[other].messages_per_second for k in kept)
        if "kafka" in kept[0] and name != BASELINE:
            row["cpu_to_kafka"] = statistics.median(
                k[name].broker_cpu_seconds / max(1e-9, k["kafka"].broker_cpu_seconds)
                for k in kept)
        table[name] = row
    return table


def print_table(size, table):
    print(f"\nproduce, one partition, {size} B, acks=-1, batch.size 1,000,000, linger 5 ms")
    print(f"{'':15} {'M msg/s':>8} {'MB/s':>7} {'x mock':>7} {'x kafka':>8} "
          f"{'CPU s/M':>8} {'x kafka':>8} {'RSS MiB':>8}")
    for name, row in table.items():
        rate = row["messages_per_second"]

        def cell(key, width, digits=2):
            value = row.get(key)
            return " " * (width - 1) + "-" if value is None else f"{value:{width}.{digits}f}"

        print(f"{name:15} {rate / 1e6:8.2f} {rate * size / 1e6:7.0f} {cell('rate_to_mock', 7)} "
              f"{cell('rate_to_kafka', 8)} {cell('broker_cpu_s_per_million', 8, 3)} "
              f"{cell('cpu_to_kafka', 8)} {cell('peak_rss_mib', 8, 0)}")


def produce(options, folder):
    running = {}
    result = {"machine": machine(), "messages": options.messages, "sizes": {}}
    try:
        for name in options.peers:
            peer = peers.PEERS[name](folder)
            running[name] = peer
            say(f"starting {name}")
            peer.start()
        watch = guard.Guard(folder)
        for _ in range(5):
            watch.read()
        for size in options.sizes:
            kept, thrown = quiet_rounds(running, size, options.messages, options.rounds, watch)
            if not kept:
                say(f"{size} B: no round was quiet enough; run again on a quiet machine")
                continue
            table = summary(kept, options.messages)
            result["sizes"][size] = {"rounds": len(kept), "thrown_away": thrown, "peers": table}
            print_table(size, table)
    finally:
        for peer in running.values():
            peer.close()
    write_json("produce", result)
    return 0 if len(result["sizes"]) == len(options.sizes) else 1


def fill(broker, gib, partitions):
    """Writes `gib` of 1 KiB records over some partitions; the last writes stay in flight."""
    values = [(int(time.time() * 1000), None, b"x" * 1024)] * 900
    batch = encode_batch(values)
    total = int(gib * 2**30 / len(batch))
    with broker.connect(timeout=60) as connection:
        error, message = connection.create_topic("store", partitions, {"polylog.flush": "never"}
                                                 if broker.kind == "polylog" else {})
        if error != 0:
            raise peers.RoundFailed(f"creating the store: {error} {message}")
        waiting = []
        for number in range(total):
            waiting.append(connection.send_produce("store", number % partitions, batch))
            if len(waiting) > 16:
                connection.receive_produce(waiting.pop(0))
        for correlation in waiting:
            connection.receive_produce(correlation)
        for number in range(partitions):
            connection.send_produce("store", number, batch)


def first_service(broker, partitions):
    """Seconds from exec until a produce is acknowledged and every partition answers a fetch."""
    started = time.monotonic()
    broker.start(wait=False)
    while True:
        try:
            connection = broker.connect(timeout=60)
            break
        except OSError:
            time.sleep(0.002)
    with connection:
        connected = time.monotonic() - started
        connection.wait_for_topic("store", partitions, seconds=120)
        batch = encode_batch([(int(time.time() * 1000), None, b"first")])
        if connection.produce("store", 0, batch).error != 0:
            raise peers.RoundFailed("the first produce was refused")
        acked = time.monotonic() - started
        for partition in range(partitions):
            got = connection.fetch("store", partition, 0, max_wait_ms=0, max_bytes=4096)
            if got.error != 0 or not got.records:
                raise peers.RoundFailed(f"partition {partition} answered {got.error}")
    return connected, acked, time.monotonic() - started


def drop_page_cache():
    """Cold means that nothing of the store is in memory."""
    subprocess.run(["sync"], check=True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def start_up(options, folder):
    gib, partitions = options.gib, options.partitions
    result = {"machine": machine(), "gib": gib, "partitions": partitions, "rows": []}
    print(f"\nstart after kill -9, {gib} GiB in {partitions} partitions, seconds from exec")
    print(f"{'':15} {'cache':>6} {'port':>7} {'ack':>7} {'all fetched':>12} {'peak RSS MiB':>13}")
    for kind in options.brokers:
        broker = make_broker(kind, folder)
        try:
            broker.start()
            fill(broker, gib, partitions)
            for cache in ("warm", "cold"):
                broker.kill9()
                if cache == "cold":
                    drop_page_cache()
                times = first_service(broker, partitions)
                rss = broker.peak_rss_bytes() / 2**20
                port, ack, all_fetched = times
                print(f"{kind:15} {cache:>6} {port:7.2f} {ack:7.2f} {all_fetched:12.2f} "
                      f"{rss:13.0f}")
                result["rows"].append({"broker": kind, "cache": cache, "port_s": port, "ack_s": ack,
                                       "all_fetched_s": all_fetched,
                                       "peak_rss_mib": rss})
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("start-up", result)
    return 0


def make_broker(kind, folder):
    folder = pathlib.Path(folder) / f"{kind}-store"
    if kind == "polylog":
        return brokers.PolylogBroker(folder)
    broker = brokers.KafkaBroker(folder, heap="1g")
    broker.jvm_options = ["-XX:+UseG1GC"]
    return broker


def touch_partitions(broker, partitions):
    """One record in each of many partitions, over topics of at most 1,000."""
    batch = encode_batch([(int(time.time() * 1000), None, b"one")])
    with broker.connect(timeout=120) as connection:
        for first in range(0, partitions, 1000):
            count = min(1000, partitions - first)
            topic = f"many-{first}"
            error, message = connection.create_topic(topic, count)
            if error != 0:
                raise peers.RoundFailed(f"creating {topic}: {error} {message}")
            waiting = []
            for partition in range(count):
                waiting.append(connection.send_produce(topic, partition, batch))
                if len(waiting) > 8:
                    _expect_ack(connection, waiting.pop(0))
            for correlation in waiting:
                _expect_ack(connection, correlation)


def _expect_ack(connection, correlation):
    answer = connection.receive_produce(correlation)
    if answer.error != kafka_wire.NONE:
        raise peers.RoundFailed(f"a partition answered {answer.error}")


def memory(options, folder):
    result = {"machine": machine(), "partitions": options.partitions_many, "rows": []}
    print(f"\nresident memory, MiB; {options.partitions_many} partitions with one record each")
    print(f"{'':15} {'idle':>7} {'partitions':>11} {'KiB each':>9} {'restarted':>10} "
          f"{'start s':>8}")
    for kind in options.brokers:
        broker = make_broker(kind, folder)
        try:
            broker.start()
            time.sleep(1)
            idle = broker.rss_bytes()
            touch_partitions(broker, options.partitions_many)
            time.sleep(1)
            loaded = broker.rss_bytes()
            broker.kill9()
            before = time.monotonic()
            broker.start()
            start = time.monotonic() - before
            time.sleep(1)
            again = broker.rss_bytes()
            each = (loaded - idle) / 1024 / options.partitions_many
            print(f"{kind:15} {idle / 2**20:7.1f} {loaded / 2**20:11.1f} {each:9.2f} "
                  f"{again / 2**20:10.1f} {start:8.2f}")
            result["rows"].append({"broker": kind, "idle_mib": idle / 2**20,
                                   "partitions_mib": loaded / 2**20, "kib_each": each,
                                   "restarted_mib": again / 2**20, "start_s": start})
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("memory", result)
    return 0


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("produce", "start-up", "memory", "all"))
    parser.add_argument("--messages", type=int, default=3_000_000, help="per sample")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="+", choices=peers.PEERS, default=list(peers.PEERS))
    parser.add_argument("--brokers", nargs="+", choices=("polylog", "kafka"),
                        default=["polylog"], help="start-up, memory")
    parser.add_argument("--gib", type=float, default=10.0, help="start-up: size of the store")
    parser.add_argument("--partitions", type=int, default=1000, help="start-up")
    parser.add_argument("--partitions-many", type=int, default=10_000, help="memory")
    parser.add_argument("--folder", help="where data goes; default: a scratch folder")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    dependencies.resolve_all()
    dependencies.rdkafka_performance()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="polylog-bench-", dir=options.folder) as folder:
        for name, body in (("produce", produce), ("start-up", start_up), ("memory", memory)):
            if options.what in (name, "all"):
                failed |= body(options, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
