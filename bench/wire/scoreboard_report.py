"""The table of the scoreboard, for a terminal and as Markdown."""

import json
import pathlib

HEADS = ("who", "value", "x Kafka", "x RocketMQ", "x limit", "CPU s/M", "RSS MiB", "written/acc.",
         "rounds")


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def number(value, digits=2):
    return "-" if value is None else f"{value:,.{digits}f}"


def value_text(cell, numbers):
    if cell["metric"] == "rate":
        rate = numbers["rate"]
        return f"{rate / 1e3:,.0f}k/s {numbers['megabytes_per_second']:,.0f} MB/s"
    if cell["metric"] == "round":
        return f"p50 {numbers['p50_us'] / 1e3:,.1f} p99 {numbers['p99_us'] / 1e3:,.1f} ms"
    return (f"p50 {numbers['p50_us']:,.0f} p99 {numbers['p99_us']:,.0f} "
            f"p99.9 {numbers['p999_us']:,.0f} us")


def cell_lines(cell):
    """One line for each who was measured, then who was not and why."""
    for name, numbers in cell["of"].items():
        limit = numbers.get("x_mock", numbers.get("x_ideal"))
        yield (name, value_text(cell, numbers), number(numbers.get("x_Kafka")),
               number(numbers.get("x_RocketMQ")), number(limit),
               number(numbers.get("broker_cpu_s_per_million")),
               number(numbers.get("peak_rss_mib"), 0),
               number(numbers.get("written_per_accepted")),
               str(numbers["rounds"]) + ("" if numbers["quiet"] else " ~"))
    for name, why in cell["skipped"].items():
        yield (name, f"skipped: {why[:90]}", *[""] * 7)


def single_lines(number_of_row, row):
    """Rows 7 to 9: (heads, lines)."""
    if number_of_row == 7:
        keys = (("cold_1", 0), ("cold_4", 0), ("warm_4", 0), ("cold_4_beside", 0),
                ("cpu_s_per_gb_cold", 2), ("cpu_s_per_gb_warm", 2), ("quiet_p99_us", 0),
                ("busy_p99_us", 0))
        heads = ("who", "cold x1 MB/s", "cold x4", "warm x4", "cold beside", "CPU s/GB cold",
                 "warm", "quiet p99 us", "busy p99 us")
        lines = [(name, *(number(value.get(key), digits) for key, digits in keys))
                 for name, value in row["of"].items()]
        lines.append(("the disk", number(row["limit_mb_s"], 0), *[""] * 7))
    elif number_of_row == 8:
        heads = ("who", "warm: ack s", "all fetched s", "MiB scanned", "cold: ack s",
                 "all fetched s", "MiB scanned", "peak RSS MiB")
        lines = []
        for name, value in row["of"].items():
            cells = []
            for cache in ("warm", "cold"):
                one = value.get(cache, {})
                scanned = one.get("scanned_bytes")
                cells += [number(one.get("ack_s")), number(one.get("all_fetched_s")),
                          number(None if scanned is None else scanned / 2**20, 1)]
            peak = value.get("cold", {}).get("peak_rss_bytes")
            lines.append((name, *cells, number(None if peak is None else peak / 2**20, 0)))
    else:
        keys = ("idle_mib", "kib_per_connection", "kib_per_partition", "partitions_mib",
                "kib_per_group", "stored_mib", "restarted_mib")
        heads = ("who", "idle MiB", "KiB/connection", "KiB/partition", "MiB with them",
                 "KiB/group", f"+{row['stored_mib']} MiB stored", "restarted MiB")
        lines = [(name, *(number(value.get(key)) for key in keys))
                 for name, value in row["of"].items()]
    lines += [(name, f"skipped: {why[:90]}", *[""] * (len(heads) - 2))
              for name, why in row["skipped"].items()]
    return heads, lines


def tables(result):
    """Every table as (title, heads, lines)."""
    for key in sorted(result["rows"], key=int):
        row = result["rows"][key]
        title = f"{key}. {row['title']}"
        if "cells" not in row:
            yield title, *single_lines(int(key), row)
            continue
        for cell in row["cells"]:
            yield f"{title}: {cell['cell']}, {cell['mode']}", HEADS, list(cell_lines(cell))
    heads = ("row", "budget", "asked", "worst", "of", "")
    lines = [(str(one["row"]), one["budget"], ("≥ " if one["at_least"] else "≤ ")
              + f"{one['limit']:g}", f"{one['value']:g}", one["of"],
              "met" if one["met"] else "MISSED") for one in result["checks"]]
    yield "Budgets (the worst layout counts)", heads, lines


def print_board(result):
    for title, heads, lines in tables(result):
        print(f"\n{title}")
        wide = [max(len(str(line[i])) for line in [heads, *lines]) if i != 1 else
                max([len(heads[1]), *(len(line[1]) for line in lines
                                      if not line[1].startswith("skipped"))])
                for i in range(len(heads))]
        for line in [heads, *lines]:
            print("  " + "  ".join(f"{text:<{wide[i]}}" if i < 2 else f"{text:>{wide[i]}}"
                                   for i, text in enumerate(line)).rstrip())
    for name, why in result["absent"].items():
        print(f"left out: {name}: {why}")
    for row, why in result.get("broken", {}).items():
        print(f"row {row} broke: {why}")
    met = sum(one["met"] for one in result["checks"])
    print(f"\n{met} of {len(result['checks'])} budgets met, {result['seconds'] / 60:.1f} minutes, "
          + ", ".join(f"{name} {version}" for name, version in result["versions"].items()))
    print("limit: librdkafka's mock broker in row 1, else an ideal broker that only receives, "
          "checks, stores and answers; ~ no round was quiet")


def markdown(result):
    for title, heads, lines in tables(result):
        yield f"**{title}**\n"
        yield "| " + " | ".join(heads) + " |"
        yield "|" + "|".join(["---", "---", *["---:"] * (len(heads) - 2)]) + "|"
        for line in lines:
            yield "| " + " | ".join(line) + " |"
        yield ""
