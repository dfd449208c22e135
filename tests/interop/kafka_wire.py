"""Kafka's request frames, written and read by hand: what a test needs and no client will send.

Independent of polylog's own codecs on purpose. Source: Kafka 4.3 message schemas and protocol
guide (framing, encodings). Only the fields that tests look at are named.
"""

import contextlib
import socket
import struct
import time
import uuid as _uuid
from typing import NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = 18, 19, 20, 21
INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 22, 23
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
FIRST_FLEXIBLE = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, API_VERSIONS: 3,
                  CREATE_TOPICS: 5, DELETE_TOPICS: 4, DELETE_RECORDS: 2, INIT_PRODUCER_ID: 2,
                  OFFSET_FOR_LEADER_EPOCH: 4}
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3

NONE, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC = 0, 1, 2, 3
LEADER_NOT_AVAILABLE, NOT_LEADER, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE = 5, 6, 7, 10
INVALID_TOPIC, RECORD_LIST_TOO_LARGE, NOT_ENOUGH_REPLICAS = 17, 18, 19
INVALID_TIMESTAMP, UNSUPPORTED_VERSION, TOPIC_ALREADY_EXISTS = 32, 35, 36
INVALID_REPLICATION_FACTOR, INVALID_REQUEST = 38, 42
OUT_OF_ORDER_SEQUENCE, KAFKA_STORAGE_ERROR, UNSUPPORTED_COMPRESSION = 45, 56, 76
INVALID_RECORD, UNKNOWN_TOPIC_ID = 87, 100
RETRIABLE = {2, 3, 5, 6, 7, 13, 14, 15, 16, 19, 20, 56, 78}


class Writer:
    """Builds a request body in the classic or the flexible encoding."""

    def __init__(self, flexible=False):
        self.flexible = flexible
        self.data = bytearray()

    def put(self, layout, *values):
        self.data += struct.pack(">" + layout, *values)
        return self

    def uvarint(self, value):
        while value > 0x7F:
            self.data.append((value & 0x7F) | 0x80)
            value >>= 7
        self.data.append(value)
        return self

    def string(self, text):
        content = None if text is None else text.encode()
        if self.flexible:
            self.uvarint(0 if content is None else len(content) + 1)
        else:
            self.put("h", -1 if content is None else len(content))
        self.data += content or b""
        return self

    def blob(self, content):
        if self.flexible:
            self.uvarint(0 if content is None else len(content) + 1)
        else:
            self.put("i", -1 if content is None else len(content))
        self.data += content or b""
        return self

    def array(self, count):
        if self.flexible:
            return self.uvarint(0 if count is None else count + 1)
        return self.put("i", -1 if count is None else count)

    def uuid(self, value):
        self.data += value.bytes
        return self

    def tags(self):
        return self.uvarint(0) if self.flexible else self


class Reader:
    """Reads a response body; running past the end raises."""

    def __init__(self, data, flexible=False):
        self.data, self.at, self.flexible = data, 0, flexible

    def get(self, layout):
        values = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(">" + layout)
        return values[0] if len(values) == 1 else values

    def uvarint(self):
        shift = value = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self, layout):
        return self.uvarint() - 1 if self.flexible else self.get(layout)

    def _take(self, size):
        if size < 0:
            return None
        if self.at + size > len(self.data):
            raise ValueError(f"{size} bytes wanted, {len(self.data) - self.at} left")
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def string(self):
        content = self._take(self._length("h"))
        return None if content is None else content.decode()

    def blob(self):
        return self._take(self._length("i"))

    def array(self):
        return self._length("i")

    def uuid(self):
        return _uuid.UUID(bytes=self._take(16))

    def tags(self):
        if self.flexible:
            for _ in range(self.uvarint()):
                self.uvarint()
                self._take(self.uvarint())

    def finish(self):
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes after the response")


class Produced(NamedTuple):
    error: int
    base_offset: int
    append_time: int
    log_start: int


class Fetched(NamedTuple):
    """One partition of a Fetch response; records_length is -1 for a null field."""

    error: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: tuple
    records: bytes
    records_length: int
    top_error: int


class Listed(NamedTuple):
    error: int
    timestamp: int
    offset: int
    epoch: int


class TopicInfo(NamedTuple):
    error: int
    name: str
    topic_id: _uuid.UUID
    partitions: dict  # index -> (error, leader, epoch)


