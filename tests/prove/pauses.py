"""SIGSTOP for the broker and for members of a group: nothing is lost, no partition has two owners
in one generation, a member that was away for too long is fenced."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import paths
import scenario
from load import IdempotentWriter

PARTITIONS, MEMBERS = 6, 3
SETTINGS = {"group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 100,
            "offsets.topic.num.partitions": 1}


class Member:
    """One group_member.py."""

    def __init__(self, proof, broker, group, topic, number):
        self.log = proof.folder / f"{group}-{number}.jsonl"
        self.name = f"{group}-member-{number}"
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-B", paths.HERE / "group_member.py", str(broker.port), group,
                 topic, str(PARTITIONS), self.name], stdout=sink, stderr=sink,
                stdin=subprocess.DEVNULL)
        proof.closing.callback(self.close)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def told(self):
        lines = self.log.read_bytes().decode().splitlines()
        for line in lines:
            if not line.startswith("{"):
                raise scenario.Failed(f"{self.name}: {line}")
        return [json.loads(line) for line in lines if line.endswith("}")]


class Pauses(scenario.Scenario):
    name = "pauses"
    checks = ("broker and members stopped for seconds: one owner a partition and generation, "
              "commits never go back, late members are fenced, nothing acknowledged lost")
    seconds = {"ci": 60, "long": 900}

    def run(self):
        broker = self.broker(settings=SETTINGS)
        self.start(broker)
        writers, self.members = [], []
        with broker.connect() as connection:
            for layout in scenario.LAYOUTS:
                topic = f"paused-{layout}"
                self.create(connection, topic, PARTITIONS, layout)
                for partition in range(PARTITIONS):
                    session = self.history.session(f"writer-{layout}-{partition}")
                    writers.append(IdempotentWriter(broker, session, self.rng.getrandbits(32),
                                                    (topic, partition), 0.1, 1))
                self.members += [Member(self, broker, f"group-{layout}", topic, n)
                                 for n in range(MEMBERS)]
        for writer in writers:
            writer.start()
        watch = threading.Thread(target=self.watch, args=(broker,), daemon=True)
        self.ended = threading.Event()
        watch.start()
        time.sleep(2.0)
        for number in range(self.size(6, 100)):
            self.pause(broker, number)
        for writer in writers:
            writer.stop()
            self.require(writer.problem is None, writer.problem)
        places = [writer.place for writer in writers]
        self.read_finals(broker, places)
        self.await_groups()
        self.ended.set()
        watch.join(30)
        self.read_members()
        self.judge()
        self.count("acknowledged records", self.history.acknowledged())

    def pause(self, broker, number):
        """The broker, or one member of each group; shorter or longer than a session."""
        who = "broker" if number % 3 == 2 else "member"
        # A member away for longer than its session of 1.5 s is put out.
        length = self.rng.uniform(0.5, 1.0) if number % 3 == 0 else self.rng.uniform(2.5, 3.5)
        chosen = ([self.rng.choice([m for m in self.members if f"-{layout}-" in m.name])
                   for layout in scenario.LAYOUTS] if who == "member" else [])
        targets = [m.process.pid for m in chosen] or [broker.pid]
        for pid in targets:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(length)
        for pid in targets:
            os.kill(pid, signal.SIGCONT)
        self.count(f"pauses of {'the broker' if who == 'broker' else 'members'}")
        time.sleep(1.5)

    def watch(self, broker):
        """What the groups have committed, in the order in which the broker says so."""
        with broker.connect(timeout=30) as connection:
            while not self.ended.is_set():
                for layout in scenario.LAYOUTS:
                    group, topic = f"group-{layout}", f"paused-{layout}"
                    found = connection.committed(group, topic, range(PARTITIONS))
                    for partition, offset in found.items():
                        self.history.committed(group, (topic, partition), offset)
                time.sleep(0.1)

    def await_groups(self):
        """Until each group has committed up to the end of everything."""
        until = time.monotonic() + 30
        ends = {place: final.end for place, final in self.history.finals.items()}
        while time.monotonic() < until:
            done = {}
            for member in self.members:
                for line in member.told():
                    if line["kind"] == "committed":
                        topic = line["group"].replace("group-", "paused-")
                        place = (topic, line["partition"])
                        done[place] = max(done.get(place, 0), line["offset"])
            if all(done.get(place, 0) >= end for place, end in ends.items()):
                return
            time.sleep(0.3)
        behind = {place: (done.get(place), end) for place, end in ends.items()
                  if done.get(place, 0) < end}
        self.problems.append(f"groups did not come to the end within 30 s: {behind}")

    def read_members(self):
        """What the members saw, into the history."""
        for member in self.members:
            session = None
            for line in member.told():
                if line["kind"] == "owns":
                    self.history.owns(line["group"], line["generation"], line["member"],
                                      line["partitions"])
                    session = self.history.session(f"{member.name}-{line['generation']}")
                elif line["kind"] == "fenced":
                    self.count("fenced")
                elif line["kind"] == "read":
                    self.check_read(member, session, line)
        self.require(self.counts.get("fenced", 0) > 0, "no member was ever fenced")

    def check_read(self, member, session, line):
        """A member prints the beginning of each value; the final log has the whole of it."""
        topic = "paused-" + member.name.split("-")[1]
        final = self.history.finals[topic, line["partition"]]
        for offset, begin in line["records"]:
            self.require(final.values.get(offset, b"").startswith(begin.encode()[:15]),
                         f"{session.name} read {begin} at {offset} of {topic}")
        self.count("records consumed by groups", len(line["records"]))
