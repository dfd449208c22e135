"""Hostile clients beside an ordinary one: malformed frames, slow connections, and what the broker
allocates for the bytes it is sent."""

import contextlib
import math
import os
import resource
import select
import socket
import statistics
import struct
import subprocess
import sys
import time
import types

import paths
import scenario
from load import now_ms

import brokers
import kafka_wire
import test_every_version as wire
from record_batch import encode_batch

MIB = 1 << 20
HOSTILE = "hostile"
# Counts and lengths that no frame of ours can hold.
HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f",
        b"\x7f\xff", b"\x00\x00\x00\x00", b"\xff")


class Canary:
    def __init__(self, proof, broker, topic):
        self.log = proof.folder / f"{topic}.log"
        with open(self.log, "wb") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-B", paths.HERE / "canary.py", str(broker.port), topic],
                stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        proof.closing.callback(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def between(self, begin, end):
        """How long it took, each time between two moments."""
        if self.process.poll() is not None:
            raise scenario.Failed(f"the canary ended: {self.log.read_text()[-500:]}")
        pairs = [line.split() for line in self.log.read_text().splitlines()[:-1]]
        return [float(took) for at, took in pairs if begin <= float(at) < end]


def p99(times):
    return sorted(times)[math.ceil(len(times) * 0.99) - 1]


class Siege(scenario.Scenario):
    """A canary's times beside an attack, against those of quiet moments just before and after."""

    alone = True
    window_s, rate = 2.5, 200
    memory_max = 512 * MIB

    def begin_siege(self):
        broker = self.broker()
        broker.memory_max = self.memory_max
        self.start(broker)
        with broker.connect() as connection:
            self.create(connection, "canary", 1, "kafka", small=False)
            self.create(connection, HOSTILE, 1, "kafka", small=False)
            self.topic_id = connection.topic_id(HOSTILE)
        canary = Canary(self, broker, "canary")
        time.sleep(1.0)
        return broker, canary

    def window(self, times, work):
        """The canary's times while `work` is done; it takes window_s."""
        begin = time.monotonic()
        work()
        times.append((begin, time.monotonic()))

    def quiet(self):
        time.sleep(self.window_s)

    def undisturbed(self, canary, measure):
        """Whether the canary hardly noticed. Noise of the machine only ever adds, so one of three
        measurements that shows it is enough."""
        for _ in range(3):
            quiet, loud = [], []
            measure(quiet, loud)
            time.sleep(0.2)
            found = [self.p99_of(canary, quiet), self.p99_of(canary, loud)]
            self.count("canary's requests",
                       sum(len(canary.between(*w)) for w in (*quiet, *loud)))
            # Where both are under a millisecond the machine's own noise decides.
            if found[1] <= max(2 * found[0], 0.001):
                break
        else:
            self.problems.append(f"the canary's p99 went from {found[0] * 1000:.2f} ms to "
                                 f"{found[1] * 1000:.2f} ms, three times")
        self.figure("canary p99 quiet, ms", round(found[0] * 1000, 2))
        self.figure("canary p99 under attack, ms", round(found[1] * 1000, 2))

    def p99_of(self, canary, windows):
        """The median of the windows'."""
        times = [canary.between(*window) for window in windows]
        self.require(all(len(t) > 20 for t in times), "the canary hardly moved")
        return statistics.median(p99(t) for t in times)


class Frames:
    """A valid request of every version of every API, and what can be made of it."""

    def __init__(self, broker, rng, topic_id):
        self.rng, self.valid = rng, []
        wire.TOPIC = HOSTILE
        known = wire.names_by_key()
        with broker.connect() as connection:
            advertised = connection.api_versions()[1]
        for key, (low, high) in sorted(advertised.items()):
            if known.get(key) in (None, "DeleteTopics", "DeleteRecords", "AlterConfigs",
                                  "IncrementalAlterConfigs", "AlterClientQuotas"):
                continue  # a mutation of these could ask for something that is no attack
            for version in range(max(low, 3 if known[key] == "Produce" else 0), high + 1):
                self.valid.append(self.frame(known[key], version, topic_id))
        batch = encode_batch([(now_ms(), b"k", b"v" * 50)])
        for version in (3, 7, 9):
            values = {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{
                "Name": HOSTILE, "PartitionData": [{"Index": 0, "Records": batch}]}]}
            self.valid.append(self.frame("Produce", version, topic_id, values))

    @staticmethod
    def frame(name, version, topic_id, values=None):
        request = wire.Schema(name + "Request")
        header = struct.pack(">hhih", request.top["apiKey"], version, 77, 5) + b"siege"
        if request.flexible(version):
            header += b"\0"
        values = wire.content(name, version, topic_id) if values is None else values
        return header + wire.Encoder(request, version).message(values)

    def hostile(self):
        """A truncated or changed frame, behind a length that fits it or does not."""
        body = bytearray(self.rng.choice(self.valid))
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            at = self.rng.randrange(len(body))
            kind = self.rng.randrange(5)
            if kind == 0:
                del body[max(1, at):]
            elif kind == 1:
                body[at] ^= 1 << self.rng.randrange(8)
            elif kind == 2:
                huge = self.rng.choice(HUGE)
                body[at:at + len(huge)] = huge
            elif kind == 3:
                body[at:at] = self.rng.randbytes(self.rng.randrange(1, 9))
            else:
                body += self.rng.randbytes(self.rng.randrange(1, 200))
        length = len(body)
        if self.rng.randrange(12) == 0:
            length = self.rng.choice((0, 1, -1, -2**31, 2**31 - 1, length + 1, length - 1))
        return struct.pack(">i", length) + bytes(body)


