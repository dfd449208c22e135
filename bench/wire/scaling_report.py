"""The table and the numbers of `run.py scaling`."""

import statistics

from report import cell

HEAD = (f"{'partitions':>10}  {'':17} {'k msg/s':>8} {'MB/s':>6} {'x fewest':>8} {'x kafka':>8} "
        f"{'broker':>7} {'client':>7} {'RSS MiB':>8} {'rounds':>6}")


def median_ratio(rounds, one, other):
    """Of the rounds' own ratios of two (peer, partitions), where a round has both."""
    ratios = []
    for samples in rounds:
        rates = [samples.get(partitions, {}).get(name) for name, partitions in (one, other)]
        if None not in rates:
            ratios.append(rates[0].messages_per_second / rates[1].messages_per_second)
    return statistics.median(ratios) if ratios else None


def summary(rounds, options):
    """Per (peer, partitions): medians, and the ratios to its own rate with the fewest partitions
    and to Kafka's with as many."""
    table = {}
    fewest = min(options.partitions)
    for partitions in options.partitions:
        for name in options.peers:
            samples = [one[partitions][name] for one in rounds if name in one[partitions]]
            if not samples:
                continue
            table[name, partitions] = {
                "messages_per_second": statistics.median(s.messages_per_second for s in samples),
                "rate_to_fewest": median_ratio(rounds, (name, partitions), (name, fewest)),
                "rate_to_kafka": median_ratio(rounds, (name, partitions), ("kafka", partitions)),
                "broker_cpu_s_per_million": statistics.median(
                    s.broker_cpu_seconds / s.messages * 1e6 for s in samples),
                "client_cpu_s_per_million": statistics.median(
                    s.client_cpu_seconds / s.messages * 1e6 for s in samples),
                "peak_rss_mib": max(s.peak_rss_bytes for s in samples) / 2**20,
                "rounds": len(samples),
                "stopped": sum(s.messages < options.messages for s in samples),
            }
    return table


def print_table(mode, size, table, skipped, options):
    load = (f"{options.in_flight} requests each" if options.load == "batches"
            else "librdkafka, linger 5 ms")
    print(f"\nproduce over many partitions, {mode}, {size} B, {options.producers} producers, "
          f"acks=-1, batches of 16 KiB, {load}\n(broker, client: CPU seconds per million)")
    print(HEAD)
    for partitions in options.partitions:
        for name in options.peers:
            start = f"{partitions:10}  {name:17}"
            row = table.get((name, partitions))
            if row is None:
                why = skipped.get((name, partitions))
                print(f"{start} skipped: {why}" if why else f"{start} no quiet round")
                continue
            rate = row["messages_per_second"]
            print(f"{start} {rate / 1e3:8.1f} {rate * size / 1e6:6.0f} "
                  f"{cell(row['rate_to_fewest'], 8)} {cell(row['rate_to_kafka'], 8)} "
                  f"{cell(row['broker_cpu_s_per_million'], 7)} "
                  f"{cell(row['client_cpu_s_per_million'], 7)} "
                  f"{cell(row['peak_rss_mib'], 8, 0)} {row['rounds']:6}"
                  + (" *" if row["stopped"] else ""))
    if any(row["stopped"] for row in table.values()):
        print(f"* stopped after {options.seconds_max:.0f} s")


def as_json(table, skipped):
    return {"rows": [{"peer": name, "partitions": partitions, **row}
                     for (name, partitions), row in table.items()],
            "skipped": [{"peer": name, "partitions": partitions, "why": why}
                        for (name, partitions), why in skipped.items()]}
