"""Damage in every kind of file of a store of each layout, then a start and a reader.

Each round takes a fresh image of a store that was closed or killed, damages some files that have
nothing to do with each other, starts the broker on it and reads everything as a client does that
goes on behind what does not read. As it is an image, files keep what bit rot leaves them: their
inodes and times. A record may be missing only where its unit was damaged: the
segment, the commit log file, the consume queue file it lies in. What is read is never wrong.
"""

import collections
import os
import re
import shutil
import time

import history
import scenario
from disks import LoopDisk, copy_image
from load import now_ms

import brokers
import kafka_wire
import rocketmq_store
from record_batch import Malformed, crc32c, decode_batches, encode_batch

SIZES = rocketmq_store.Sizes(128 * 1024, 1000, 100, 400)
SETTINGS = {**SIZES.polylog_settings(), "offsets.topic.num.partitions": 1}
TOPIC = {"internal.segment.bytes": 16_000, "index.interval.bytes": 512}
DATA = re.compile(r"^kafka/[^/]+/\d{20}\.log$|^segment/[^/]+/\d+\.msg$|^rocketmq/commitlog/\d+$"
                  r"|^rocketmq/consumequeue/[^/]+/\d+/\d+$")
SECTOR, PAGE = 512, 4096
# A broker may refuse to start on these, and must say so; as RocketMQ does where a mapped file has
# another length than all have, or is missing from the commit log.
MAY_REFUSE = re.compile(r"^meta/|^kafka/meta\.properties$")
SHARED_REFUSED = re.compile(r"rocketmq/commitlog: the file before|rocketmq/(commitlog|consumequeue)"
                            r"/\S+ has \d+ bytes, mappedFileSize")
# Nor into what a journal's records belong to, when it is not as they were written for.
JOURNAL_REFUSED = re.compile(r"polylog\.journal")
IGNORED = re.compile(r"\.lock$|^lock$|/LOCK$|/lock$")


def kind_of(path):
    """The kinds of the table: what a file is for, without its number or name."""
    if path.startswith("rocketmq/"):
        return "rocketmq " + path.split("/")[1]
    if path.startswith("sidecar/segment.index"):
        return "rocksdb " + re.sub(r"\d+", "N", path.split("/")[-1])
    if path.startswith(("sidecar/", "meta/", "journal/")):
        return path
    name = path.split("/")[-1]
    return path.split("/")[0] + " " + (re.sub(r"^\d+", "", name) if name[0].isdigit() else name)


def text_of(record):
    """All that a client sees of a record but its offset."""
    return b"|".join([str(record.timestamp).encode(), record.key or b"-", record.value or b"-",
                      repr(record.headers).encode()])


def flip(data, at, rng):
    data[at] ^= 1 << rng.randrange(8)


def zero_sector(data, at, _):
    begin = at - at % SECTOR
    data[begin:begin + SECTOR] = bytes(min(SECTOR, len(data) - begin))


def zero_page(data, at, _):
    begin = at - at % PAGE
    data[begin:begin + PAGE] = bytes(min(PAGE, len(data) - begin))


def truncate(data, at, _):
    del data[at:]


def append(data, _, rng):
    data += rng.randbytes(rng.choice((1, 8, 100, 5000)))


def swap(data, at, rng):
    """A misdirected write: two sectors change places."""
    other = rng.randrange(len(data))
    a, b = at - at % SECTOR, other - other % SECTOR
    size = min(SECTOR, len(data) - a, len(data) - b)
    data[a:a + size], data[b:b + size] = data[b:b + size], data[a:a + size]


def scramble(data, at, rng):
    size = min(rng.choice((1, 4, 20)), len(data) - at)
    data[at:at + size] = rng.randbytes(size)


DAMAGES = [flip, flip, flip, scramble, zero_sector, zero_page, truncate, append, swap, None]


class Base:
    """The image of a store, how it was left, and what was in it."""

    def __init__(self, image, how):
        self.image, self.how, self.closed = image, how, how == "closed"
        self.records = {}  # place -> {offset: text}
        self.units = {}    # path -> {place: offsets}
        self.files = []

    def look(self, folder):
        self.folder = folder
        self.files = sorted(str(path.relative_to(folder)) for path in
                            folder.rglob("*") if path.is_file()
                            and not IGNORED.search(str(path.relative_to(folder))))
        for place, records in self.records.items():
            self.note_segments(place, records)
        self.note_shared()

    def note_segments(self, place, records):
        """Which offsets lie in which data file of a partition that has its own."""
        for layout, suffix in (("kafka", ".log"), ("segment", ".msg")):
            folder = self.folder / layout / f"{place[0]}-{place[1]}"
            if not folder.is_dir():
                continue
            starts = []
            for path in folder.glob("*" + suffix):
                head = path.read_bytes()[:8]
                starts.append((int.from_bytes(head, "big"), path))
            starts.sort()
            for n, (start, path) in enumerate(starts):
                end = starts[n + 1][0] if n + 1 < len(starts) else 1 << 60
                self.units[str(path.relative_to(self.folder))] = {
                    place: {o for o in records if start <= o < end}}

    def note_shared(self):
        """The same for the shared log, from an independent look at it."""
        store = rocketmq_store.Store(self.folder / "rocketmq", SIZES, self.closed)
        for message in store.messages:
            place = (message.topic, message.queue)
            log = message.physical - message.physical % SIZES.log_bytes
            entry = message.offset * 20
            queue = entry - entry % SIZES.queue_bytes
            for path in (f"rocketmq/commitlog/{log:020}",
                         f"rocketmq/consumequeue/{message.topic}/{message.queue}/{queue:020}"):
                self.units.setdefault(path, {}).setdefault(place, set()).add(message.offset)


