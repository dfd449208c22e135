"""The budgets of the scoreboard: what each asks for, of whom, and whether it was met.

The worst of the three layouts counts unless a budget names one.
"""

POLYLOG = "polylog "
JOURNAL = "polylog journal"  # the kafka layout on a journal
# Layouts whose own files stand behind the page cache are allowed less with requests of 1 MiB.
BEHIND_PAGE_CACHE = ("polylog kafka", "polylog segment")


def checks(rows):
    """Of the rows that are there: {"row", "budget", "limit", "value", "met", "of"}."""
    rows = {int(row): value for row, value in rows.items()}
    found = []
    for row, judge in sorted(JUDGES.items()):
        if row in rows:
            found += [one for one in judge(rows[row]) if one is not None]
    return found


def worst(row, budget, values, limit, least, digits=2):
    """One check over {name: value}; `least`: the value has to be that at least."""
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        return None
    name = (min if least else max)(values, key=values.get)
    value = values[name]
    return {"row": row, "budget": budget, "limit": limit, "at_least": least,
            "value": round(value, digits), "of": name,
            "met": value >= limit if least else value <= limit}


def ours(cell, key):
    return {name: numbers.get(key) for name, numbers in cell["of"].items()
            if name.startswith(POLYLOG)}


def cell_ratio(row, cell, peer, limit, least, only=None):
    values = {name: value for name, value in ours(cell, f"x_{peer}").items()
              if only is None or name in only}
    what = {"rate": "rate", "latency": "p99", "round": "round"}[cell["metric"]]
    layouts = "" if only is None else " (" + ", ".join(
        name.removeprefix(POLYLOG) for name in only) + ")"
    return worst(row, f"{cell['cell']}, {cell['mode']}: {what} beside {peer}{layouts}", values,
                 limit, least)


def of_mode(row, mode):
    return [cell for cell in row["cells"] if cell["mode"] == mode]


def produce(row):
    for cell in row["cells"]:
        yield cell_ratio(1, cell, "mock", 0.85, True)
        yield cell_ratio(1, cell, "Kafka", 1.5, True)
        kafka = cell["of"].get("Kafka", {}).get("broker_cpu_s_per_million")
        if kafka:
            yield worst(1, f"{cell['cell']}: broker CPU beside Kafka",
                        {name: value / kafka for name, value in
                         ours(cell, "broker_cpu_s_per_million").items() if value is not None},
                        0.25, False)


def scaling(row):
    by_count = {int(cell["cell"].split()[0].replace(",", "")): cell for cell in row["cells"]}
    fewest, most = min(by_count), max(by_count)
    for layouts, limit in ((("polylog kafka",), 0.5),
                           (("polylog rocketmq", "polylog segment"), 0.7)):
        ratios = {}
        for name in layouts:
            one = by_count[fewest]["of"].get(name)
            many = by_count[most]["of"].get(name)
            ratios[name] = many["rate"] / one["rate"] if one and many else None
        yield worst(2, f"rate with {most:,} partitions beside {fewest:,}, "
                       f"{' and '.join(name.removeprefix(POLYLOG) for name in layouts)}",
                    ratios, limit, True)
    for count, limit in ((1000, 3.0), (10_000, 5.0)):
        if count in by_count:
            yield cell_ratio(2, by_count[count], "Kafka", limit, True)
    if 1000 in by_count:
        yield cell_ratio(2, by_count[1000], "RocketMQ", 2.0, True)


def durable(row):
    for cell in of_mode(row, "durable"):
        if cell["cell"].startswith("1024"):
            yield cell_ratio(3, cell, "ideal", 0.5, True, BEHIND_PAGE_CACHE)
            yield cell_ratio(3, cell, "ideal", 0.75, True, ("polylog rocketmq",))
        else:
            yield cell_ratio(3, cell, "ideal", 0.75, True)
        yield cell_ratio(3, cell, "Kafka", 5.0, True)
        yield cell_ratio(3, cell, "RocketMQ", 5.0, True)
        redis = cell["of"].get("Redis")
        if redis:
            yield worst(3, f"{cell['cell']}: rate beside Redis, appendfsync always",
                        {name: rate / redis["rate"] for name, rate in ours(cell, "rate").items()},
                        2.0, True)
    for cell in of_mode(row, "memory"):
        same = next((one for one in of_mode(row, "durable") if one["cell"] == cell["cell"]), None)
        if same:
            memory = ours(cell, "rate")
            yield worst(3, f"{cell['cell']}: durable beside not durable",
                        {name: rate / memory[name] for name, rate in ours(same, "rate").items()
                         if memory.get(name)}, 0.8, True)


