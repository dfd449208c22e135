"""The scoreboard as one picture: a panel for each line of work, a bar for each contestant."""

from html import escape

COLOURS = {"polylog kafka": "#1b6ac9", "polylog rocketmq": "#3d94e0", "polylog segment": "#8bc1f2",
           "polylog journal": "#12458a", "Kafka": "#b5533c", "RocketMQ": "#d98b3a",
           "NATS": "#6b8e5a", "Redis": "#a0617f",
           "mock": "#b8bcc4", "ideal": "#b8bcc4", "the disk": "#b8bcc4"}
ORDER = list(COLOURS)
COLUMNS, WIDTH, BAR, LABEL, PAD = 2, 560, 17, 118, 14
INK, FAINT, PAPER = "#22262c", "#6b7280", "#ffffff"


def panels(result):
    """(title, unit, less is better, {name: value}) of what is drawn."""
    rows = result["rows"]
    for key in sorted(rows, key=int):
        row = rows[key]
        for cell in row.get("cells", ()):
            name = f"{key}. {SHORT[int(key)]}: {cell['cell']}, {cell['mode']}"
            if cell["metric"] == "rate":
                yield name, "k records/s", False, {who: one["rate"] / 1e3
                                                   for who, one in cell["of"].items()}
            elif cell["metric"] == "round":
                yield name, "ms a round", True, {who: one["p50_us"] / 1e3
                                                 for who, one in cell["of"].items()}
            else:
                yield f"{name}, p99", "us", True, {who: one["p99_us"]
                                                   for who, one in cell["of"].items()}
    if "7" in rows:
        yield "7. Catch-up read, cold, 4 connections", "MB/s", False, {
            "the disk": rows["7"]["limit_mb_s"],
            **{who: one["cold_4"] for who, one in rows["7"]["of"].items()}}
    if "8" in rows:
        yield (f"8. Start after kill -9, {rows['8']['gib']:g} GiB, cold cache", "s", True,
               {who: one["cold"]["ack_s"] for who, one in rows["8"]["of"].items()})
    if "9" in rows:
        yield "9. Resident memory, idle", "MiB", True, {who: one["idle_mib"]
                                                        for who, one in rows["9"]["of"].items()}


SHORT = {1: "Produce", 2: "Many partitions", 3: "Durable produce", 4: "Dirty partitions",
         5: "Latency", 14: "Unbatched"}


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 1 else f"{value:.2f}"


def text(x, y, content, size=12, fill=INK, anchor="start", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
            f'text-anchor="{anchor}" font-weight="{weight}">{escape(content)}</text>')


def panel(x, y, title, unit, less, values):
    out = [text(x, y + 12, title, 13, weight="bold"),
           text(x + WIDTH - PAD, y + 12, unit + (", less is better" if less else ""), 11, FAINT,
                "end")]
    values = {name: values[name] for name in sorted(values, key=ORDER.index)}
    most = max(values.values(), default=1) or 1
    room = WIDTH - LABEL - 90
    for i, (name, value) in enumerate(values.items()):
        top = y + 22 + i * BAR
        out.append(text(x, top + 11, name, 11))
        out.append(f'<rect x="{x + LABEL}" y="{top + 1}" width="{max(1, room * value / most):.1f}" '
                   f'height="{BAR - 4}" rx="2" fill="{COLOURS.get(name, FAINT)}"/>')
        out.append(text(x + LABEL + max(1, room * value / most) + 6, top + 11, shown(value), 11,
                        FAINT))
    return out, 22 + len(values) * BAR + 18


def draw(result):
    body = []
    tops = [64.0] * COLUMNS
    for title, unit, less, values in panels(result):
        if not values:
            continue
        column = tops.index(min(tops))
        lines, high = panel(PAD * 2 + column * (WIDTH + PAD), tops[column], title, unit, less,
                            values)
        body += lines
        tops[column] += high
    width, height = PAD * 3 + COLUMNS * (WIDTH + PAD), max(tops) + PAD
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    head = [text(PAD * 2, 28, "polylog beside other brokers, one machine, one run", 18,
                 weight="bold"),
            text(PAD * 2, 46, f"{machine['cpu']}, Linux {machine['kernel']}, {machine['time']}; "
                              f"{versions}", 11, FAINT)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
            f'viewBox="0 0 {width} {height:.0f}" font-family="system-ui, sans-serif">'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n'
            + "\n".join([*head, *body]) + "\n</svg>\n")
