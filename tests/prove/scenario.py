"""What every scenario starts from: a seed, a size, a scratch folder, a history, a verdict."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import history
import paths
import stores

import brokers
import kafka_log
import kafka_wire

LAYOUTS = ("kafka", "rocketmq", "segment")
# Small files everywhere, so that a second of load rolls some; nothing is deleted by age.
BROKER = {"log.retention.hours": -1, "log.segment.bytes": 1 << 20,
          "log.segment.delete.delay.ms": 200, "polylog.journal.bytes": 1 << 20,
          **stores.SMALL_SIZES.polylog_settings()}
SMALL_TOPIC = {"internal.segment.bytes": 60_000, "index.interval.bytes": 1024}


class Failed(Exception):
    """A promise is broken, or the scenario could not do its work."""


class Scenario:
    """One proof. Subclasses say what they are in the class and do it in run().

    `alone`: measures times, so that nothing else may run beside it. `builds`: what it needs that
    `./dev prove` has to compile, as preset:target.
    """

    name = ""
    checks = ""          # for the table: what was held against what
    alone = False
    builds = ()
    seconds = {"ci": 120, "long": 1800}  # its expected length, for the time-out

    def __init__(self, seed, slice_name):
        self.seed, self.slice_name = seed, slice_name
        self.rng = random.Random(f"{seed}/{self.name}")
        self.journal_rng = random.Random(f"{seed}/{self.name}/journal")
        self.history = history.History()
        self.counts, self.figures, self.problems = {}, {}, []
        self.closing = contextlib.ExitStack()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"polylog-prove-{self.name}-"))
        self.closing.callback(self._clean)

    def run(self):
        raise NotImplementedError

    def size(self, ci, long):
        return ci if self.slice_name == "ci" else long

    # What came of it

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def figure(self, what, value):
        self.figures[what] = value

    def slowest(self, what, seconds):
        self.figures[what] = max(self.figures.get(what, 0.0), round(seconds, 3))

    def require(self, condition, text):
        """Notes a broken promise and goes on."""
        if not condition:
            print(text, flush=True)
            self.problems.append(text)

    def judge(self):
        """Holds the history against the rules."""
        for anomaly in self.history.check():
            self.problems.append(str(anomaly))
        self.count("operations checked", self.history.size())

    # Brokers

    def broker(self, data_dir=None, settings=None, kind=brokers.PolylogBroker):
        """A broker that ends with the scenario, not started yet."""
        given = dict(item.split("=", 1) for item in given_settings())
        broker = kind(data_dir or self.folder / "data", {**BROKER, **(settings or {}), **given})
        broker.output = self.folder / f"broker-{broker.port}.out"
        self.closing.callback(broker.close)
        return broker

    def start(self, broker):
        before = time.monotonic()
        broker.start()
        self.slowest("slowest start, s", time.monotonic() - before)
        if "journal: " in broker.log_text():
            self.count("starts that put a journal's records back")

    def journal_or_none(self, broker):
        """Drawn for its next start, unless --set says it: whatever the last run left in a journal
        is put back in either case."""
        if not any(item.startswith("polylog.journal=") for item in given_settings()):
            broker.settings["polylog.journal"] = self.journal_rng.choice(("true", "false"))
        return broker.settings.get("polylog.journal") == "true"

    def create(self, connection, topic, partitions, layout, configs=None, small=True):
        configs = {"polylog.layout": layout, **(SMALL_TOPIC if small else {}), **(configs or {})}
        error, message = connection.create_topic(topic, partitions, configs)
        if error:
            raise Failed(f"creating {topic}: {error} {message}")
        self.history.created(topic)

    def read_finals(self, broker, places):
        """Every log from its beginning to its end, into the history."""
        with broker.connect(timeout=60) as connection:
            there = set(connection.metadata(None))
            for topic in sorted(self.history.topics - there):
                self.problems.append(f"topic {topic} was created and is gone")
            for place in sorted(places):
                if place[0] in there:
                    self.read_final(connection, place)

    def read_final(self, connection, place):
        start = connection.list_offset(*place, kafka_wire.EARLIEST).offset
        end = connection.list_offset(*place, kafka_wire.LATEST).offset
        try:
            records = [(r.offset, r.value) for r in kafka_wire.read_records(connection, *place)]
        except ValueError as problem:
            self.problems.append(f"{place[0]}-{place[1]} does not read: {problem}")
            return
        self.require(end == max([o for o, _ in records], default=end - 1) + 1,
                     f"{place[0]}-{place[1]} ends at {end}, its last record is at "
                     f"{max([o for o, _ in records], default=None)}")
        self.history.final(place, start, end, records)

    def check_store(self, broker, closed=True):
        """What a stopped broker left, looked at by readers that share no code with it."""
        complaints = kafka_log.check_log_dir(broker.log_dir, closed, decode=False)
        self.problems += [f"Kafka's files: {complaint}" for complaint in complaints[:5]]
        store = broker.data_dir / "rocketmq"
        if store.exists():
            self.count("RocketMQ records checked in the store",
                       stores.note_rocketmq(self.history, store, stores.SMALL_SIZES, closed))

    def _clean(self):
        if os.environ.get("POLYLOG_TEST_KEEP") != "1":
            shutil.rmtree(self.folder, ignore_errors=True)

    def outcome(self):
        """Runs the scenario; answers its row."""
        started = time.monotonic()
        try:
            with self.closing:
                self.run()
        except (Failed, brokers.BrokerFailed, OSError, ValueError) as problem:
            self.problems.append(f"{type(problem).__name__}: {problem}")
        return {"scenario": self.name, "counts": self.counts, "figures": self.figures,
                "checks": self.checks, "seed": self.seed, "slice": self.slice_name,
                "seconds": round(time.monotonic() - started, 1), "problems": self.problems,
                "verdict": "failed" if self.problems else "ok"}


def given_settings():
    """What --set says of every broker."""
    return os.environ.get("POLYLOG_PROVE_SET", "").split()


def command_of(name, slice_name, seed):
    settings = "".join(f" --set {item}" for item in given_settings())
    return f"./dev prove --slice {slice_name} --only {name} --seed {seed}{settings}"


class Child:
    """One scenario as a process of its own group, so that it can be ended with all it started."""

    def __init__(self, scenario, seed, slice_name, results):
        self.scenario, self.seed, self.slice_name = scenario, seed, slice_name
        self.result = results / f"{scenario.name}.json"
        self.log = results / f"{scenario.name}.log"
        self.result.unlink(missing_ok=True)
        self.started = time.monotonic()
        self.limit = 3 * scenario.seconds[slice_name] + 60
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(
                [paths.HERE / "run", "--child", scenario.name, "--seed", str(seed), "--slice",
                 slice_name, "--result", self.result],
                stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, start_new_session=True)

    def over(self):
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.started > self.limit:
            self.end()
            return True
        return False

    def end(self):
        """First politely: a scenario has disks to unmount."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def row(self):
        if self.result.exists():
            return json.loads(self.result.read_text())
        tail = self.log.read_text(errors="replace")[-2000:]
        return {"scenario": self.scenario.name, "counts": {}, "figures": {},
                "checks": self.scenario.checks, "seed": self.seed, "slice": self.slice_name,
                "seconds": round(time.monotonic() - self.started, 1), "verdict": "failed",
                "problems": [f"ended with {self.process.returncode} and no result:\n{tail}"]}