class Corruption(scenario.Scenario):
    name = "corruption"
    checks = ("flipped bits, zeroed, swapped, cut off and added bytes, deleted files: detected or "
              "harmless, no wrong byte served, nothing lost outside the damaged unit, no crash")
    seconds = {"ci": 150, "long": 3000}

    def run(self):
        self.kinds = collections.Counter()
        self.disk = LoopDisk(self.folder, 64 << 20)
        self.closing.callback(self.disk.close)
        self.data = self.disk.mount_point / "data"
        bases = [self.make_base(how) for how in ("closed", "killed", "journal")]
        wanted, done, number = self.size(1000, 20_000), 0, 0
        while done < wanted:
            base = bases[number % len(bases)]
            done += self.round(base, number)
            number += 1
        self.count("rounds", number)
        self.count("kinds of file", len(self.kinds))
        self.figures["by kind"] = dict(sorted(self.kinds.items()))

    def make_base(self, how):
        """Closed, killed, or killed with records in its journal."""
        journal = {"polylog.journal": "true"} if how == "journal" else {}
        broker = self.broker(self.data, {**SETTINGS, **journal})
        shutil.rmtree(self.data, ignore_errors=True)
        self.start(broker)
        places = [(f"t{n}{layout}", 0) for layout in scenario.LAYOUTS for n in range(3)]
        with broker.connect() as connection:
            for (topic, _), layout in zip(places, (l for l in scenario.LAYOUTS for _ in range(3))):
                self.create(connection, topic, 1, layout, TOPIC, small=False)
            for place in places:
                self.fill(connection, place)
            connection.commit("group", places[0][0], {0: 7})
        if how == "closed":
            broker.stop()
        else:
            broker.kill9()
        base = Base(self.folder / f"{how}.img", how)
        self.disk.unmount()
        copy_image(self.disk.image, base.image)
        self.disk.mount()
        broker.start()
        with broker.connect() as connection:
            base.records = {place: {r.offset: text_of(r) for r in
                                    kafka_wire.read_records(connection, *place)}
                            for place in places}
        broker.kill9()
        self.fresh_data(base)
        base.look(self.data)
        for place, records in base.records.items():
            self.require(len(records) > 100, f"{place} has {len(records)} records")
        return base

    def fresh_data(self, base):
        self.disk.unmount()
        copy_image(base.image, self.disk.image)
        self.disk.mount()

    def fill(self, connection, place):
        producer_id, epoch = connection.init_producer_id()
        sequence = 0
        for serial in range(60):
            records = []
            for n in range(self.rng.choice((1, 2, 5))):
                value = b"%s %d %d " % (place[0].encode(), serial, n)
                value += self.rng.randbytes(self.rng.choice((0, 30, 400, 1500)))
                key = b"key%d" % (serial % 7) if serial % 3 else None
                headers = (("h", b"%d" % n),) if serial % 4 == 0 else ()
                records.append((now_ms() - 100_000 + serial * 1000, key, value, headers))
            batch = encode_batch(records, self.rng.choice(("none", "none", "lz4", "zstd")),
                                 producer_id=producer_id, producer_epoch=epoch,
                                 base_sequence=sequence)
            sequence += len(records)
            if (error := connection.produce(*place, batch).error) != 0:
                raise scenario.Failed(f"filling {place}: {error}")

    def choose(self, base, number):
        """Some files of one round, no two of which have to do with each other."""
        def pick(files):
            kinds = sorted({kind_of(f) for f in files})
            kind = self.rng.choice(kinds)
            return self.rng.choice([f for f in files if kind_of(f) == kind])

        if number % 14 == 13:
            return [pick([f for f in base.files if f.startswith("meta/")])]
        if base.how == "journal" and self.rng.random() < 0.3:
            return ["journal/polylog.journal"]
        chosen = []
        for layout in scenario.LAYOUTS:
            own = [f for f in base.files if f.startswith((f"{layout}/", f"sidecar/{layout}"))]
            folders = sorted({f.split("/")[1] for f in own if f.count("/") == 2
                              and f.startswith((f"{layout}/t",))})
            if layout == "rocketmq" or self.rng.random() < 0.35:
                alone = [f for f in own if not f.startswith(f"{layout}/t")]
                chosen.append(pick(alone if layout != "rocketmq" else own))
            else:
                for folder in self.rng.sample(folders, min(2, len(folders))):
                    chosen.append(pick([f for f in own if f.startswith(f"{layout}/{folder}/")]))
        return chosen

    def damage(self, folder, name):
        """Answers what was done."""
        path = folder / name
        times = path.stat()
        data = bytearray(path.read_bytes())
        before = bytes(data)
        how = self.rng.choice(DAMAGES)
        if how is None:
            path.unlink()
            return f"{name} deleted"
        # Mostly where something stands: much of a reserved file is zeros.
        used = len(before.rstrip(b"\0"))
        limit = used if used and self.rng.random() < 0.9 else len(data)
        if limit == 0:
            how = append
        at = self.rng.randrange(limit) if limit else 0
        how(data, at, self.rng)
        if data == before:
            flip(data, at, self.rng)
            how = flip
        with open(path, "r+b") as file:
            file.write(data)
            file.truncate(len(data))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return f"{name} {how.__name__} at {at} of {len(before)}"

    def round(self, base, number):
        self.fresh_data(base)
        names = self.choose(base, number)
        done = [self.damage(self.data, name) for name in names]
        for name in names:
            self.kinds[kind_of(name)] += 1
        self.count("corruptions", len(names))
        where = f"round {number}, {base.how}, {'; '.join(done)}"
        told = history.History()
        for name in names:
            for place, offsets in base.units.get(name, {}).items():
                if DATA.match(name):
                    told.damaged(place, offsets)
        try:
            problems = self.look_at(base, told, names, number)
        except (OSError, ConnectionError, ValueError, Malformed) as problem:
            problems = [f"{type(problem).__name__}: {problem}"]
        self.problems += [f"{where}: {problem}" for problem in problems[:5]]
        return len(names)

    def look_at(self, base, told, names, number):
        broker = self.broker(self.data, SETTINGS)
        if base.how == "journal":
            self.journal_or_none(broker)
        try:
            self.start(broker)
        except brokers.BrokerFailed as problem:
            self.count("refused to start")
            text = str(problem)
            if "polylog: " in text and (SHARED_REFUSED.search(text) or
                                        base.how == "journal" and JOURNAL_REFUSED.search(text) or
                                        any(MAY_REFUSE.match(name) for name in names)):
                return []
            return [f"does not start: {text[-600:]}"]
        session, problems = told.session("writer"), []
        with broker.connect(timeout=20) as connection:
            for place, records in base.records.items():
                for offset, text in sorted(records.items()):
                    session.write(place, [text]).ok(offset)
                found, errors = self.read_around(connection, place, records)
                told.final(place, min(records), max(records) + 1, found)
                missing = len(records) - len({o for o, _ in found} & set(records))
                self.count("records served as they were", len(records) - missing)
                self.count("records missing in what was damaged", missing)
                self.count("reads answered with an error", errors)
                problems += self.write_on(connection, place, told)
        problems += [str(anomaly) for anomaly in told.check()]
        if not broker.alive():
            problems.append(f"the broker ended: {broker.tail()}")
            return problems
        if number % 7 == 0:
            broker.stop(may_fail=True)
            broker.start()
        broker.kill9()
        return problems

    def read_around(self, connection, place, records):
        """What reads between the first and the last offset; errors are stepped over."""
        found, errors, at = [], 0, min(records)
        while at <= max(records):
            got = connection.fetch(*place, at, max_wait_ms=0, max_bytes=1 << 20)
            batches = decode_batches(got.records) if not got.error else []
            batches = [b for b in batches if b.last_offset >= at]
            if not batches:
                errors += 1
                at += 1
                continue
            for batch in batches:
                if crc32c(batch.raw[21:]) != batch.crc:
                    raise ValueError(f"{place} at {batch.base_offset}: served with a wrong CRC")
                found += [(r.offset, text_of(r)) for r in batch.records() if r.offset >= at]
                at = batch.last_offset + 1
        return found, errors

    def write_on(self, connection, place, told):
        """The damaged partition takes new records, or says that it does not."""
        value = b"after the damage %d" % time.monotonic_ns()
        answer = connection.produce(*place, encode_batch([(now_ms(), None, value)]))
        if answer.error:
            self.count("partitions that take no new records")
            damaged = place in told.excused
            return [] if damaged else [f"{place} is whole and answers {answer.error} to a write"]
        got = connection.fetch(*place, answer.base_offset, max_wait_ms=100)
        values = [r.value for b in decode_batches(got.records) for r in b.records()
                  if r.offset == answer.base_offset]
        return [] if values == [value] else [f"{place}: written at {answer.base_offset}, reads "
                                             f"as {values} (error {got.error})"]