class Malformed(Siege):
    name = "malformed"
    checks = ("truncated and changed frames of every API and version: the broker lives, memory "
              "stays, the canary's p99 is at most twice that of quiet")
    seconds = {"ci": 45, "long": 1500}

    def run(self):
        broker, canary = self.begin_siege()
        frames = Frames(broker, self.rng, self.topic_id)
        self.count("valid frames to start from", len(frames.valid))
        before = broker.rss_bytes()

        def measure(quiet, loud):
            for _ in range(self.size(4, 200)):
                self.window(quiet, self.quiet)
                self.window(loud, lambda: self.attack(broker, frames))

        self.undisturbed(canary, measure)
        self.figure("memory grew, MiB", round((broker.rss_bytes() - before) / MIB, 1))
        self.require(broker.rss_bytes() - before < 64 * MIB, "memory grew over 64 MiB")
        self.require(broker.alive(), "the broker is gone")
        broker.stop()

    def attack(self, broker, frames):
        """520 frames, each on a connection of its own, spread over the window."""
        began = time.monotonic()
        for number in range(520):
            data = frames.hostile()
            try:
                with socket.create_connection(("127.0.0.1", broker.port), 5) as link:
                    link.sendall(data)
                    link.shutdown(socket.SHUT_WR)
                    link.settimeout(5)
                    while link.recv(65536):
                        pass
            except (ConnectionResetError, BrokenPipeError, socket.timeout) as problem:
                self.require(not isinstance(problem, socket.timeout),
                             f"no answer and no close for 5 s: {data[:80].hex()}")
            self.count("malformed frames")
            time.sleep(max(0, began + number / self.rate - time.monotonic()))


