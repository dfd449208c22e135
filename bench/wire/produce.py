"""`run.py produce`: rate and broker CPU into one partition."""

import statistics

import guard
import peers
from report import cell, machine, say, write_json

BASELINE = "mock"


def add_options(parser):
    parser.add_argument("--messages", type=int, default=3_000_000, help="per sample")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", nargs="+", choices=peers.PEERS, default=list(peers.PEERS))


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
        print(f"{name:15} {rate / 1e6:8.2f} {rate * size / 1e6:7.0f} "
              f"{cell(row.get('rate_to_mock'), 7)} {cell(row.get('rate_to_kafka'), 8)} "
              f"{cell(row['broker_cpu_s_per_million'], 8, 3)} "
              f"{cell(row.get('cpu_to_kafka'), 8)} {cell(row['peak_rss_mib'], 8, 0)}")


def run(options, folder):
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
