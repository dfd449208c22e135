"""RocketMQ's message store: its own implementation as a process, and an independent reader.

The reader shares no code with polylog or with RocketMQ; it takes a store directory apart with
struct, says what contradicts itself, and derives from the commit log alone what the consume queues
and the index must hold. Source: RocketMQ store format, "Commit log", "Simple queue", "Index
files", "checkpoint, abort, lock".

As a program it prints every complaint about a store directory and exits with 1 if there is one.
"""

import base64
import ipaddress
import itertools
import json
import pathlib
import re
import struct
import subprocess
import sys
import zlib
from typing import NamedTuple

import dependencies

MAGIC_V1, MAGIC_V2, MAGIC_BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
BORN_V6, STORE_V6, TRANSACTION, PREPARED, ROLLBACK = 0x10, 0x20, 0xC, 0x4, 0xC
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAYS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
ENTRY = struct.Struct(">qiq")
INDEX_HEADER = struct.Struct(">qqqqii")
INDEX_ENTRY = struct.Struct(">iqii")
FILLER_ENTRY = (0, 0x7FFFFFFF, 0)
START_SECONDS = 120


class StoreFailed(Exception):
    """RocketMQ's store did not do what it was asked for."""


class Sizes(NamedTuple):
    """File sizes; both implementations have to be told the same."""

    log_bytes: int = 256 * 1024
    queue_bytes: int = 2000
    index_slots: int = 1000
    index_entries: int = 20_000

    def harness_arguments(self):
        return ["--log-bytes", self.log_bytes, "--queue-bytes", self.queue_bytes,
                "--index-slots", self.index_slots, "--index-entries", self.index_entries]

    def polylog_settings(self):
        return {"mappedFileSizeCommitLog": self.log_bytes,
                "mappedFileSizeConsumeQueue": self.queue_bytes,
                "maxHashSlotNum": self.index_slots, "maxIndexNum": self.index_entries}


def java_hash(text):
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for (unit,) in struct.iter_unpack(">H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def index_hash(topic, key):
    value = abs(java_hash(f"{topic}#{key}"))
    return 0 if value >> 31 else value


# RocketMQ's own implementation

_runs = itertools.count(1)

class RocketmqStore:
    """RocketMQ's DefaultMessageStore of one version, each run a process of its own."""

    def __init__(self, jars, sizes, folder):
        self.jars, self.sizes = jars, sizes
        self.folder = pathlib.Path(folder)  # for specifications and answers
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def version(self):
        return self.jars.name.removeprefix("rocketmq-")

    def start(self, command, store, *arguments, spec=None):
        """Starts a run without waiting for it."""
        stem = self.folder / f"{next(_runs)}-{self.version}-{command}"
        line = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1",
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                "-cp", f"{dependencies.rocketmq_classes(self.jars)}:{self.jars}/*",
                "StoreHarness", command, store, "--out", f"{stem}.out",
                *self.sizes.harness_arguments(), *arguments]
        if spec is not None:
            path = pathlib.Path(f"{stem}.spec")
            path.write_text("".join(json.dumps(item) + "\n" for item in spec), encoding="utf-8")
            line += ["--spec", path]
        return Run(list(map(str, line)), stem)

    def run(self, command, store, *arguments, spec=None):
        """Runs to the end; answers its lines."""
        run = self.start(command, store, *arguments, spec=spec)
        return run.wait()

    def write(self, store, spec, *arguments):
        """Puts messages; answers what was put, the filling messages of an "edge" included."""
        return [line for line in self.run("write", store, *arguments, spec=spec) if "put" in line]

    def read(self, store, *arguments):
        return Answer(self.run("read", store, *arguments))


class Run:
    def __init__(self, line, stem):
        self.out, self.errors = pathlib.Path(f"{stem}.out"), pathlib.Path(f"{stem}.err")
        self.out.touch()
        with open(self.errors, "wb") as sink:
            self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=sink,
                                            stderr=sink)

    def lines(self):
        text = self.out.read_text(encoding="utf-8")
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def wait(self):
        try:
            code = self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise StoreFailed(f"not done in {START_SECONDS} s:\n{self.tail()}") from None
        if code != 0:
            raise StoreFailed(f"ended with {code}:\n{self.tail()}")
        return self.lines()

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def tail(self):
        text = self.errors.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        return "\n".join([str(line)[:300] for line in self.lines()[-3:]] + text)


