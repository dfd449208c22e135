"""The scenarios behind the cells of the client matrix. Each raises CellFailed or returns."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import kafka_wire
from record_batch import encode_batch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))
import contract  # noqa: E402

PARTITIONS = 4
START = int(time.time() - 3600) * 1000
PROGRAM_SECONDS = 90
# Quick to notice who comes and goes.
SETTINGS = {"log.retention.hours": -1, "offsets.topic.num.partitions": 4,
            "group.initial.rebalance.delay.ms": 0, "group.consumer.heartbeat.interval.ms": 500,
            "group.consumer.min.heartbeat.interval.ms": 500}
LAYOUTS = ("kafka", "rocketmq", "segment")


class CellFailed(Exception):
    """The client or the broker did not do what the cell demands."""


def demand(condition, message):
    if not condition:
        raise CellFailed(message)


class Program:
    """One run of a client's driver; its output goes to a file, read while it runs."""

    def __init__(self, bench, client, command, **options):
        argv, env = client.command()
        self.name = f"{command}-{bench.serial()}"
        self.output = bench.folder / f"{self.name}.out"
        self.errors = bench.folder / f"{self.name}.err"
        flags = [part for key, value in options.items() for part in (f"--{key}", str(value))]
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            self.process = subprocess.Popen(
                [str(a) for a in argv] + [command, "--bootstrap", bench.broker.address, *flags],
                stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=dict(os.environ, **env))
        bench.programs.append(self)
        self.read_to = 0
        self.events = []

    def refresh(self):
        """The events so far; a line still being written waits for the next call."""
        with open(self.output, "rb") as source:
            source.seek(self.read_to)
            data = source.read()
        whole = data[:data.rfind(b"\n") + 1]
        self.read_to += len(whole)
        for line in whole.splitlines():
            if line.startswith(b"{"):
                self.events.append(json.loads(line))
        return self.events

    def told(self, name):
        return [event[name] for event in self.refresh() if name in event]

    def rounds(self, name):
        """What was told up to each "done"."""
        found, now = [], []
        for event in self.refresh():
            if name in event:
                now.append(event[name])
            if "done" in event:
                found.append(now)
                now = []
        return found

    def complaint(self):
        text = self.errors.read_text(errors="replace")[-1500:]
        notes = self.told("note")[-5:]
        return f"{self.name}: notes {notes}, stderr:\n{text}"

    def finish(self, seconds=PROGRAM_SECONDS):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise CellFailed(f"not done in {seconds} s: {self.complaint()}") from None
        done = self.told("done")
        demand(code == 0 and done, f"ended with {code}: {self.complaint()}")
        return done[0]

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


class Member(Program):
    """A member of a group, running until leave()."""

    def __init__(self, bench, client, topic, group, protocol):
        self.stop_file = bench.folder / f"stop-{bench.serial()}"
        super().__init__(bench, client, "consume", topic=topic, group=group,
                         stop=self.stop_file, protocol=protocol)

    def records(self):
        return [tuple(r) for r in self.told("record")]

    def commits(self):
        return [pair for pairs in self.told("committed") for pair in pairs]

    def ask_to_leave(self):
        self.stop_file.touch()

    def leave(self):
        self.ask_to_leave()
        self.finish(40)


