"""A disk of 64 MiB is filled, again and again, by topics of each layout in turn. Writers get an
error that they retry, readers go on, the broker starts on the full disk after a stop and after a
kill, and once there is room writes are back within seconds, by themselves, in every layout."""

import time

import history
import scenario
from disks import LoopDisk
from load import now_ms

import kafka_wire
from record_batch import encode_batch

DISK = 64 << 20
RESUME_SECONDS = 5.0
DELETE_DELAY_MS = 200
KEPT = tuple((f"kept-{layout}", 0) for layout in scenario.LAYOUTS)


class DiskFull(scenario.Scenario):
    name = "disk-full"
    checks = (f"retriable errors only, reads and starts go on, writes back within "
              f"{RESUME_SECONDS:.0f} s of room, nothing acknowledged lost")
    seconds = {"ci": 40, "long": 900}

    def run(self):
        # A shared log gives no room back by itself, so each round has a disk of its own.
        for number in range(self.size(1, 34)):
            self.history = history.History()
            self.one_disk(self.folder / f"round-{number}")

    def one_disk(self, folder):
        self.disk = LoopDisk(folder, DISK)
        self.closing.callback(self.disk.close)
        self.full = self.broker(self.disk.mount_point / "data", {
            "log.segment.delete.delay.ms": DELETE_DELAY_MS, "log.segment.bytes": 4 << 20})
        self.journal_or_none(self.full)
        self.start(self.full)
        self.session, self.serial = self.history.session("writer"), 0
        with self.full.connect() as connection:
            for (topic, _), layout in zip(KEPT, scenario.LAYOUTS):
                self.create(connection, topic, 1, layout, small=False)
                for _ in range(20):
                    self.require(self.send(connection, (topic, 0), 20_000) == 0, "a write failed")
        for cycle in range(len(scenario.LAYOUTS)):
            self.cycle(cycle)
            self.count("cycles")
        self.read_finals(self.full, KEPT)
        self.full.stop()
        self.check_store(self.full)
        self.judge()
        self.disk.close()

    def send(self, connection, place, size):
        value = b"%d " % self.serial + b"x" * size
        self.serial += 1
        sent = self.session.write(place, [value])
        answer = connection.produce(*place, encode_batch([(now_ms(), None, value)]))
        if answer.error == 0:
            sent.ok(answer.base_offset)
        return answer.error

    def fill(self, connection, place):
        """Until the disk is full for every size."""
        for size in (200_000, 20_000, 500):
            for _ in range(2000):
                error = self.send(connection, place, size)
                if error != 0:
                    self.require(error in kafka_wire.RETRIABLE, f"a full disk answered {error}")
                    self.count("refused writes")
                    break
            else:
                raise scenario.Failed("the disk never filled")

    def cycle(self, cycle):
        layout = ("kafka", "segment", "rocketmq")[cycle % 3]
        filler = (f"filler-{cycle}", 0)
        other = self.disk.mount_point / "other"
        if layout == "rocketmq":  # its files go by age alone: something else makes the room
            other.write_bytes(bytes(self.disk.free_bytes() // 2))
        with self.full.connect() as connection:
            self.create(connection, filler[0], 1, layout, small=False)
            self.fill(connection, filler)
            for place in KEPT:
                error = self.send(connection, place, 400_000)
                self.require(error in kafka_wire.RETRIABLE, f"{place}, full: answered {error}")
        self.reads("full", filler)
        self.full.stop(may_fail=True)  # closing indexes needs room
        self.journal_or_none(self.full)
        self.start(self.full)
        self.reads("started after a stop", filler)
        self.full.kill9()
        self.journal_or_none(self.full)
        self.start(self.full)
        self.reads("started after kill -9", filler)
        with self.full.connect() as connection:
            if layout == "rocketmq":
                other.unlink()
            else:
                self.require(connection.delete_topic(filler[0]) == 0, "no topic can be deleted")
                self.history.topics.discard(filler[0])
            self.history.writes = [w for w in self.history.writes if w.place != filler]
            self.resume(connection, time.monotonic())
        self.reads("with room again", None)

    def resume(self, connection, freed):
        for place in KEPT:
            while (error := self.send(connection, place, 100_000)) != 0:
                if time.monotonic() - freed > RESUME_SECONDS + DELETE_DELAY_MS / 1000:
                    raise scenario.Failed(f"{place} answers {error} though there are "
                                          f"{self.disk.free_bytes()} bytes: {self.full.tail()}")
                time.sleep(0.05)
        self.slowest("writes back after room, s", time.monotonic() - freed)

    def reads(self, step, filler):
        """Everything that was acknowledged is read, on a full disk too."""
        with self.full.connect(timeout=60) as connection:
            for place in (*KEPT, *([filler] if filler else [])):
                told = {w.offset for w in self.history.writes
                        if w.place == place and w.offset is not None}
                try:
                    got = {r.offset for r in kafka_wire.read_records(connection, *place)}
                except ValueError as problem:
                    self.problems.append(f"{step}: {place} does not read: {problem}")
                    continue
                self.require(told <= got, f"{step}: {place} lacks {sorted(told - got)[:5]}")