class Answer:
    """What a "read" printed."""

    def __init__(self, lines):
        self.opened = next(line for line in lines if "started" in line)
        self.queues = {(line["queues"], line["queue"]): (line["min"], line["max"])
                       for line in lines if "queues" in line}
        self.messages = [line for line in lines if "message" in line]
        self.missing = [line for line in lines if "missing" in line]
        self.tags = [line for line in lines if "tag" in line]
        self.keys = [line for line in lines if "key" in line]

    def by_queue(self):
        found = {}
        for line in self.messages:
            found.setdefault((line["message"], line["queue"]), []).append(line)
        return found

    def complaints(self, index_whole=True):
        """What does not agree within the answer: every way must lead to the same messages."""
        said = [f"missing: {line}" for line in self.missing]
        times = {(m["message"], m["queue"], m["offset"]): m["storeTimestamp"]
                 for m in self.messages}
        for queue, (low, high) in self.queues.items():
            offsets = [m["offset"] for m in self.by_queue().get(queue, [])]
            if offsets != list(range(low, high)):
                said.append(f"{queue} from {low} to {high} has {offsets}")
        for message in self.messages:
            place = (message["message"], message["queue"], message["offset"])
            if not message["foundById"]:
                said.append(f"{place} is not found by its id")
            if (message.get("entryPhysical"), message.get("entrySize")) != (
                    message["physical"], message["size"]):
                said.append(f"{place} has another queue entry")
            for name in ("atOrAfter", "atOrBefore"):
                there = times.get((place[0], place[1], message[name]))
                if there != message["storeTimestamp"]:
                    said.append(f"{place} by time: {name} leads to {message[name]}")
        return said + self._key_complaints(index_whole) + self._tag_complaints()

    def _key_complaints(self, index_whole):
        said, expected = [], {}
        for message in self.messages:
            for key in keys_of(message["properties"]):
                expected.setdefault((message["message"], key), set()).add(message["physical"])
        topics = {m["physical"]: m["message"] for m in self.messages}
        hashes = {}
        for (topic, key), places in expected.items():
            hashes.setdefault(index_hash(topic, key), set()).update(places)
        asked = {(line["topic"], line["key"]): line["found"] for line in self.keys}
        for (topic, key), places in expected.items():
            found = asked.get((topic, key), [])
            missing = places - set(found)
            if missing and len(found) < 64 and index_whole:
                said.append(f"{topic} key {key}: {sorted(missing)} not found")
            for place in set(found) - hashes[index_hash(topic, key)]:
                said.append(f"{topic} key {key}: found {place} of {topics.get(place)}")
        return said

    def _tag_complaints(self):
        said, queues = [], self.by_queue()
        for line in self.tags:
            if line["topic"] == SCHEDULE_TOPIC:
                continue  # the entry holds the time of delivery there
            wanted = java_hash(line["tag"])
            offsets = [m["offset"] for m in queues[line["topic"], line["queue"]]
                       if java_hash(m["properties"].get("TAGS", "")) == wanted
                       and m["properties"].get("TAGS")]
            if line["offsets"] != offsets:
                said.append(f"tag {line}: expected {offsets}")
        return said


def keys_of(properties):
    unique = properties.get("UNIQ_KEY")
    return ([unique] if unique else []) + [
        key for key in properties.get("KEYS", "").split(" ") if key]


# The independent reader


class Message(NamedTuple):
    """One record of the commit log as it stands there."""

    physical: int
    size: int
    magic: int
    body_crc: int
    queue: int
    flag: int
    offset: int
    stored_physical: int
    sys_flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared: int
    body: bytes
    topic: str
    properties_text: bytes

    @property
    def transaction(self):
        return self.sys_flag & TRANSACTION

    def properties(self):
        found = {}
        for piece in self.properties_text.decode().split("\x02"):
            name, separator, value = piece.partition("\x01")
            if separator and name and value:
                found[name] = value
        return found

    def message_id(self):
        host, port = self.store_host.rsplit(":", 1)
        address = ipaddress.ip_address(host.strip("[]")).packed
        return (address + struct.pack(">iq", int(port), self.physical)).hex().upper()

    def tags_code(self):
        properties = self.properties()
        level = properties.get("DELAY")
        if self.topic == SCHEDULE_TOPIC and level is not None and int(level) > 0:
            return self.store_timestamp + 1000 * DELAYS_S[min(int(level), len(DELAYS_S)) - 1]
        return java_hash(properties["TAGS"]) if properties.get("TAGS") else 0


