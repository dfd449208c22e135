"""One sample of one contestant, metered; and the rounds of a row, guarded against noise."""

import os
import pathlib
import statistics
import time
from typing import NamedTuple

import guard
import loads
from contestants import DURABLE, MEMORY, alone
from load_tool import RoundFailed
from report import say
from scaling import Skipped

KEPT_FROM = 1000  # partitions: such topics are made once for a row
GUARD_READINGS = 5
WINDOW_MAX = 1024  # single records of a connection


class Cell(NamedTuple):
    """One line of work of a row, for everybody who can do it."""

    row: int
    name: str
    mode: str
    who: tuple  # names, in the order of a round
    load: loads.Load
    metric: str = "rate"  # rate, latency or round
    librdkafka: bool = False  # Kafka's protocol is loaded with rdkafka_performance
    raw: bool = False  # RocketMQ without its own client

    @property
    def key(self):
        return f"{self.name}, {self.mode}"


class Meter:
    """CPU seconds, peak memory and bytes written of a process, from now on."""

    def __init__(self, broker):
        self.broker = broker
        if broker is None:
            return
        pathlib.Path(f"/proc/{broker.pid}/clear_refs").write_text("5")  # peak RSS begins anew
        self.cpu, self.written = broker.cpu_seconds(), written_bytes(broker)

    def read(self):
        if self.broker is None:
            return {}
        return {"broker_cpu_seconds": self.broker.cpu_seconds() - self.cpu,
                "peak_rss_bytes": self.broker.peak_rss_bytes(),
                "written_bytes": written_bytes(self.broker) - self.written}