class Stream:
    """Numbered records written by hand to every partition, through a broker that may be away."""

    def __init__(self, bench, topic):
        self.bench, self.topic = bench, topic
        self.connection = None
        bench.streams.append(self)
        self.number = 0
        self.acked = []  # (partition, offset, value)
        self.ends = dict.fromkeys(range(PARTITIONS), 0)

    def write(self, count=1, seconds=40):
        """`count` records to every partition, each acknowledged."""
        until = time.monotonic() + seconds
        for partition in range(PARTITIONS):
            values = [f"line {self.number + n}" for n in range(count)]
            self.number += count
            stamp = START + self.number
            batch = encode_batch([(stamp, None, v.encode()) for v in values], "none")
            base = self._acknowledged(partition, batch, until)
            self.acked += [(partition, base + n, v) for n, v in enumerate(values)]
            self.ends[partition] = base + count

    def _acknowledged(self, partition, batch, until):
        while True:
            try:
                if self.connection is None:
                    self.connection = self.bench.broker.connect()
                got = self.connection.produce(self.topic, partition, batch)
                if got.error == kafka_wire.NONE:
                    return got.base_offset
                problem = f"error {got.error}"
                demand(got.error in kafka_wire.RETRIABLE, f"produce answered {problem}")
            except OSError as error:
                problem = str(error)
                self.close()
            demand(time.monotonic() < until, f"nothing can be written: {problem}")
            time.sleep(0.05)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Bench:
    """What the scenarios share: the broker, a folder, what they started."""

    def __init__(self, broker, folder):
        self.broker, self.folder = broker, folder
        self.programs, self.streams = [], []
        self.number = self.turn = 0
        folder.mkdir(exist_ok=True)

    def serial(self):
        self.number += 1
        return self.number

    def topic(self, name, partitions=PARTITIONS, layout="kafka"):
        configs = {"polylog.layout": layout} if self.broker.kind == "polylog" else {}
        with self.broker.connect() as connection:
            error, message = connection.create_topic(name, partitions, configs)
        demand(error == 0, f"creating {name}: {error} {message}")
        return name

    def next_layout(self):
        """Every layout in its turn: clients notice nothing of it."""
        self.turn += 1
        return LAYOUTS[self.turn % len(LAYOUTS)]

    def run(self, client, command, **options):
        program = Program(self, client, command, **options)
        program.finish()
        return program

    def end_programs(self):
        for program in self.programs:
            program.end()
        for stream in self.streams:
            stream.close()
        self.programs.clear()
        self.streams.clear()


# Producing.

def produced(bench, client, pairs, idempotent=False, count=400):
    """One topic a codec and layout, all written by one run of the program, read by another."""
    wide = client.partitions
    codecs = [codec for codec, _ in pairs]
    topics = [f"{client.name}-{'idempotent' if idempotent else 'plain'}-{codec}-{layout}"
              for codec, layout in pairs]
    for topic, (_, layout) in zip(topics, pairs):
        bench.topic(topic, wide, layout)
    flags = {"topic": ",".join(topics), "partitions": wide, "count": count}
    bench.run(client, "produce", codec=",".join(codecs), prefix=",".join(topics),
              idempotent=int(idempotent), **flags)
    rounds = bench.run(client, "read", **flags).rounds("record")
    demand(len(rounds) == len(topics), f"read {len(rounds)} topics of {len(topics)}")
    for topic, (codec, layout), read in zip(topics, pairs, rounds):
        expected = {p: [(contract.key_of(n), contract.value_of(topic, n))
                        for n in range(count) if n % wide == p] for p in range(wide)}
        check_stored(bench, topic, codec if layout == "kafka" else None, idempotent, expected)
        for partition, records in expected.items():
            got = [(o, k, v) for p, o, k, v in read if p == partition]
            demand(got == [(o, k, v) for o, (k, v) in enumerate(records)],
                   f"{topic}-{partition}: read {len(got)} records, first {got[:2]}")


def check_stored(bench, topic, codec, idempotent, expected):
    """Without a codec: a layout of single records keeps no batch's codec and producer."""
    stored, ids = set(), set()
    with bench.broker.connect() as connection:
        for partition, pairs in expected.items():
            batches = kafka_wire.read_all(connection, topic, partition)
            # librdkafka leaves a batch plain that compression would not shrink: tiny ones.
            stored |= {b.codec for b in batches if b.count > 20}
            ids |= {b.producer_id >= 0 for b in batches}
            got = [(r.key.decode(), r.value.decode()) for b in batches for r in b.records()]
            demand(got == pairs,
                   f"{topic}-{partition}: stored {len(got)} of {len(pairs)}, first {got[:2]}")
    demand(codec is None or stored == {codec}, f"{topic} is stored as {stored}")
    demand(not (idempotent and codec) or ids == {True},
           f"{topic} was not written by an idempotent producer")