class Malformed(Exception):
    """Bytes that are no message."""


def decode_message(data, at, physical):
    """The message at `at` of a file, or None where nothing more is written."""
    if len(data) - at < 8:
        return None
    size, magic = struct.unpack_from(">iI", data, at)
    if (size, magic) == (0, 0):
        return None
    if magic not in (MAGIC_V1, MAGIC_V2) or size < 91 or at + size > len(data):
        raise Malformed(f"at {physical}: size {size}, magic {magic:#x}")
    raw, place = data[at:at + size], 8

    def take(layout):
        nonlocal place
        values = struct.unpack_from(layout, raw, place)
        place += struct.calcsize(layout)
        return values if len(values) > 1 else values[0]

    def take_bytes(count):
        nonlocal place
        if count < 0 or place + count > size:
            raise Malformed(f"at {physical}: {count} bytes beyond its end")
        place += count
        return raw[place - count:place]

    def take_host(v6):
        address = ipaddress.ip_address(take_bytes(16 if v6 else 4))
        return f"[{address}]:{take('>i')}" if v6 else f"{address}:{take('>i')}"

    crc, queue, flag, offset, stored_physical, sys_flag, born = take(">iiiqqiq")
    born_host = take_host(sys_flag & BORN_V6)
    stored = take(">q")
    store_host = take_host(sys_flag & STORE_V6)
    reconsumed, prepared, body_size = take(">iqi")
    body = take_bytes(body_size)
    topic = take_bytes(take(">b" if magic == MAGIC_V1 else ">h")).decode()
    properties = take_bytes(take(">h"))
    if place != size:
        raise Malformed(f"at {physical}: {place} bytes of {size}")
    return Message(physical, size, magic, crc, queue, flag, offset, stored_physical, sys_flag,
                   born, born_host, stored, store_host, reconsumed, prepared, body, topic,
                   properties)