def dirty_partitions(row):
    cell = row["cells"][0]
    kafka = cell["of"].get("Kafka")
    rounds = {name: value for name, value in ours(cell, "p50_us").items() if value}
    journal = {name: rounds.pop(name) for name in (JOURNAL,) if name in rounds}
    for of, with_it in ((rounds, ""), (journal, ", with the journal")):
        yield worst(4, f"round of 1,000 partitions, ms{with_it}",
                    {name: value / 1000 for name, value in of.items()}, 10.0, False)
        if kafka:
            yield worst(4, f"rounds beside Kafka, flush.messages=1{with_it}",
                        {name: kafka["p50_us"] / value for name, value in of.items()}, 20.0, True)


def latency(row):
    for cell in row["cells"]:
        if cell["mode"] == "memory":
            yield cell_ratio(5, cell, "Kafka", 0.3, False)
            yield cell_ratio(5, cell, "RocketMQ", 0.3, False)
        else:
            yield worst(5, "durable p50, us", ours(cell, "p50_us"), 275.0, False, 0)
            yield worst(5, "durable p99, us", ours(cell, "p99_us"), 1500.0, False, 0)


def catch_up(row):
    polylogs = {name: value for name, value in row["of"].items() if name.startswith(POLYLOG)}
    yield worst(7, "cold read beside the disk", {name: max(value["cold_1"], value["cold_4"])
                                                 / row["limit_mb_s"]
                                                 for name, value in polylogs.items()}, 0.85, True)
    if "Kafka" in row["of"]:
        yield worst(7, "warm read beside Kafka", {name: value["warm_4"]
                                                  / row["of"]["Kafka"]["warm_4"]
                                                  for name, value in polylogs.items()}, 2.0, True)
    yield worst(7, "producers' p99 beside quiet", {name: value["busy_p99_us"]
                                                   / value["quiet_p99_us"]
                                                   for name, value in polylogs.items()},
                1.5, False)


def start_after_kill(row):
    for cache, limit in (("warm", 0.5), ("cold", 1.5)):
        values = {name: value[cache]["ack_s"] for name, value in row["of"].items()
                  if cache in value}
        yield worst(8, f"first acknowledgement, {cache}, s",
                    {name: value for name, value in values.items() if name.startswith(POLYLOG)},
                    limit, False)
        for peer in ("Kafka", "RocketMQ"):
            if peer in values:
                yield worst(8, f"start beside {peer}, {cache}",
                            {name: values[peer] / value for name, value in values.items()
                             if name.startswith(POLYLOG)}, 10.0, True)


def memory(row):
    polylogs = {name: value for name, value in row["of"].items() if name.startswith(POLYLOG)}
    for key, budget, limit in (("idle_mib", "idle, MiB", 12.0),
                               ("kib_per_partition", "a partition, KiB", 1.0),
                               ("kib_per_connection", "an idle connection, KiB", 1.0)):
        yield worst(9, budget, {name: value.get(key) for name, value in polylogs.items()}, limit,
                    False)


def unbatched(row):
    for cell in row["cells"]:
        yield cell_ratio(14, cell, "ideal", 0.6 if cell["mode"] == "memory" else 0.5, True)
        yield cell_ratio(14, cell, "Kafka", 4.0, True)
        yield cell_ratio(14, cell, "RocketMQ", 4.0, True)
        nats = cell["of"].get("NATS")
        if nats:
            yield worst(14, f"{cell['mode']}: rate beside NATS",
                        {name: rate / nats["rate"] for name, rate in ours(cell, "rate").items()},
                        1.0, True)


JUDGES = {1: produce, 2: scaling, 3: durable, 4: dirty_partitions, 5: latency, 7: catch_up,
          8: start_after_kill, 9: memory, 14: unbatched}
