"""The wall clock jumps by an hour and by ten years, both ways, and stands still, under a broker
that writes, reads, restarts and has a group: offsets go on, nothing is deleted before its time,
nobody is put out of the group, answers come as quickly as ever."""

import glob
import json
import os
import pathlib
import time

import scenario
from load import poll
from pauses import Member

import brokers
import kafka_wire
from record_batch import encode_batch

HOUR, YEAR = 3600, 365 * 86400
JUMPS = (HOUR, -HOUR, 0, 10 * YEAR, -10 * YEAR, 10 * YEAR, 0, "frozen", 0, -10 * YEAR, HOUR, 0)
SETTINGS = {"fileReservedTime": 900_000, "log.retention.check.interval.ms": 200,
            "log.flush.offset.checkpoint.interval.ms": 500, "offsets.topic.num.partitions": 1,
            "group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 100}
DAY_MS = 86_400_000


class JumpingBroker(brokers.PolylogBroker):
    """polylog whose wall clock follows a file; the monotonic one is left alone, as by a kernel."""

    def command(self):
        library = sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))
        if not library:
            raise scenario.Failed("libfaketime is not installed (Debian: faketime)")
        return ["env", f"LD_PRELOAD={library[0]}", f"FAKETIME_TIMESTAMP_FILE={self.clock}",
                "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
                "NO_FAKE_STAT=1", *map(str, super().command())]


class ClockJumps(scenario.Scenario):
    name = "clock-jumps"
    checks = ("jumps of an hour and ten years both ways, a clock that stands: offsets monotone, "
              "nothing deleted early, group undisturbed, answers within a second")
    seconds = {"ci": 40, "long": 600}

    def run(self):
        self.clock = self.folder / "clock"
        self.jump(0)
        broker = self.broker(settings=SETTINGS, kind=JumpingBroker)
        broker.clock = self.clock
        self.run_broker(broker)
        self.session, self.serial = self.history.session("writer"), 0
        self.readers = {}
        with broker.connect() as connection:
            for layout in scenario.LAYOUTS:
                # The shared log refuses a topic that keeps its records for ever.
                keep = {} if layout == "rocketmq" else {"retention.ms": -1}
                self.make(connection, f"kept-{layout}", layout, keep)
                self.make(connection, f"day-{layout}", layout, {"retention.ms": DAY_MS})
        members = [Member(self, broker, "group-clock", "kept-kafka", n) for n in range(2)]
        time.sleep(1.5)
        for round_number in range(self.size(1, 20)):
            for number, step in enumerate(JUMPS):
                self.one_jump(broker, step, number, round_number == 0)
        self.jump(0)
        self.read_finals(broker, [p for p in self.readers if p[0].startswith("kept")])
        # Ten years may take what is kept for a day: only what is there is held against the rules.
        self.history.writes = [w for w in self.history.writes if w.place[0].startswith("kept")]
        for place in [key for key in self.history.polls if key[1][0].startswith("day")]:
            del self.history.polls[place]
        for final in self.history.finals.values():
            self.require(final.start == 0, f"records were deleted up to {final.start}")
        self.judge()
        self.check_members(members)
        self.count("acknowledged records", self.history.acknowledged())

    def run_broker(self, broker):
        """libfaketime leaves what it shares between processes behind when one is killed."""
        self.start(broker)
        for name in (f"faketime_shm_{broker.pid}", f"sem.faketime_sem_{broker.pid}"):
            self.closing.callback(pathlib.Path("/dev/shm", name).unlink, missing_ok=True)

    def make(self, connection, topic, layout, configs):
        self.create(connection, topic, 1, layout, configs)
        session = self.history.session(f"reader-{topic}")
        self.readers[topic, 0] = [session, 0]

    def jump(self, step):
        """The broker's clock from now on, as seconds from the right one, or stopped."""
        self.offset = 0 if step == "frozen" else step
        text = (time.strftime("%Y-%m-%d %H:%M:%S") if step == "frozen" else f"{step:+d}")
        new = self.folder / "clock.new"
        new.write_text(text + "\n")
        os.rename(new, self.clock)

    def one_jump(self, broker, step, number, first_round):
        self.jump(step)
        self.count("jumps")
        if number in (4, 7):  # a start while the clock is wrong, or stands
            broker.kill9()
            self.run_broker(broker)
            self.count("restarts")
        until = time.monotonic() + 0.7
        with broker.connect(timeout=10) as connection:
            while time.monotonic() < until:
                for place in self.readers:
                    self.write_and_read(connection, place)
                time.sleep(0.02)
            if first_round and number < 3:
                for topic, partition in self.readers:
                    start = connection.list_offset(topic, partition, kafka_wire.EARLIEST).offset
                    self.require(start == 0, f"{topic}: deleted up to {start} within an hour")

    def write_and_read(self, connection, place):
        value = b"%d " % self.serial + b"x" * 3000
        self.serial += 1
        sent = self.session.write(place, [value])
        before = time.monotonic()
        now = int((time.time() + self.offset) * 1000)
        answer = connection.produce(*place, encode_batch([(now, None, value)]))
        took = time.monotonic() - before
        if answer.error:
            raise scenario.Failed(f"{place} with the clock at {self.offset:+d} s answered "
                                  f"{answer.error}")
        sent.ok(answer.base_offset)
        self.slowest("slowest answer, s", took)
        self.require(took < 1.0, f"an answer took {took:.1f} s at {self.offset:+d} s")
        reader = self.readers[place]
        if place[0].startswith("kept"):
            reader[1], _ = poll(connection, reader[0], place, reader[1], 100)

    def check_members(self, members):
        generations = set()
        for member in members:
            lines = [json.loads(line) for line in member.log.read_text().splitlines()
                     if line.endswith("}")]
            for line in lines:
                if line["kind"] == "owns":
                    generations.add(line["generation"])
                self.require(line["kind"] != "fenced",
                             f"{member.name} was put out: {json.dumps(line)}")
        # Two joined one after the other; each kill makes the members look for their group again.
        self.figure("generations of the group", len(generations))
