"""Every storage call site of the real broker fails once, in each way it can, and then the power
goes (after calls that only read, the broker is started again): what was acknowledged before or
after the fault is there.

A shim (fault_shim.c) tells call sites apart by function and stack. One run without faults lists
them; then each run lets one call of one site fail. As the power goes at the end of each run,
an acknowledgement after a failed sync is a lost record.
"""

import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

import paths
import scenario
from disks import LoopDisk, copy_image
from load import GONE, now_ms

import brokers
import kafka_wire
from record_batch import encode_batch

WRITES = ("pwritev", "ftruncate", "create", "mkdir", "rename", "fdatasync", "fsync", "syncfs",
          "utimensat")
READS = ("pread", "preadv2", "open", "stat", "fstat", "statvfs", "unlink", "rmdir")
SHORT = ("pwritev", "pread", "preadv2")
SYNCS = ("fdatasync", "fsync", "syncfs")
SETTINGS = {"log.segment.delete.delay.ms": 0,
            "log.flush.offset.checkpoint.interval.ms": 200}
JOURNAL = {"polylog.journal": "true"}


def ways(function, long):
    """How a call of this function can fail."""
    found = ["eio"]
    if function in WRITES:
        found.append("enospc")
    if function in SHORT:
        found.append("short")
    if long and function in ("open", "create"):
        found.append("emfile")
    return found


class FaultyBroker(brokers.PolylogBroker):
    """polylog with the shim, or without while `shim_env` is None."""

    shim_env = None

    def command(self):
        line = [str(part) for part in super().command()]
        if self.shim_env is None:
            return line
        return ["env", *(f"{key}={value}" for key, value in self.shim_env.items()), *line]


