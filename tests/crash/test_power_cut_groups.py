"""True power cuts while consumers commit: an offset whose commit was acknowledged, or that a fetch
of offsets showed, is never followed by a lower one.

POLYLOG_POWER_CUTS sets the number of cycles, POLYLOG_SEED the random seed.
"""

import os
import random
import shutil
import threading
import time
import unittest

import interop_path  # noqa: F401
import brokers
import group_member
import testbed
from disks import LoopDisk

CYCLES = int(os.environ.get("POLYLOG_POWER_CUTS", testbed.size(25, 300)))
SEED = int(os.environ.get("POLYLOG_SEED", "1"))
TOPIC, PARTITIONS = "read", 3
ALONE = ["alone-0", "alone-1"]
WITH_MEMBER = ["member-0", "member-1"]
GONE = (OSError, ConnectionError, ValueError, TimeoutError, KeyError)


class Told:
    """The highest offsets clients were told, by group and partition. What comes after the cut has
    begun counts for nothing."""

    def __init__(self):
        self.lock = threading.Lock()
        self.powered = True
        self.highest, self.problems, self.commits = {}, [], 0

    def power(self, on):
        with self.lock:
            self.powered = on

    def committed(self, group, offsets):
        with self.lock:
            if not self.powered:
                return
            self.commits += 1
            for partition, offset in offsets.items():
                place = (group, partition)
                self.highest[place] = max(offset, self.highest.get(place, -1))

    def seen(self, group, offsets, before):
        """An answer to a question that was asked when `before` was known."""
        with self.lock:
            if not self.powered:
                return
        for (known, partition), offset in before.items():
            if known == group and offsets.get(partition, -1) < offset:
                self.problems.append(f"{group} {partition}: {offset} was told, then "
                                     f"{offsets.get(partition, -1)}")
        self.committed(group, offsets)

    def known(self):
        with self.lock:
            return dict(self.highest)


class Load:
    """Consumers that commit ever higher offsets, and one that looks, until the broker is gone."""

    def __init__(self, broker, told, rng, ids):
        self.broker, self.told, self.ids = broker, told, ids
        self.ended = threading.Event()
        bodies = [(self.commit, group) for group in ALONE + WITH_MEMBER] + [(self.look, None)]
        self.threads = [threading.Thread(target=self.guard, daemon=True,
                                         args=(body, group, rng.getrandbits(32)))
                        for body, group in bodies]
        for thread in self.threads:
            thread.start()

    def guard(self, body, group, seed):
        try:
            with self.broker.connect(timeout=10) as connection:
                body(connection, group, random.Random(seed))
        except (*GONE, group_member.Refused):
            pass  # the power is off

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(30)

    def commit(self, connection, group, rng):
        connection.committed(group, TOPIC, range(PARTITIONS))  # until it is loaded
        member = group_member.Member(connection, group, TOPIC)
        if group in WITH_MEMBER:
            self.join(member)
        while not self.ended.is_set():
            known = self.told.known()
            chosen = rng.sample(range(PARTITIONS), rng.randint(1, PARTITIONS))
            offsets = {p: known.get((group, p), -1) + rng.randint(1, 5) for p in chosen}
            member.commit(offsets)
            self.told.committed(group, offsets)

    def join(self, member):
        """As who it was, unless the cut came before anybody was told of that."""
        member.id = self.ids.get(member.group, "")
        try:
            member.join()
        except group_member.Refused as refused:
            if refused.args != (group_member.UNKNOWN_MEMBER_ID,):
                raise
            member.id = ""
            member.join()
        self.ids[member.group] = member.id

    def look(self, connection, _group, rng):
        while not self.ended.is_set():
            group, before = rng.choice(ALONE + WITH_MEMBER), self.told.known()
            self.told.seen(group, connection.committed(group, TOPIC, range(PARTITIONS)), before)


class PowerCutOfGroups(unittest.TestCase):
    def rig(self, settings):
        self.folder = testbed.scratch_folder("PowerCutOfGroups")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.disk = LoopDisk(self.folder, 1 << 30)
        self.addCleanup(self.disk.close)
        self.broker = brokers.broker_under_test(
            self.disk.mount_point / "data",
            {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 4, **settings})
        self.broker.output = self.folder / "broker.out"
        self.addCleanup(self.broker.close)
        self.broker.start()
        self.told, self.ids = Told(), {}
        with self.broker.connect() as connection:
            error, message = connection.create_topic(TOPIC, PARTITIONS)
            self.assertEqual(error, 0, message)
            connection.find_coordinator(ALONE[0])

    def cycle(self, rng):
        load = Load(self.broker, self.told, rng, self.ids)
        time.sleep(rng.uniform(0.2, 0.8))
        self.told.power(False)
        self.disk.cut()
        self.broker.kill9()
        load.stop()
        self.told.power(True)
        self.disk.power_on()
        self.broker.start()
        before = self.told.known()
        with self.broker.connect(timeout=60) as connection:
            for group in ALONE + WITH_MEMBER:
                found = connection.committed(group, TOPIC, range(PARTITIONS))
                self.told.seen(group, found, before)

    def test_no_offset_goes_back(self):
        self.rig({})
        rng = random.Random(SEED)
        for number in range(CYCLES):
            self.cycle(rng)
            self.assertEqual(self.told.problems[:5], [], f"cycle {number}, seed {SEED}; "
                             f"{len(self.told.problems)} problems in all")
        self.assertEqual(len(self.told.known()), (len(ALONE) + len(WITH_MEMBER)) * PARTITIONS)
        self.assertGreater(self.told.commits, CYCLES * 10)
        print(f"{CYCLES} power cuts, seed {SEED}: {self.told.commits} commits and looks, "
              f"no offset went back", flush=True)

    def test_the_rig_notices_loss_without_flush(self):
        """The same load with no flush must lose something, or this test proves nothing."""
        self.rig({"polylog.flush": "never"})
        rng = random.Random(SEED)
        for _ in range(5):
            self.cycle(rng)
            if self.told.problems:
                return
        self.fail("five power cuts without flush lost nothing")


if __name__ == "__main__":
    testbed.main()
