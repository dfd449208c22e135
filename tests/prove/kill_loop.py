"""kill -9, again and again, under idempotent producers: our own over the wire in each layout, and
librdkafka (as kcat) in one. None lost, none twice, in order."""

import subprocess
import threading
import time

import scenario
from load import IdempotentWriter, Reader, Writer

NUMBERS = ("numbers", 0)
# What is written without waiting for the disk: a kill takes none of it either.
SOFT = (("one", 1, {}), ("interval", -1, {"polylog.flush": "interval:5000"}),
        ("never", -1, {"polylog.flush": "never"}))
KCAT = ["-P", "-p", "0", "-E", "-q", "-X", "enable.idempotence=true",
        "-X", "message.timeout.ms=300000", "-X", "linger.ms=5", "-X", "batch.num.messages=500",
        "-X", "reconnect.backoff.ms=20", "-X", "reconnect.backoff.max.ms=100",
        "-X", "retry.backoff.ms=50", "-X", "socket.timeout.ms=5000"]


class Kcat:
    """librdkafka's idempotent producer, fed numbers at a steady rate until stop()."""

    def __init__(self, proof, broker):
        self.session = proof.history.session("kcat")
        self.said = proof.folder / "kcat.out"
        with open(self.said, "wb") as sink:
            self.process = subprocess.Popen(["kcat", "-b", broker.address, "-t", NUMBERS[0], *KCAT],
                                            stdin=subprocess.PIPE, stdout=sink, stderr=sink)
        proof.closing.callback(self.process.kill)
        self.sent, self.ended = [], threading.Event()
        self.feeder = threading.Thread(target=self.feed, daemon=True)
        self.feeder.start()

    def feed(self):
        number = 0
        while not self.ended.is_set():
            values = [b"%d" % n for n in range(number, number + 100)]
            self.sent.append(self.session.write(NUMBERS, values, idempotent=True))
            try:
                self.process.stdin.write(b"".join(value + b"\n" for value in values))
                self.process.stdin.flush()
            except BrokenPipeError:
                return  # stop() sees how it ended
            number += len(values)
            time.sleep(0.02)
        self.process.stdin.close()

    def stop(self, proof):
        """kcat ends well only when everything was acknowledged."""
        self.ended.set()
        self.feeder.join(30)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            code = "nothing for a minute"
        proof.require(code == 0, f"kcat ended with {code}: "
                                 f"{self.said.read_text(errors='replace')[-500:]}")
        if code == 0:
            for sent in self.sent:
                sent.ok()


class KillLoop(scenario.Scenario):
    name = "kill-loop"
    checks = ("acks=1 and all, every flush: nothing acknowledged is lost; idempotent producers: "
              "nothing is there twice, in order")
    seconds = {"ci": 90, "long": 2400}

    def run(self):
        broker = self.broker()
        self.journalled = self.journal_or_none(broker)
        self.start(broker)
        with broker.connect() as connection:
            self.create(connection, NUMBERS[0], 1, self.rng.choice(scenario.LAYOUTS))
            places = []
            for layout in scenario.LAYOUTS:
                self.create(connection, f"killed-{layout}", 2, layout)
                places += [(f"killed-{layout}", p) for p in range(2)]
                for name, _, configs in SOFT:
                    self.create(connection, f"{name}-{layout}", 1, layout, configs)
        soft = [(f"{name}-{layout}", 0) for name, _, _ in SOFT for layout in scenario.LAYOUTS]
        kcat = Kcat(self, broker)
        writers = [IdempotentWriter(broker, self.history.session(f"writer-{n}"),
                                    self.rng.getrandbits(32), place, pause_s=0.01)
                   for n, place in enumerate(places)]
        for writer in writers:
            writer.start()
        for number in range(self.size(105, 5000)):
            self.kill(broker, number, [*places, NUMBERS])
        for writer in writers:
            writer.stop()
            self.require(writer.problem is None, writer.problem)
        kcat.stop(self)
        self.read_finals(broker, [*places, *soft, NUMBERS])
        self.count("acknowledged records", self.history.acknowledged())
        broker.stop()
        self.check_store(broker)
        self.judge()

    def kill(self, broker, number, places):
        reader = Reader(broker, self.history.session(f"reader-{number}"),
                        self.rng.getrandbits(32), places)
        layout = scenario.LAYOUTS[number % len(scenario.LAYOUTS)]
        clients = [reader, *(
            Writer(broker, self.history.session(f"{name}-{number}"), self.rng.getrandbits(32),
                   [(f"{name}-{layout}", 0)], acks, pause_s=0.01) for name, acks, _ in SOFT)]
        for client in clients:
            client.start()
        # Some kills come while the broker is still taking its clients back, most under load.
        time.sleep(self.rng.choice((0.02, 0.1, 0.3, 0.5, 0.7)))
        broker.kill9()
        for client in clients:
            client.stop()
        self.count("kills")
        self.count("kills with a journal", self.journalled)
        self.journalled = self.journal_or_none(broker)
        self.start(broker)