class CallFaults(scenario.Scenario):
    name = "call-faults"
    checks = ("each storage call site failed once with EIO, ENOSPC and a short count as far as "
              "they apply, then a power cut: no acknowledged record lost, none after a failed "
              "sync, no crash")
    seconds = {"ci": 270, "long": 3300}

    def run(self):
        self.shim = self.folder / "fault_shim.so"
        done = subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", self.shim,
                               paths.HERE / "fault_shim.c", "-ldl"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise scenario.Failed(f"the shim does not compile: {done.stderr}")
        self.disk = LoopDisk(self.quick_folder(), 256 << 20)
        self.closing.callback(self.disk.close)
        self.data = self.disk.mount_point / "data"
        planned = 0
        for settings in (SETTINGS, {**SETTINGS, **JOURNAL}):
            self.settings = settings
            self.make_base()
            planned += self.fail_each()
        self.require(self.counts.get("faults", 0) >= planned * 0.8,
                     f"of {planned} faults only {self.counts.get('faults', 0)} came to pass")

    def fail_each(self):
        sites = self.list_sites()
        plan = [(site, way) for site, (function, _) in sorted(sites.items())
                for way in ways(function, self.slice_name == "long")]
        for function, _ in sites.values():
            self.count(f"sites of {function}")
        self.rng.shuffle(plan)
        for site, way in plan:
            self.one_fault(site, way, *sites[site])
        self.count("call sites", len(sites))
        return len(plan)

    def quick_folder(self):
        """In memory where there is room: many runs, and syncs that need not be slow."""
        memory = pathlib.Path("/dev/shm")
        if not memory.is_dir() or shutil.disk_usage(memory).free < 1 << 30:
            return self.folder
        folder = pathlib.Path(tempfile.mkdtemp(prefix="polylog-prove-", dir=memory))
        self.closing.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def make_base(self):
        """A store of each layout that a kill left behind, with something to recover. A journal
        knows files by their inodes: its base is an image of the disk."""
        self.imaged = self.settings is not SETTINGS
        if self.imaged:
            self.base = self.disk.image.with_name("base.img")
            shutil.rmtree(self.data, ignore_errors=True)
        else:
            self.base = self.folder / "base"
        broker = self.broker(self.data if self.imaged else self.base, self.settings, FaultyBroker)
        broker.start()
        self.expected = {}
        with broker.connect() as connection:
            self.work(connection, random.Random(f"{self.seed}/base"), "base", self.expected)
            for layout in scenario.LAYOUTS:  # a removed topic leaves an empty journal behind
                self.send(connection, f"kept-{layout}", b"left in the journal", self.expected)
        broker.kill9()
        if self.imaged:
            self.disk.unmount()
            copy_image(self.disk.image, self.base)
            self.disk.mount()

    def work(self, connection, rng, label, acknowledged):
        """A little of everything; what was acknowledged goes into `acknowledged`. Errors are the
        point: only those of the connection end it."""
        for layout in scenario.LAYOUTS:
            for topic in (f"kept-{layout}", f"{label}-{layout}"):
                self.ask(connection.create_topic, topic, 1, {"polylog.layout": layout,
                                                             "internal.segment.bytes": 40_000})
        for serial in range(14):
            for layout in scenario.LAYOUTS:
                topic = f"{'kept' if serial % 3 else label}-{layout}"
                value = b"%s %s %d " % (label.encode(), topic.encode(), serial) + bytes(6000)
                self.send(connection, topic, value, acknowledged)
        for layout in scenario.LAYOUTS:
            self.ask(connection.list_offset, f"kept-{layout}", 0, now_ms() - rng.randrange(2000))
            self.ask(connection.fetch, f"kept-{layout}", 0, 0, max_wait_ms=0)
        self.ask(connection.delete_records, "kept-kafka", 0, 3)
        for offset in range(3):  # deleted whatever the answer was, or not
            acknowledged.get(("kept-kafka", 0), {}).pop(offset, None)
        self.ask(connection.commit, "group", "kept-kafka", {0: 5})
        for layout in scenario.LAYOUTS:
            self.ask(connection.delete_topic, f"{label}-{layout}")
            acknowledged.pop((f"{label}-{layout}", 0), None)

    @staticmethod
    def send(connection, topic, value, acknowledged):
        answer = connection.produce(topic, 0, encode_batch([(now_ms(), None, value)]),
                                    timeout_ms=3000)
        if answer.error == 0:
            acknowledged.setdefault((topic, 0), {})[answer.base_offset] = value

    @staticmethod
    def ask(question, *arguments, **options):
        """An error in the answer is as good as any other."""
        try:
            return question(*arguments, **options)
        except (TimeoutError, ConnectionError):
            raise
        except (ValueError, KeyError) as problem:
            return problem

    def fresh_data(self, synced=True):
        if self.imaged:
            self.disk.unmount()
            copy_image(self.base, self.disk.image)
            self.disk.mount()
            return
        shutil.rmtree(self.data, ignore_errors=True)
        subprocess.run(["cp", "-a", self.base, self.data], check=True)
        if synced:
            subprocess.run(["sync", "-f", self.data], check=True)

    def faulty_run(self, label, acknowledged, environment, stop=True):
        """Start, work and stop under the shim; answers how it went: ok, refused, gone, or what
        must not be."""
        broker = self.broker(self.data, self.settings, FaultyBroker)
        broker.shim_env = {"LD_PRELOAD": self.shim, "PROVE_ROOT": self.data, **environment}
        try:
            broker.start()
        except brokers.BrokerFailed as problem:
            ended = re.match(r"polylog ended with (-?\d+) ", str(problem))
            return self.ended_well(int(ended[1]) if ended else -1, broker, "refused to start")
        outcome = "ok"
        try:
            with broker.connect(timeout=8) as connection:
                self.work(connection, random.Random(label), label, acknowledged)
        except TimeoutError:
            outcome = "BAD no answer for 8 seconds"
        except GONE as problem:
            self.count("connections ended")
            print(f"the connection ended: {problem}", flush=True)
        if not broker.alive():
            return self.ended_well(broker.process.returncode, broker, "stopped by itself")
        if not stop or outcome != "ok":
            broker.kill9()
            return outcome
        try:
            broker.stop(may_fail=True)
        except brokers.BrokerFailed as problem:
            return f"BAD {problem}"
        return "ok"

    def ended_well(self, code, broker, what):
        """An exit with a message is fine, a crash is not."""
        broker.process = None
        if code > 0 and "polylog: " in broker.log_text():
            self.count(what)
            return "ok"
        return f"BAD {what} with {code}: {broker.tail()}"

    def list_sites(self):
        """site -> (function, calls), of a run without faults."""
        self.fresh_data()
        log = self.folder / "calls"
        outcome = self.faulty_run("run", {}, {"PROVE_LOG": log})
        if outcome != "ok":
            raise scenario.Failed(f"without a fault: {outcome}")
        sites = {}
        for line in log.read_text(errors="replace").splitlines():
            kind, site, function, path, *_ = line.split(" ")
            if kind == "call" and function in (*WRITES, *READS) and self.is_wanted(path, function):
                sites[site] = (function, sites.get(site, (function, 0))[1] + 1)
        self.count("storage calls of one run", sum(calls for _, calls in sites.values()))
        return sites

    def is_wanted(self, path, function):
        """The short slice has the stores' calls without a journal, and then the journal's own."""
        return (self.slice_name == "long" or self.settings is SETTINGS or function == "syncfs" or
                path.startswith(str(self.data / "journal")))

    def one_fault(self, site, way, function, calls):
        for nth in (self.rng.randint(1, calls), 1):
            log = self.folder / "fault"
            log.unlink(missing_ok=True)
            self.fresh_data(function in WRITES)
            acknowledged = {place: dict(values) for place, values in self.expected.items()}
            # A clean stop would sync what a failed sync left behind.
            cut_at_once = function in SYNCS or self.rng.random() < 0.3
            outcome = self.faulty_run("run", acknowledged, {
                "PROVE_SITE": site, "PROVE_NTH": nth, "PROVE_FAULT": way, "PROVE_LOG": log},
                not cut_at_once)
            fired = log.read_text(errors="replace").strip() if log.exists() else ""
            if fired:
                break
        else:
            self.count("faults that no run came to")
            return
        self.count("faults")
        self.count(f"faults {way}")
        if self.counts["faults"] % 50 == 0:
            print(f"{self.counts['faults']} faults", flush=True)
        where = f"{way} at call {nth} of {fired.split(' ', 1)[1]}"
        self.require(not outcome.startswith("BAD"), f"{where}: {outcome}")
        if function in WRITES:
            self.disk.cut()
            self.disk.power_on()
        for problem in self.verify(acknowledged):
            self.require(False, f"{where}: {problem}")

    def verify(self, acknowledged):
        broker = self.broker(self.data, self.settings)
        if self.imaged:
            self.journal_or_none(broker)
        before = time.monotonic()
        try:
            broker.start()
        except brokers.BrokerFailed as problem:
            return [f"does not start any more: {problem}"]
        self.slowest("slowest start, s", time.monotonic() - before)
        problems = []
        with broker.connect(timeout=30) as connection:
            there = set(connection.metadata(None))
            for place, values in acknowledged.items():
                if place[0] not in there:
                    problems.append(f"{place[0]} is gone")
                    continue
                problems += self.compare(connection, place, values)
        broker.kill9()
        return problems

    def compare(self, connection, place, values):
        try:
            found = {r.offset: r.value for r in kafka_wire.read_records(connection, *place)}
        except ValueError as problem:
            return [str(problem)]
        self.count("acknowledged records checked", len(values))
        return [f"{place[0]} offset {offset}: {value[:30]!r} became "
                f"{(found.get(offset) or b'nothing')[:30]!r}"
                for offset, value in values.items() if found.get(offset) != value]