def produce_cell(bench, client):
    pairs = [(codec, "kafka") for codec in client.codecs]
    produced(bench, client, pairs + [(client.codecs[-1], layout) for layout in LAYOUTS[1:]])


def idempotent_cell(bench, client):
    produced(bench, client, [("none", "kafka"), (client.codecs[-1], bench.next_layout())],
             idempotent=True)


# Groups.

class Group:
    """A topic, a group and its members; checks what holds for every group at every moment."""

    def __init__(self, bench, client, what, protocol):
        self.bench, self.client, self.protocol = bench, client, protocol
        self.topic = bench.topic(f"{client.name}-{what}", layout=bench.next_layout())
        self.name = f"{client.name}-{what}-group"
        self.stream = Stream(bench, self.topic)
        self.members = []
        self.known = {}

    def join(self):
        member = Member(self.bench, self.client, self.topic, self.name, self.protocol)
        self.members.append(member)
        return member

    def offsets(self):
        """What the broker says is committed; it may never be less than it was, nor than told."""
        told = dict(self.known)
        for member in self.members:
            for partition, offset in member.commits():
                told[partition] = max(told.get(partition, 0), offset)
        with self.bench.broker.connect() as connection:
            found = connection.committed(self.name, self.topic, range(PARTITIONS))
        for partition, offset in told.items():
            demand(found.get(partition, -1) >= offset,
                   f"{self.name}: partition {partition} was committed up to {offset}, "
                   f"and is now at {found.get(partition)}")
        self.known = found
        return found

    def consumed(self):
        return {record for member in self.members for record in member.records()}

    def wait(self, what, condition, seconds=45, write_every=None):
        until = time.monotonic() + seconds
        while not condition():
            for member in self.members:
                code = member.process.poll()
                demand(code is None or member.stop_file.exists(),
                       f"a member ended with {code}: {member.complaint()}")
            if time.monotonic() > until:
                parts = "\n".join(m.complaint() for m in self.members)
                raise CellFailed(f"not in {seconds} s: {what}. {parts}")
            if write_every is not None:
                self.stream.write()
            time.sleep(write_every or 0.05)

    def all_consumed(self):
        missing = set(self.stream.acked) - self.consumed()
        return not missing

    def wait_until_shared(self, first, second):
        """Until each of two members owns partitions and both together own all."""
        def shared():
            marks = [len(m.records()) for m in (first, second)]
            self.stream.write()
            fresh = set(self.stream.acked[-PARTITIONS:])
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                owners = [{r[0] for r in m.records()[mark:] if r in fresh}
                          for m, mark in zip((first, second), marks)]
                if owners[0] | owners[1] == set(range(PARTITIONS)):
                    return bool(owners[0] and owners[1]) and not owners[0] & owners[1]
                time.sleep(0.02)
            return False
        self.wait("two members share the partitions", shared, 60)

    def check_all_committed(self, when):
        found = self.offsets()
        demand(found == self.stream.ends,
               f"{when}: committed {found}, the ends are {self.stream.ends}")

    def check_nothing_foreign(self):
        written = set(self.stream.acked)
        unknown = {r for r in self.consumed() if r not in written
                   and r[1] < self.stream.ends[r[0]]}
        # A write that was cut off by a kill may stand in the log unacknowledged.
        values = {v for _, _, v in written}
        strange = [r for r in unknown if r[2] not in values]
        demand(not strange, f"records nobody wrote: {strange[:3]}")


def group_cell(bench, client, protocol="classic"):
    group = Group(bench, client, f"group-{protocol}", protocol)
    group.stream.write(25)
    first = group.join()
    group.wait("the first member reads everything", group.all_consumed)
    second = group.join()
    group.wait_until_shared(first, second)
    group.offsets()
    second.leave()
    group.offsets()
    mark = len(group.stream.acked)
    group.stream.write()

    def first_owns_all():
        fresh = set(group.stream.acked[mark:])
        return {r[0] for r in first.records() if r in fresh} == set(range(PARTITIONS))
    group.wait("the member that stayed reads every partition", first_owns_all, 60, 0.3)
    group.wait("everything is read", group.all_consumed)
    first.leave()
    group.check_all_committed("after all members left")
    group.check_nothing_foreign()
    resume(group)