class Connection:
    """One TCP connection; requests may be pipelined with send() and receive()."""

    def __init__(self, port, host="127.0.0.1", timeout=20.0, client_id="wire-test"):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id, self.correlation = client_id, 0
        self.known = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()

    def send(self, api, version, body):
        self.correlation += 1
        header = struct.pack(">hhi", api, version, self.correlation)
        name = self.client_id.encode()
        header += struct.pack(">h", len(name)) + name
        if version >= FIRST_FLEXIBLE.get(api, 1 << 15):
            header += b"\x00"
        frame = header + bytes(body)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return self.correlation

    def receive_exactly(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(1 << 20, size - len(parts)))
            if not part:
                raise ConnectionError("closed by the broker")
            parts += part
        return bytes(parts)

    def receive_frame(self):
        (size,) = struct.unpack(">i", self.receive_exactly(4))
        return self.receive_exactly(size)

    def receive(self, api, version, correlation):
        frame = self.receive_frame()
        (got,) = struct.unpack_from(">i", frame)
        if got != correlation:
            raise ValueError(f"correlation id {got}, expected {correlation}")
        flexible = version >= FIRST_FLEXIBLE.get(api, 1 << 15)
        reader = Reader(frame, flexible)
        reader.at = 4
        if flexible and api != API_VERSIONS:
            reader.tags()
        return reader

    def request(self, api, version, body):
        return self.receive(api, version, self.send(api, version, body))

    # One request each; the version is a parameter where tests vary it.

    def api_versions(self, version=0):
        writer = Writer(version >= 3)
        if version >= 3:
            writer.string("wire-test").string("1").tags()
        reader = self.request(API_VERSIONS, version, writer.data)
        error, ranges = reader.get("h"), {}
        for _ in range(reader.array()):
            key, low, high = reader.get("hhh")
            ranges[key] = (low, high)
            reader.tags()
        return error, ranges

    def max_version(self, api):
        if not self.known:
            self.known = self.api_versions()[1]
        return self.known[api][1]

    def metadata(self, topics=None, create=False, version=10):
        flexible = version >= 9
        writer = Writer(flexible).array(None if topics is None else len(topics))
        for name in topics or ():
            if version >= 10:
                writer.uuid(_uuid.UUID(int=0))
            writer.string(name).tags()
        if version >= 4:
            writer.put("b", create)
        if 8 <= version <= 10:
            writer.put("b", 0)
        if version >= 8:
            writer.put("b", 0)
        reader = self.request(METADATA, version, writer.tags().data)
        return _read_metadata(reader, version)

    def topic_id(self, name):
        return self.metadata([name])[name].topic_id

    def create_topic(self, name, partitions=1, configs=None, replication=1):
        writer = Writer().array(1).string(name).put("ih", partitions, replication).array(0)
        writer.array(len(configs or {}))
        for key, value in (configs or {}).items():
            writer.string(key).string(str(value))
        writer.put("ib", 30000, 0)
        reader = self.request(CREATE_TOPICS, 4, writer.data)
        reader.get("i")
        reader.array()
        reader.string()
        error, message = reader.get("h"), reader.string()
        if error == NONE:
            self.wait_for_topic(name, partitions)
        return error, message

    def wait_for_topic(self, name, partitions=1, seconds=15):
        """Until every partition has a leader: creation is asynchronous in Kafka."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            info = self.metadata([name])[name]
            if info.error == NONE and len(info.partitions) == partitions and all(
                    error == NONE for error, _, _ in info.partitions.values()):
                # Kafka's metadata runs ahead of the broker that is to lead.
                asked = list(info.partitions)[:16]
                if all(self.list_offset(name, p, LATEST).error == NONE for p in asked):
                    return info
            time.sleep(0.02)
        raise TimeoutError(f"topic {name} has no leaders")

    def delete_topic(self, name):
        writer = Writer().array(1).string(name).put("i", 30000)
        reader = self.request(DELETE_TOPICS, 3, writer.data)
        reader.get("i")
        reader.array()
        reader.string()
        return reader.get("h")

    def send_produce(self, topic, partition, records, acks=-1, version=7, timeout_ms=15000,
                     topic_id=None):
        writer = Writer(version >= 9).string(None).put("hi", acks, timeout_ms).array(1)
        if version >= 13:
            writer.uuid(topic_id)
        else:
            writer.string(topic)
        writer.array(1).put("i", partition).blob(records).tags().tags().tags()
        return self.send(PRODUCE, version, writer.data)

    def receive_produce(self, correlation, version=7):
        return _read_produce(self.receive(PRODUCE, version, correlation), version)

    def produce(self, topic, partition, records, acks=-1, version=7, **options):
        correlation = self.send_produce(topic, partition, records, acks, version, **options)
        return None if acks == 0 else self.receive_produce(correlation, version)

    def init_producer_id(self, version=1):
        writer = Writer(version >= 2).string(None).put("i", 60000)
        if version >= 3:
            writer.put("qh", -1, -1)
        body = writer.tags().data
        for _ in range(100):
            reader = self.request(INIT_PRODUCER_ID, version, body)
            reader.get("i")
            error, producer_id, epoch = reader.get("hqh")
            if error == NONE:
                return producer_id, epoch
            if error not in RETRIABLE:
                break
            time.sleep(0.05)
        raise ValueError(f"InitProducerId answered {error}")

    def fetch(self, topic, partition, offset, version=11, max_wait_ms=500, min_bytes=1,
              max_bytes=1 << 20, isolation=0, topic_id=None, leader_epoch=-1):
        writer = Writer(version >= 12)
        if version <= 14:
            writer.put("i", -1)
        writer.put("iiib", max_wait_ms, min_bytes, max_bytes, isolation)
        if version >= 7:
            writer.put("ii", 0, -1)
        writer.array(1)
        if version >= 13:
            writer.uuid(topic_id or self.topic_id(topic))
        else:
            writer.string(topic)
        writer.array(1).put("i", partition)
        if version >= 9:
            writer.put("i", leader_epoch)
        writer.put("q", offset)
        if version >= 12:
            writer.put("i", -1)
        if version >= 5:
            writer.put("q", -1)
        writer.put("i", max_bytes).tags().tags()
        if version >= 7:
            writer.array(0)
        if version >= 11:
            writer.string("")
        return _read_fetch(self.request(FETCH, version, writer.tags().data), version)

    def list_offset(self, topic, partition, timestamp, version=7, isolation=0):
        writer = Writer(version >= 6).put("i", -1)
        if version >= 2:
            writer.put("b", isolation)
        writer.array(1).string(topic).array(1).put("i", partition)
        if version >= 4:
            writer.put("i", -1)
        writer.put("q", timestamp).tags().tags()
        if version >= 10:
            writer.put("i", 15000)
        reader = self.request(LIST_OFFSETS, version, writer.tags().data)
        if version >= 2:
            reader.get("i")
        reader.array()
        reader.string()
        reader.array()
        _, error, when, offset = reader.get("ihqq")
        return Listed(error, when, offset, reader.get("i") if version >= 4 else -1)

    def delete_records(self, topic, partition, offset):
        writer = Writer().array(1).string(topic).array(1).put("iqi", partition, offset, 15000)
        reader = self.request(DELETE_RECORDS, 1, writer.data)
        reader.get("i")
        reader.array()
        reader.string()
        reader.array()
        _, low, error = reader.get("iqh")
        return error, low

    def find_coordinator(self, group, seconds=20):
        """Until the coordinator of a group is there; a new broker has to make its topic first."""
        until = time.monotonic() + seconds
        while True:
            reader = self.request(FIND_COORDINATOR, 1, Writer().string(group).put("b", 0).data)
            reader.get("i")
            error, message = reader.get("h"), reader.string()
            if error == NONE:
                return
            if error not in RETRIABLE or time.monotonic() > until:
                raise ValueError(f"FindCoordinator answered {error} {message}")
            time.sleep(0.05)

    def _of_group(self, group, ask, seconds=20):
        """Asks until the coordinator has loaded the group."""
        self.find_coordinator(group)
        until = time.monotonic() + seconds
        while True:
            error, answer = ask()
            if error == NONE:
                return answer
            if error not in RETRIABLE or time.monotonic() > until:
                raise ValueError(f"the coordinator of {group} answered {error}")
            time.sleep(0.05)

    def commit(self, group, topic, offsets):
        """Commits from outside of the group, as tools do: it must have no members."""
        writer = Writer().string(group).put("i", -1).string("").array(1).string(topic)
        writer.array(len(offsets))
        for partition, offset in offsets.items():
            writer.put("iqi", partition, offset, -1).string("")

        def ask():
            reader = self.request(OFFSET_COMMIT, 6, writer.data)
            reader.get("i")
            reader.array()
            reader.string()
            errors = {reader.get("ih")[1] for _ in range(reader.array())}
            reader.finish()
            return max(errors), None
        self._of_group(group, ask)

    def committed(self, group, topic, partitions):
        """What a group has committed, as partition -> offset; the others are left out."""
        writer = Writer().string(group).array(1).string(topic).array(len(partitions))
        for partition in partitions:
            writer.put("i", partition)

        def ask():
            reader = self.request(OFFSET_FETCH, 5, writer.data)
            reader.get("i")
            found, errors = {}, {NONE}
            for _ in range(reader.array()):
                reader.string()
                for _ in range(reader.array()):
                    partition, offset, _ = reader.get("iqi")
                    reader.string()
                    errors.add(reader.get("h"))
                    if offset >= 0:
                        found[partition] = offset
            errors.add(reader.get("h"))
            reader.finish()
            return max(errors), found
        return self._of_group(group, ask)

    def end_of_epoch(self, topic, partition, epoch):
        writer = Writer().put("i", -2).array(1).string(topic).array(1)
        writer.put("iii", partition, -1, epoch)
        reader = self.request(OFFSET_FOR_LEADER_EPOCH, 3, writer.data)
        reader.get("i")
        reader.array()
        reader.string()
        reader.array()
        error, _, found, end = reader.get("hiiq")
        return error, found, end


def _read_metadata(reader, version):
    if version >= 3:
        reader.get("i")
    for _ in range(reader.array()):
        reader.get("i")
        reader.string()
        reader.get("i")
        if version >= 1:
            reader.string()
        reader.tags()
    if version >= 2:
        reader.string()
    if version >= 1:
        reader.get("i")
    topics = {}
    for _ in range(reader.array()):
        error, name = reader.get("h"), reader.string()
        topic_id = reader.uuid() if version >= 10 else None
        if version >= 1:
            reader.get("b")
        partitions = {}
        for _ in range(reader.array()):
            code, index, leader = reader.get("hii")
            epoch = reader.get("i") if version >= 7 else -1
            for _ in range(3 if version >= 5 else 2):
                for _ in range(reader.array()):
                    reader.get("i")
            reader.tags()
            partitions[index] = (code, leader, epoch)
        if version >= 8:
            reader.get("i")
        reader.tags()
        topics[name] = TopicInfo(error, name, topic_id, partitions)
    return topics


def _read_produce(reader, version):
    reader.array()
    if version >= 13:
        reader.uuid()
    else:
        reader.string()
    reader.array()
    _, error, base_offset, append_time = reader.get("ihqq")
    return Produced(error, base_offset, append_time, reader.get("q") if version >= 5 else -1)


def _read_fetch(reader, version):
    reader.get("i")
    top_error = 0
    if version >= 7:
        top_error, _ = reader.get("hi")
    found = None
    for _ in range(reader.array()):
        if version >= 13:
            reader.uuid()
        else:
            reader.string()
        for _ in range(reader.array()):
            _, error, high, stable = reader.get("ihqq")
            start = reader.get("q") if version >= 5 else -1
            aborted = tuple(_read_aborted(reader) for _ in range(max(0, reader.array())))
            if version >= 11:
                reader.get("i")
            records = reader.blob()
            reader.tags()
            length = -1 if records is None else len(records)
            found = Fetched(error, high, stable, start, aborted, records or b"", length, top_error)
        reader.tags()
    reader.tags()
    reader.finish()
    return found or Fetched(top_error, -1, -1, -1, (), b"", 0, top_error)


def _read_aborted(reader):
    pair = reader.get("qq")
    reader.tags()
    return pair


def read_all(connection, topic, partition=0, start=None, isolation=0, max_bytes=1 << 22):
    """Every whole batch from `start` (default: the log start) to the visible end."""
    from record_batch import decode_batches
    offset = connection.list_offset(topic, partition, EARLIEST).offset if start is None else start
    batches = []
    while True:
        got = connection.fetch(topic, partition, offset, max_wait_ms=0, max_bytes=max_bytes,
                               isolation=isolation)
        if got.error != NONE:
            raise ValueError(f"Fetch of {topic}-{partition} at {offset} answered {got.error}")
        whole = [b for b in decode_batches(got.records) if b.last_offset >= offset]
        if not whole:
            return batches
        batches += whole
        offset = whole[-1].last_offset + 1


def read_records(connection, topic, partition=0, start=None):
    """Every data record visible to a read_uncommitted reader."""
    return [record for batch in read_all(connection, topic, partition, start)
            if not batch.is_control for record in batch.records()
            if start is None or record.offset >= start]