def written_bytes(broker):
    """What the process has dirtied in files, or written past the page cache."""
    lines = pathlib.Path(f"/proc/{broker.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def load_for(contestant, load):
    """The same bytes under way for a protocol whose requests have one record."""
    if contestant.protocol in ("nats", "redis") and load.batch_bytes:
        in_flight = min(WINDOW_MAX, load.in_flight * load.records_per_batch)
        return load._replace(batch_bytes=0, in_flight=in_flight)
    return load


def take_sample(contestant, cell, kept):
    load = load_for(contestant, cell.load)
    slot = (contestant.name, cell.mode, load.partitions)
    topic = kept.get(slot) or contestant.make(cell.mode, load.partitions)
    if load.partitions >= KEPT_FROM:
        kept[slot] = topic
    os.sync()  # what the one before left behind is not this one's to write
    meter = Meter(contestant.broker(cell.mode))
    if cell.librdkafka and hasattr(contestant, "librdkafka"):
        numbers = contestant.librdkafka(cell.mode, topic, load.record_bytes, load.records)
    elif cell.raw and contestant.raw:
        numbers = contestant.load_raw(cell.mode, topic, load)
    else:
        numbers = contestant.load(cell.mode, topic, load)
    numbers.update(meter.read())
    if slot not in kept:
        contestant.drop(cell.mode, topic)
    if not numbers["records"]:
        raise RoundFailed("nothing was acknowledged in time")
    numbers["rate"] = numbers["records"] / max(numbers["seconds"], 1e-6)
    return numbers


class Rounds:
    """All cells of a row in turn, again and again until its time is used up."""

    def __init__(self, running, watch):
        self.running, self.watch = running, watch
        self.samples = {}  # (cell key, name) -> list of (quiet, numbers)
        self.skipped = {}  # (cell key, name) -> why
        self.thrown = 0

    def run(self, cells, until, rounds_max):
        kept = {}
        began = time.monotonic()
        for number in range(rounds_max):
            for cell in cells:
                self._group(cell, kept)
            spent = (time.monotonic() - began) / (number + 1)
            if time.monotonic() + spent > until:
                break
        for (name, mode, _), topic in kept.items():
            self.running[name].drop(mode, topic)

    def _group(self, cell, kept):
        before = self.watch.read()
        taken = {}
        for name in cell.who:
            if name not in self.running or (cell.key, name) in self.skipped:
                continue
            try:
                with alone(self.running, name):
                    taken[name] = take_sample(self.running[name], cell, kept)
            except (RoundFailed, Skipped, TimeoutError, ConnectionError, ValueError) as why:
                self.skipped[cell.key, name] = str(why)[:300]
                say(f"  {cell.key}: {name} skipped: {str(why)[:300]}")
        after = self.watch.read()
        quiet = self.watch.quiet(before, after)
        self.thrown += not quiet
        for name, numbers in taken.items():
            self.samples.setdefault((cell.key, name), []).append((quiet, numbers))
        noise = f"  (noisy: {before} {after})"
        say(f"  {cell.key}: " + ", ".join(f"{name} {short(cell, numbers)}"
                                          for name, numbers in taken.items())
            + ("" if quiet else noise))


def short(cell, numbers):
    if cell.metric == "rate":
        return f"{numbers['rate'] / 1e3:.0f}k/s"
    if cell.metric == "round":
        return f"{numbers['p50_us'] / 1e3:.1f} ms"
    return f"{numbers['p50_us']:.0f}/{numbers['p99_us']:.0f} us"


def summary(rounds, cell, peers=("Kafka", "RocketMQ", "ideal", "mock")):
    """Per contestant: medians, and the medians of the rounds' own ratios to these peers. Of the
    quiet rounds, or of all when there is none."""
    table = {}
    taken = {name: rounds.samples.get((cell.key, name), []) for name in cell.who}
    quiet_any = any(quiet for samples in taken.values() for quiet, _ in samples)
    for name, samples in taken.items():
        if not samples:
            continue
        chosen = [numbers for quiet, numbers in samples if quiet or not quiet_any]
        if not chosen:
            chosen = [numbers for _, numbers in samples]
        table[name] = _medians(cell, chosen)
        table[name].update(rounds=len(chosen), quiet=quiet_any)
        for peer in peers:
            ratio = _ratio(cell, samples, taken.get(peer, []), quiet_any)
            if ratio is not None:
                table[name][f"x_{peer}"] = ratio
    return table


def value_of(cell, numbers):
    """What the cell compares: more is better for a rate, less for the others."""
    return {"rate": numbers["rate"], "latency": numbers.get("p99_us", 0),
            "round": numbers.get("p50_us", 0)}[cell.metric]


def _ratio(cell, mine, theirs, quiet_any):
    ratios = [value_of(cell, own) / max(value_of(cell, other), 1e-9)
              for (quiet, own), (_, other) in zip(mine, theirs) if quiet or not quiet_any]
    return statistics.median(ratios) if ratios else None


def _medians(cell, samples):
    def median(of):
        values = [of(numbers) for numbers in samples]
        return None if None in values else statistics.median(values)

    row = {"rate": median(lambda n: n["rate"]),
           "megabytes_per_second": median(lambda n: n["rate"] * cell.load.record_bytes / 1e6),
           "client_cpu_s_per_million": median(lambda n: n["cpu_seconds"] / n["records"] * 1e6)}
    if "broker_cpu_seconds" in samples[0]:
        row.update(
            broker_cpu_s_per_million=median(
                lambda n: n["broker_cpu_seconds"] / n["records"] * 1e6),
            peak_rss_mib=max(n["peak_rss_bytes"] for n in samples) / 2**20,
            written_per_accepted=median(
                lambda n: n["written_bytes"] / (n["records"] * cell.load.record_bytes)))
    if cell.metric != "rate":
        for name in ("p50_us", "p99_us", "p999_us", "max_us"):
            row[name] = median(lambda n, name=name: n[name])
    return row


def new_watch(folder):
    watch = guard.Guard(folder)
    for _ in range(GUARD_READINGS):
        watch.read()
    return watch


MODES = (MEMORY, DURABLE)