def resume(group):
    """A member that comes later begins where the group stopped."""
    begin = dict(group.stream.ends)
    group.stream.write(10)
    third = group.join()
    group.wait("a later member reads on", group.all_consumed)
    third.leave()
    early = [r for r in third.records() if r[1] < begin[r[0]]]
    demand(not early, f"read again although committed: {early[:3]}")
    group.check_all_committed("after the later member left")


def kill_cell(bench, client, protocol="classic"):
    group = Group(bench, client, f"kill-{protocol}", protocol)
    group.stream.write(25)
    first, second = group.join(), group.join()
    group.wait_until_shared(first, second)
    group.wait("everything is read", group.all_consumed)
    group.wait("something is committed", lambda: max(group.offsets().values(), default=0) > 0)
    group.stream.write(50)
    group.offsets()
    bench.broker.kill9()
    time.sleep(0.5)
    bench.broker.start()
    group.offsets()
    group.stream.write(50)
    group.wait("everything is read after the kill", group.all_consumed, 90, 0.3)
    group.offsets()
    for member in (first, second):
        member.leave()
    group.check_all_committed("after all members left")
    group.check_nothing_foreign()


# Seeking and administration.

def seek_cell(bench, client):
    topic = bench.topic(f"{client.name}-seek", 1, bench.next_layout())
    with bench.broker.connect() as connection:
        for n in range(10):
            batch = encode_batch([(START + 100 * n, None, b"at %d" % n)], "none")
            demand(connection.produce(topic, 0, batch).error == 0, "a record was refused")
    asked = {START: 0, START + 401: 5, START + 900: 9}
    answers = bench.run(client, "seek", topic=topic, time=",".join(map(str, asked))).told("done")
    demand(len(answers) == len(asked), f"{answers}")
    for (when, expected), got in zip(asked.items(), answers):
        demand(got == {"offset": expected, "value": f"at {expected}"}, f"at {when}: {got}")


def admin_cell(bench, client):
    name, group = f"{client.name}-admin", f"{client.name}-admin-group"
    data = bench.topic(f"{name}-data", 1, bench.next_layout())
    with bench.broker.connect() as connection:
        for n in range(10):
            batch = encode_batch([(START + n, None, b"%d" % n)], "none")
            demand(connection.produce(data, 0, batch).error == 0, "a record was refused")
        connection.commit(group, data, {0: 7})
    steps = {event["step"]: event for event in
             bench.run(client, "admin", topic=name, group=group, data=data).events
             if "step" in event}
    demand(list(steps) == client.admin_steps, f"steps {list(steps)}")
    expected = {"describe-topic": ("partitions", 2), "create-partitions": ("partitions", 4),
                "describe-config": ("value", contract.RETENTION),
                "alter-config": ("value", contract.ALTERED_RETENTION),
                "describe-group": ("state", "Empty"), "group-offsets": ("offsets", {"0": 7}),
                "delete-records": ("low", 5)}
    for step, (field, value) in expected.items():
        demand(step not in steps or steps[step].get(field) == value, f"{steps.get(step)}")
    demand("list-groups" not in steps or group in steps["list-groups"]["groups"],
           f"{steps.get('list-groups')}")
    topics = steps["list-topics"]["topics"]
    demand(data in topics and name not in topics, f"{steps['list-topics']}")


def kip848_cell(bench, client):
    group_cell(bench, client, "consumer")


def kip848_kill_cell(bench, client):
    kill_cell(bench, client, "consumer")


CELLS = {"produce": produce_cell, "idempotent": idempotent_cell, "group": group_cell,
         "kill": kill_cell, "seek": seek_cell, "admin": admin_cell, "kip848": kip848_cell,
         "kip848-kill": kip848_kill_cell}