class Store:
    """A store directory, read whole. `complaints` is empty when all is well.

    `closed`: after a clean stop, when every record has its entries and `abort` is gone. Otherwise
    a queue or the index may end early, by what waited in memory. `index_whole`: no RocketMQ has
    recovered this store, which deletes the index and makes only its newest part again.
    """

    def __init__(self, folder, sizes, closed=True, index_whole=True):
        self.folder, self.sizes, self.closed = pathlib.Path(folder), sizes, closed
        self.index_whole = index_whole
        self.complaints = []
        self.messages = self._read_log()
        self.queues = self._read_queues()
        self.index = self._read_index()
        self.checkpoint = self._read_checkpoint()
        self._check_queues()
        self._check_index()
        if closed and (self.folder / "abort").exists():
            self.complain("abort", "there after a clean stop")
        if not closed and not (self.folder / "abort").exists():
            self.complain("abort", "missing after a stop that was not clean")

    def complain(self, path, text):
        self.complaints.append(f"{path}: {text}")

    def _files(self, folder, size):
        """The mapped files of a folder: (start, bytes), each checked by name and length."""
        files, expected = [], None
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            name = path.relative_to(self.folder)
            if not path.is_file() or not re.fullmatch(r"\d{20}", path.name):
                self.complain(name, "not a file of this queue")
                continue
            data = path.read_bytes()
            if len(data) != size:
                self.complain(name, f"length {len(data)}, expected {size}")
            if int(path.name) % size or expected not in (None, int(path.name)):
                self.complain(name, f"expected {expected}")
            expected = int(path.name) + size
            files.append((int(path.name), data))
        return files

    def _read_log(self):
        messages, ended, last_time = [], False, 0
        self.log_start, self.log_end = 0, 0
        for number, (start, data) in enumerate(
                self._files(self.folder / "commitlog", self.sizes.log_bytes)):
            if number == 0:
                self.log_start = self.log_end = start
            if ended:
                if any(data):
                    self.complain(start, "written beyond the end of the log")
                continue
            at, blank = 0, False
            try:
                while not blank and (message := decode_message(data, at, start + at)) is not None:
                    self._check_message(message, last_time)
                    last_time = message.store_timestamp
                    messages.append(message)
                    at += message.size
                    blank = self._is_blank(data, at, start)
            except Malformed as problem:
                self.complain(start, str(problem))
            self.log_end = start + (len(data) if blank else at)
            ended = not blank
        return messages

    def _is_blank(self, data, at, start):
        if len(data) - at < 8:
            self.complain(start, f"only {len(data) - at} bytes left for the blank record")
            return True
        remaining, magic = struct.unpack_from(">iI", data, at)
        if magic == MAGIC_BLANK and remaining != len(data) - at:
            self.complain(start, f"blank at {at} says {remaining}")
        return magic == MAGIC_BLANK

    def _check_message(self, message, last_time):
        if message.stored_physical != message.physical:
            self.complain(message.physical, f"says it stands at {message.stored_physical}")
        if zlib.crc32(message.body) & 0x7FFFFFFF != message.body_crc:
            self.complain(message.physical, "body CRC")
        if message.store_timestamp < last_time:
            self.complain(message.physical, "store timestamps go back")
        if message.transaction in (PREPARED, ROLLBACK) and message.offset != 0:
            self.complain(message.physical, "a prepared message has a queue offset")

    def _read_queues(self):
        """(topic, queue) -> (first offset, bytes of the used stretch)."""
        queues, root = {}, self.folder / "consumequeue"
        for folder in sorted(root.glob("*/*")) if root.is_dir() else []:
            files = self._files(folder, self.sizes.queue_bytes)
            if not files:
                continue
            data = b"".join(part for _, part in files)
            used = len(data)
            while used and not any(data[used - ENTRY.size:used]):
                used -= ENTRY.size
            name = folder.relative_to(self.folder)
            # One killed just after it made the next file leaves that empty; harmless behind others.
            just_made = not self.closed and len(files) > 1
            if files[-1][0] - files[0][0] >= used and not just_made:
                self.complain(name, "its last file holds no entry")
            queues[folder.parent.name, int(folder.name)] = (files[0][0] // ENTRY.size, data[:used])
        return queues

    def expected_queues(self):
        """What the commit log says of each queue: (topic, queue) -> {offset: entry bytes}."""
        expected = {}
        for message in self.messages:
            if message.transaction not in (PREPARED, ROLLBACK):
                entries = expected.setdefault((message.topic, message.queue), {})
                if message.offset in entries:
                    self.complain(message.physical, f"{message.topic}-{message.queue} has offset "
                                                    f"{message.offset} twice")
                entries[message.offset] = ENTRY.pack(message.physical, message.size,
                                                     message.tags_code())
        return expected

    def _check_queues(self):
        expected = self.expected_queues()
        for queue, (first, data) in self.queues.items():
            entries = expected.get(queue, {})
            for n in range(len(data) // ENTRY.size):
                found = data[n * ENTRY.size:(n + 1) * ENTRY.size]
                place, size, _ = ENTRY.unpack(found)
                gone = (place, size, 0) == FILLER_ENTRY or place < self.log_start
                if not gone and entries.get(first + n) != found:
                    self.complain(f"{queue} entry {first + n}",
                                  f"{found.hex()}, expected {entries.get(first + n, b'').hex()}")
        for queue, entries in expected.items():
            first, data = self.queues.get(queue, (0, b""))
            behind = [offset for offset in entries if offset >= first + len(data) // ENTRY.size]
            if self.closed and behind:
                self.complain(queue, f"no entry for {behind[:5]} of {len(behind)}")

    def tag_hashes(self):
        """(hash, physical offset) of what RocketMQ 5.5 and later index besides the keys."""
        tagged = ((m, m.properties().get("TAGS")) for m in self.messages)
        return {(index_hash(m.topic, f"T#{tag}"), m.physical) for m, tag in tagged if tag}

    def key_entries(self):
        """The index without entries of tags: what every version builds alike."""
        tags, keys = self.tag_hashes(), {entry[:2] for entry in self.expected_index()}
        return [entry for entry in self.index if entry[1] >= self.log_start
                and (entry[:2] not in tags or entry[:2] in keys)]

    def expected_index(self):
        """(hash, physical offset, store time) of every key of the log in order."""
        return [(index_hash(message.topic, key), message.physical, message.store_timestamp)
                for message in self.messages if message.transaction != ROLLBACK
                for key in keys_of(message.properties())]

    def _read_index(self):
        """(hash, physical offset, time) of every entry in order, oldest file first."""
        entries, root = [], self.folder / "index"
        slots, most = self.sizes.index_slots, self.sizes.index_entries
        for path in sorted(root.iterdir()) if root.is_dir() else []:
            name = path.relative_to(self.folder)
            data = path.read_bytes()
            if not re.fullmatch(r"\d{17}", path.name):
                self.complain(name, "not named by a time")
            if len(data) != 40 + 4 * slots + 20 * most:
                self.complain(name, f"length {len(data)}")
                continue
            entries += self._read_index_file(name, data)
        return entries

    def _read_index_file(self, name, data):
        begin, end, first, last, used, following = INDEX_HEADER.unpack_from(data)
        slots, entries, newest = self.sizes.index_slots, [], {}
        for number in range(1, following):
            key_hash, physical, seconds, previous = INDEX_ENTRY.unpack_from(
                data, 40 + 4 * slots + 20 * number)
            slot = key_hash % slots
            if previous != newest.get(slot, 0):
                self.complain(name, f"entry {number}: previous {previous}, expected "
                                    f"{newest.get(slot, 0)}")
            newest[slot] = number
            entries.append((key_hash, physical, begin + 1000 * seconds))
        for slot in range(slots):
            (number,) = struct.unpack_from(">i", data, 40 + 4 * slot)
            if number >= following and not self.closed:
                continue  # killed between the slots and the header; nobody follows such a slot
            if number != newest.get(slot, 0):
                self.complain(name, f"slot {slot}: {number}, expected {newest.get(slot, 0)}")
        if used != len(newest):
            self.complain(name, f"{used} slots in use, expected {len(newest)}")
        if entries:
            if (first, last) != (entries[0][1], entries[-1][1]):
                self.complain(name, f"offsets {first} to {last}, entries {entries[0][1]} to "
                                    f"{entries[-1][1]}")
            times = {m.physical: m.store_timestamp for m in self.messages}
            if end != times.get(last, end) or begin != times.get(first, begin):
                self.complain(name, f"times {begin} to {end}")
        # Entries come before the header that counts them.
        if self.closed and any(data[40 + 4 * slots + 20 * following:]):
            self.complain(name, "written beyond its last entry")
        return entries

    def _check_index(self):
        expected = self.expected_index()
        found = self.key_entries()
        if not self.index_whole:
            places = [entry[1] for entry in expected]
            expected = expected[places.index(found[0][1]) if found and found[0][1] in places
                                else len(expected):]
        whole = expected if self.closed else expected[:len(found)]
        if [entry[:2] for entry in found] != [entry[:2] for entry in whole]:
            differ = next((n for n, pair in enumerate(zip(found, whole)) if pair[0][:2] !=
                           pair[1][:2]), min(len(found), len(whole)))
            self.complain("index", f"{len(found)} entries, expected {len(whole)}; they differ "
                                   f"from number {differ}")
        for entry, (_, physical, stored) in zip(found, whole):
            # A file's first entry is measured from the end of the file before it.
            if abs(entry[2] - stored) > 2000:
                self.complain("index", f"time of {physical}: {entry[2]}, stored {stored}")

    def _read_checkpoint(self):
        path = self.folder / "checkpoint"
        if not path.exists():
            self.complain("checkpoint", "missing")
            return (0,) * 6
        data = path.read_bytes()
        if len(data) != 4096 or any(data[48:]):
            self.complain("checkpoint", f"{len(data)} bytes, or more than six fields")
        values = struct.unpack_from(">6q", data)  # the sixth since 5.5
        newest = self.messages[-1].store_timestamp if self.messages else 0
        if any(value > newest for value in values[:3]):
            self.complain("checkpoint", f"{values[:3]} beyond the newest record, {newest}")
        return values

    def visible(self):
        """(topic, queue) -> its messages by offset, as a consumer may see them."""
        found = {}
        for message in self.messages:
            if message.transaction not in (PREPARED, ROLLBACK):
                found.setdefault((message.topic, message.queue), []).append(message)
        return found


# What tests write through RocketMQ


def _text(data):
    return base64.b64encode(data).decode()


def decoded_body(line):
    return base64.b64decode(line["body"])


def put(topic, body=b"", queue=0, **fields):
    return {"op": "put", "topic": topic, "queue": queue, "body": _text(body), **fields}


def batch(topic, bodies, queue=0, **fields):
    return {"op": "batch", "topic": topic, "queue": queue,
            "messages": [{"body": _text(body), "properties": {"KEYS": f"batch{n}"}}
                         for n, body in enumerate(bodies)], **fields}


def scenario(seed=0):
    """Every kind of record, with the ones that stand at a file's end."""
    lines = [put("TopicTest", b"hello", 3, properties={
        "TAGS": "TagA", "KEYS": f"K1 K2  K{seed}",
        "UNIQ_KEY": f"7F00000100002A139C16073E5C61{seed:04X}"})]
    lines += [put("TopicTest", b"edge %d" % edge, 1, edge=edge, properties={"KEYS": f"edge{edge}"})
              for edge in (7, 8, 9, 0, 4, 100)]
    lines += [batch("TopicTest", [b"a" * 1000, b"", b"c" * 77], 2, edge=edge)
              for edge in (7, 8, 9, -1, -500)]
    lines += [put("TopicTest", b"", 0), put("TopicTest", b"", 0, properties={"TAGS": "empty"}),
              put("Large", b"p", 0, properties={"big": "x" * 32762}),
              put("Large", b"p", 0, properties={"big": "x" * 32764}),  # refused
              put("Large", b"b" * 150_000, 1)]
    for tag in ("order-created", "支付", "polygenelubricants", "TagA"):
        lines.append(put("Tags", tag.encode(), 0, properties={"TAGS": tag}))
    lines += [put("Hosts", b"v6", 0, bornHost="[2001:db8::7]:51234"),
              put("Hosts", b"both", 0, bornHost="[2001:db8::7]:51234",
                  storeHost="[2001:db8::1]:10911"),
              put("Hosts", b"flags", 0, flag=-5, reconsumeTimes=3, bornTimestamp=1_700_000_000_000,
                  properties={"color": "grün", "WAIT": "true"})]
    for level in (1, 2, 5, 18):
        lines.append(put(SCHEDULE_TOPIC, b"later", level - 1, properties={
            "DELAY": str(level), "REAL_TOPIC": "Later", "REAL_QID": "0", "TAGS": "TagA"}))
    lines += [put("RMQ_SYS_TRANS_HALF_TOPIC", b"half", 0, properties={
                  "TRAN_MSG": "true", "PGROUP": "group", "REAL_TOPIC": "Orders", "REAL_QID": "0",
                  "UNIQ_KEY": f"7F00000100002A139C16073E5C62{seed:04X}"}),
              put("Orders", b"prepared", 0, sysFlag=PREPARED),
              put("Orders", b"rolled back", 0, sysFlag=ROLLBACK, properties={"KEYS": "gone"}),
              put("Orders", b"committed", 0, sysFlag=0x8, prepared=1234,
                  properties={"KEYS": "kept"}),
              put("L" * 127, b"long", 0), put("%RETRY%" + "g" * 140, b"v2", 0),
              put("Compressed", zlib.compress(b"text " * 2000), 0, sysFlag=0x1)]
    for topic, key in (("Keys", "Aa"), ("Keys", "BB"), ("AaTopic", "k"), ("BBTopic", "k"),
                       ("Keys", "AaBB BBAa"), ("Keys", "AaAa"), ("Keys", "BBBB")):
        lines.append(put(topic, f"{topic} {key}".encode(), 0, properties={"KEYS": key}))
    for n in range(330):
        lines.append(put("Many", b"%d " % n * 50, n % 2, properties={
            "TAGS": f"tag{n % 7}", "KEYS": f"many{seed}-{n} all{seed}-{n % 9}"}))
    return lines


def main(arguments):
    sizes = Sizes(*map(int, arguments[1:])) if len(arguments) > 1 else Sizes(
        1 << 30, 6_000_000, 5_000_000, 20_000_000)
    closed = not (pathlib.Path(arguments[0]) / "abort").exists()
    complaints = Store(arguments[0], sizes, closed).complaints
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
