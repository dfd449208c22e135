"""`run.py scoreboard`: every storage layout beside Kafka, RocketMQ, NATS, Redis and the limits.

Rows 1-5 and 14 are taken in rounds in which all take turns, as many rounds as fit into the time;
rows 7-9 once. A peer that cannot be had is left out and named, with the reason. --quick does less
of everything and fits into five minutes.
"""

import pathlib
import shutil
import sys
import threading
import time
import traceback

import contestants
import paths  # noqa: F401
import brokers
import dependencies
import peer_packages
import sampling
import scoreboard_checks
import scoreboard_plot
import scoreboard_report
import scoreboard_rows
import single_rows
from contestants import ALL, BY_NAME
from load_tool import RoundFailed
from report import OUT, machine, say, write_json

NAME = "scoreboard"
SINGLE = {7: single_rows.catch_up, 8: single_rows.start_after_kill, 9: single_rows.memory_row}
ROWS = sorted((*scoreboard_rows.IN_ROUNDS, *SINGLE))
RESOLVE = {"Kafka": (dependencies.kafka,),
           "RocketMQ": (peer_packages.rocketmq, peer_packages.rocketmq_load),
           "NATS": (peer_packages.nats_server,), "Redis": (peer_packages.redis_server,),
           "ideal": (peer_packages.ideal_broker,), "mock": (dependencies.rdkafka_performance,)}
PROBLEMS = (dependencies.MissingDependency, brokers.BrokerFailed, RoundFailed, OSError)


def add_options(parser):
    parser.add_argument("--quick", action="store_true", help="less: five minutes")
    parser.add_argument("--rows", type=int, nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--peers", nargs="+", choices=list(BY_NAME), default=list(BY_NAME),
                        help="who takes part")
    parser.add_argument("--minutes", type=float, help="for everything but resolving packages")
    parser.add_argument("--plot", action="store_true",
                        help="draw the last run as build/bench/scoreboard.svg and end")


def side_by_side(action, arguments):
    threads = [threading.Thread(target=action, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Board:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.profile = scoreboard_rows.Profile(options.quick)
        self.running, self.absent, self.broken = {}, {}, {}
        self.made = []  # whatever became of them
        self.began = time.monotonic()
        self.until = self.began + 60 * (options.minutes or self.profile.minutes)
        self.result = {"machine": machine(), "quick": options.quick,
                       "versions": contestants.versions(), "rows": {}, "absent": self.absent,
                       "broken": self.broken}

    def start(self):
        """All side by side: most of it is waiting for the JVMs."""
        started = set()

        def one(contestant):
            try:
                contestant.start()
                started.add(contestant.name)
            except PROBLEMS as why:
                self.absent[contestant.name] = str(why)[:500]
                contestant.close()
                say(f"{contestant.name} is left out: {why}")
        for kind in ALL:
            if kind.name in self.options.peers:
                self.made.append(kind(self.folder))
            else:
                self.absent[kind.name] = "left out (--peers)"
        side_by_side(one, self.made)
        self.running = {contestant.name: contestant for contestant in self.made
                        if contestant.name in started}

    def warm_up(self):
        """The JVMs side by side: each has a minute of its own load behind it."""
        def one(contestant):
            try:
                contestant.warm_up(self.profile.warm_seconds)
            except (*PROBLEMS, ValueError) as why:
                say(f"{contestant.name} is left out: {why}")
                self.absent[contestant.name] = str(why)[:500]
        say(f"warming up for {self.profile.warm_seconds} s")
        side_by_side(one, self.running.values())
        for name in self.absent:
            if name in self.running:
                self.running.pop(name).close()

    def close(self):
        for contestant in self.made:
            contestant.close()

    def run(self):
        self.start()
        chosen = self.options.rows
        for row in (9, 8):  # with nothing in the brokers; and one of them is killed here
            if row in chosen:
                self.guarded(self.single, row)
        self.warm_up()
        if 7 in chosen:
            self.guarded(self.single, 7)
        self.watch = sampling.new_watch(self.folder)
        left = {row: scoreboard_rows.IN_ROUNDS[row][1] for row in chosen
                if row in scoreboard_rows.IN_ROUNDS}
        while left:
            row = next(iter(left))
            now = time.monotonic()
            share = max(0, self.until - now) * left[row] / sum(left.values())
            left.pop(row)
            self.guarded(self.in_rounds, row, now + share)

    def guarded(self, take, row, *arguments):
        """One row that breaks does not take the others with it."""
        try:
            take(row, *arguments)
        except Exception as why:  # noqa: BLE001, it is reported and the exit code says so
            traceback.print_exc()
            self.broken[row] = f"{type(why).__name__}: {why}"[:500]

    def single(self, row):
        self.say_row(row)
        room = self.folder / f"row-{row}"
        room.mkdir()
        self.result["rows"][row] = {"title": scoreboard_rows.TITLES[row],
                                    **SINGLE[row](self.running, self.profile, room)}
        shutil.rmtree(room, ignore_errors=True)
        self.refresh()
        self.save()

    def in_rounds(self, row, until):
        self.say_row(row)
        cells = scoreboard_rows.IN_ROUNDS[row][0](self.profile)
        rounds = sampling.Rounds(self.running, self.watch)
        rounds.run(cells, until, self.profile.rounds_max)
        self.result["rows"][row] = {
            "title": scoreboard_rows.TITLES[row], "noisy_groups": rounds.thrown,
            "cells": [{"cell": cell.name, "mode": cell.mode, "metric": cell.metric,
                       "record_bytes": cell.load.record_bytes,
                       "of": sampling.summary(rounds, cell),
                       "skipped": {name: why for (key, name), why in rounds.skipped.items()
                                   if key == cell.key}} for cell in cells]}
        self.refresh()
        self.save()

    def say_row(self, row):
        say(f"[{time.monotonic() - self.began:5.0f} s] row {row}: {scoreboard_rows.TITLES[row]}")

    def refresh(self):
        for contestant in self.running.values():
            contestant.fresh()

    def save(self):
        self.result["seconds"] = time.monotonic() - self.began
        self.result["checks"] = scoreboard_checks.checks(self.result["rows"])
        write_json(NAME, self.result)
        written = scoreboard_report.read(OUT / f"{NAME}.json")
        (OUT / f"{NAME}.md").write_text("\n".join(scoreboard_report.markdown(written)))


def plot():
    path = OUT / f"{NAME}.json"
    if not path.exists():
        say(f"there is no {path}: run ./dev bench scoreboard first")
        return 1
    target = OUT / f"{NAME}.svg"
    target.write_text(scoreboard_plot.draw(scoreboard_report.read(path)))
    print(target)
    return 0


def resolve(options):
    """Everything that is fetched or compiled, before the clock of the benchmark runs."""
    dependencies.programs()
    peer_packages.wire_load()
    absent = {}
    for name, steps in RESOLVE.items():
        if name not in options.peers:
            continue
        try:
            for step in steps:
                step()
        except dependencies.MissingDependency as why:
            absent[name] = str(why)
            say(f"{name} cannot be had: {why}")
    return absent


def run(options, folder):
    if options.plot:
        return plot()
    absent = resolve(options)
    options.peers = [name for name in options.peers if name not in absent]
    board = Board(options, folder)
    try:
        board.run()
    finally:
        board.close()
    board.absent.update(absent)
    board.save()
    scoreboard_report.print_board(scoreboard_report.read(OUT / f"{NAME}.json"))
    return 1 if board.broken else 0


if __name__ == "__main__":
    sys.exit("run bench/run scoreboard")