class SlowClients(Siege):
    name = "slow-clients"
    checks = ("idle, dribbling and half-sent connections are held, the canary's p99 is at most "
              "twice that of quiet, memory stays")
    seconds = {"ci": 30, "long": 300}

    def run(self):
        broker, canary = self.begin_siege()
        frames = Frames(broker, self.rng, self.topic_id)
        before = broker.rss_bytes()

        def measure(quiet, loud):
            self.links = []
            for _ in range(self.size(2, 10)):
                self.window(quiet, self.quiet)
            self.connect(broker, frames)
            for _ in range(self.size(3, 20)):
                self.window(loud, self.dribble)
            self.check_held(broker.rss_bytes() - before)
            self.window(quiet, self.quiet)

        self.undisturbed(canary, measure)
        broker.stop()

    def check_held(self, grown):
        held = [link for link, _ in self.links if self.open_still(link)]
        self.figure("slow connections held", len(held))
        self.require(len(held) >= 500, f"{len(held)} of {len(self.links)} are held")
        self.figure("memory a connection, KiB", round(grown / len(self.links) / 1024, 1))
        self.require(grown < 64 * 1024 * len(self.links), "more than 64 KiB a connection")
        for link, _ in self.links:
            link.close()

    def connect(self, broker, frames):
        """A third says nothing, a third sends a byte now and then, a third has sent the beginning
        of a frame of a mebibyte."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        for number in range(min(self.size(520, 5000), most - 100)):
            link = socket.create_connection(("127.0.0.1", broker.port), 5)
            link.setblocking(False)
            data = b""
            if number % 3 == 1:
                body = self.rng.choice(frames.valid)
                data = struct.pack(">i", len(body)) + body
            elif number % 3 == 2:
                link.send(struct.pack(">i", MIB) + bytes(1000))
            self.links.append([link, data])

    def dribble(self):
        """Every link that has something left sends a byte of it each quarter of a second."""
        until, at = time.monotonic() + self.window_s, 0
        while time.monotonic() < until:
            for item in self.links[at::25]:
                if item[1]:
                    item[0].send(item[1][:1])
                    item[1] = item[1][1:]
            at = (at + 1) % 25
            time.sleep(0.01)

    @staticmethod
    def open_still(link):
        if not select.select([link], [], [], 0)[0]:
            return True
        try:
            return link.recv(65536) != b""
        except ConnectionError:
            return False


BOMB_CODECS = ("gzip", "snappy", "snappy-xerial", "lz4", "zstd")
PIECE = 32 * 1024


def bomb(codec, size):
    """A batch of few bytes that unpacks to many."""
    return encode_batch([(now_ms(), None, bytes(PIECE - 20))] * (size // PIECE), codec)


class CountingBroker(brokers.PolylogBroker):
    def command(self):
        return ["env", f"LD_PRELOAD={self.shim}", f"PROVE_COUNTS={self.counts}",
                *map(str, super().command())]


class Amplification(scenario.Scenario):
    """Peak bytes that the whole broker has allocated while it handles one frame."""

    name = "amplification"
    checks = ("peak bytes allocated for one frame: at most 64 a byte received and 64 KiB a "
              "connection; batches of every codec that unpack to ten times the limit are refused, "
              "and most of it is never unpacked")
    seconds = {"ci": 45, "long": 300}
    per_byte, fixed = 64, 64 * 1024
    unpacked_max = 2 * MIB  # max.decompressed.message.bytes

    def run(self):
        broker = self.broker(kind=CountingBroker,
                             settings={"max.decompressed.message.bytes": self.unpacked_max})
        broker.shim, broker.counts = self.folder / "alloc_shim.so", self.folder / "counts"
        broker.counts.write_bytes(bytes(16))
        done = subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", broker.shim,
                               paths.HERE / "alloc_shim.c", "-ldl"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise scenario.Failed(f"the shim does not compile: {done.stderr}")
        self.start(broker)
        with broker.connect() as connection:
            self.create(connection, HOSTILE, 1, "kafka", small=False)
            frames = Frames(broker, self.rng, connection.topic_id(HOSTILE))
        self.warm_up(broker, frames)
        worst = (0.0, b"")
        for _ in range(self.size(3000, 100_000)):
            data = frames.hostile()
            allowed = self.fixed + self.per_byte * len(data)
            # The broker allocates for other things too now and then; what a frame costs, it
            # costs each time.
            for _ in range(4):
                peak = self.peak_of(broker, data)
                if peak <= allowed:
                    break
            self.count("frames measured")
            if peak > allowed:
                self.problems.append(f"{peak} bytes allocated for {len(data)}: {data[:100].hex()}")
            worst = max(worst, ((peak - self.fixed) / len(data), data))
        self.figure("most bytes a byte received, over the fixed", round(max(0, worst[0]), 1))
        self.send_bombs(broker)
        broker.stop()

    def send_bombs(self, broker):
        """To each layout, in each codec: records that fit, and then bombs."""
        worst = 0
        for layout in scenario.LAYOUTS:
            topic = f"bombs-{layout}"
            with broker.connect() as connection:
                self.create(connection, topic, 1, layout, small=False)
                for codec in BOMB_CODECS:
                    answer = connection.produce(topic, 0, bomb(codec, self.unpacked_max // 4), -1)
                    self.require(answer.error == 0, f"{codec} below the limit: {answer}")
            for codec in BOMB_CODECS:
                worst = max(worst, self.send_bomb(broker, topic, codec))
        self.figure("most MiB allocated for a bomb", round(worst / MIB, 1))
        with broker.connect() as connection:
            for layout in scenario.LAYOUTS:
                stored = kafka_wire.read_records(connection, f"bombs-{layout}", 0)
                self.require(len(stored) == len(BOMB_CODECS) * self.unpacked_max // 4 // PIECE,
                             f"bombs-{layout} holds {len(stored)} records")

    def send_bomb(self, broker, topic, codec):
        """Answers the peak of bytes allocated, the least of four times."""
        batch = bomb(codec, 10 * self.unpacked_max)
        peaks = []
        with broker.connect(timeout=30) as connection:
            for _ in range(4):
                with self.peak(broker) as peak:
                    answer = connection.produce(topic, 0, batch, -1, version=8)
                self.require(answer.error == kafka_wire.MESSAGE_TOO_LARGE,
                             f"a bomb of {codec} to {topic} was answered {answer}")
                self.count("bombs")
                peaks.append(peak.bytes)
        allowed = 3 * len(batch) + 2 * self.unpacked_max
        self.require(min(peaks) <= allowed, f"{min(peaks)} bytes allocated for a bomb of {codec} "
                                            f"of {len(batch)} bytes to {topic}")
        return min(peaks)

    def warm_up(self, broker, frames):
        """What is kept from then on is not what one frame costs."""
        for body in frames.valid:
            self.peak_of(broker, struct.pack(">i", len(body)) + body)

    def peak_of(self, broker, data):
        with self.peak(broker) as peak:
            with socket.create_connection(("127.0.0.1", broker.port), 5) as link:
                link.settimeout(5)
                try:
                    link.sendall(data)
                    link.shutdown(socket.SHUT_WR)
                    while link.recv(65536):
                        pass
                except (ConnectionError, socket.timeout):
                    pass
        return peak.bytes

    @contextlib.contextmanager
    def peak(self, broker):
        """How many more bytes were allocated at once than are allocated at the beginning."""
        found = types.SimpleNamespace(bytes=0)
        descriptor = os.open(broker.counts, os.O_RDWR)
        try:
            live, _ = struct.unpack("qq", os.pread(descriptor, 16, 0))
            os.pwrite(descriptor, struct.pack("q", live), 8)
            yield found
            found.bytes = struct.unpack("qq", os.pread(descriptor, 16, 0))[1] - live
        finally:
            os.close(descriptor)
