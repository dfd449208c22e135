"""The power goes, again and again, under producers and readers of all three layouts at once.

One broker holds topics of each layout on one image, so that each cut counts for all. Nobody hears
anything from a machine without power, but this one goes on running when its disk is shut down, and
ext4's fdatasync can return success while that happens without having written. What comes after
the cut has begun therefore counts for nothing.
"""

import math
import time

import scenario
from disks import LoopDisk
from load import Creator, Follower, Reader, Writer, poll

PARTITIONS = 2
INTERVAL_MS = 200
# A sync is asked for at the latest after the interval; it may take this long on a busy machine.
SYNC_S = 1.0
LOSES = {f"interval:{INTERVAL_MS}": INTERVAL_MS / 1000 + SYNC_S, "never": math.inf}


class PowerCut(scenario.Scenario):
    checks = ("acks=all, flush=ack: nothing acknowledged or shown is lost, no offset changes; "
              "acks=1, interval, never: only the last moments, no holes, consumers are told")
    seconds = {"ci": 120, "long": 1800}
    disk = ""

    def run(self):
        self.disk_image = LoopDisk(self.folder, 2 << 30, self.disk)
        self.closing.callback(self.disk_image.close)
        self.broker_under_cuts = self.broker(self.disk_image.mount_point / "data")
        self.journalled = self.journal_or_none(self.broker_under_cuts)
        self.start(self.broker_under_cuts)
        self.make_topics()
        cuts = self.size(60, 1000)
        for number in range(cuts):
            self.cycle(number)
        self.finish(cuts)

    def make_topics(self):
        self.steady, self.soft, self.followers, self.tails = [], [], [], {}
        with self.broker_under_cuts.connect() as connection:
            for layout in scenario.LAYOUTS:
                self.create(connection, f"steady-{layout}", PARTITIONS, layout)
                self.steady += [(f"steady-{layout}", p) for p in range(PARTITIONS)]
                for flush in LOSES:
                    topic = f"{flush.split(':')[0]}-{layout}"
                    self.create(connection, topic, 1, layout, {"polylog.flush": flush})
                    self.history.shows_early((topic, 0))
                    self.followers.append(Follower(self.history, (topic, 0)))
                    self.soft.append(((topic, 0), -1, LOSES[flush]))
                self.create(connection, f"one-{layout}", 1, layout)
                self.followers.append(Follower(self.history, (f"one-{layout}", 0)))
                self.soft.append(((f"one-{layout}", 0), 1, SYNC_S))
        self.made = []

    def clients(self, cycle):
        def session(what):
            return self.history.session(f"{cycle}-{what}")

        def seed():
            return self.rng.getrandbits(32)

        broker = self.broker_under_cuts
        clients = []
        for layout in scenario.LAYOUTS:
            places = [place for place in self.steady if place[0].endswith(layout)]
            clients.append(Writer(broker, session(f"all-{layout}"), seed(), places))
        # What may be lost goes one record at a time, so that it is known what follows what.
        clients += [Writer(broker, session(place[0]), seed(), [place], acks, may_lose, 0.02, 1)
                    for place, acks, may_lose in self.soft]
        clients.append(Creator(broker, session("creator"), seed(), self.create_next))
        clients.append(Reader(broker, session("reader"), seed(), self.steady))
        for client in clients:
            client.start()
        return clients

    def create_next(self, connection, topic, serial):
        layout = scenario.LAYOUTS[serial % len(scenario.LAYOUTS)]
        self.create(connection, topic, 1, layout)

    def cycle(self, number):
        clients = self.clients(number)
        time.sleep(self.rng.uniform(0.1, 0.6))
        self.history.power(False)
        self.disk_image.cut()
        self.broker_under_cuts.kill9()
        for client in clients:
            client.stop()
            self.require(client.failure is None, client.failure)
            self.made += getattr(client, "places", []) if isinstance(client, Creator) else []
        self.history.power(True)
        self.disk_image.power_on()
        self.count("cuts")
        self.count("cuts with a journal", self.journalled)
        self.journalled = self.journal_or_none(self.broker_under_cuts)
        self.start(self.broker_under_cuts)
        with self.broker_under_cuts.connect(timeout=60) as connection:
            for follower in self.followers:
                follower.catch_up(connection)
            for place in self.steady:
                self.follow(connection, number, place)

    def follow(self, connection, number, place):
        """The newest part of what must be whole, once after each cut."""
        session = self.history.session(f"{number}-after-{place[0]}-{place[1]}")
        position = max(0, self.tails.get(place, 0) - 50)
        while True:
            after, _ = poll(connection, session, place, position)
            if after == position:
                break
            position = after
        self.tails[place] = position

    def finish(self, cuts):
        places = [*self.steady, *(place for place, _, _ in self.soft)]
        there = set(self.history.topics)
        places += [place for place in self.made if place[0] in there]
        self.drop_unknown_topics(there)
        self.read_finals(self.broker_under_cuts, places)
        self.broker_under_cuts.stop()
        self.check_store(self.broker_under_cuts)
        self.judge()
        acknowledged = self.history.acknowledged()
        self.count("acknowledged records", acknowledged)
        self.require(acknowledged > cuts * 20, f"only {acknowledged} records were acknowledged")
        for what, value in self.history.figures.items():
            self.figure(what, round(value, 3))
        self.require(self.history.figures["may lose, lost"] > 0,
                     "no cut took anything of the topics without a flush: the power never went")

    def drop_unknown_topics(self, there):
        """A topic whose creation was not answered may be gone, with what was sent to it."""
        gone = {place for place in self.made if place[0] not in there}
        self.history.writes = [w for w in self.history.writes if w.place not in gone]


class OnExt4(PowerCut):
    name, disk = "power-cut-ext4", "ext4"


class OnXfs(PowerCut):
    name, disk = "power-cut-xfs", "xfs"
