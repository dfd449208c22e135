"""Kafka's record batch (magic 2), written and read by hand.

Independent of polylog's own code on purpose: the tests compare the two. Source: Kafka 4.3 log
format, "Batch header", "Attributes", "Record", "Compression framing".
"""

import gzip
import io
import struct
import zlib
from typing import NamedTuple

import dependencies

dependencies.python()
import crc32c as _crc32c  # noqa: E402

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_NAMES = {number: name for name, number in CODECS.items()}
XERIAL_MAGIC = b"\x82SNAPPY\x00"
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08


class Record(NamedTuple):
    """One record; offset and timestamp are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple = ()


class Batch(NamedTuple):
    """A batch's header as stored, and its whole bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    raw: bytes

    @property
    def last_offset(self):
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self):
        return CODEC_NAMES.get(self.attributes & 7, "?")

    @property
    def is_control(self):
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self):
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def crc_is_right(self):
        return crc32c(self.raw[21:]) == self.crc

    def records(self):
        return decode_records(self)


class Malformed(Exception):
    """Bytes that are no record batch."""


def crc32c(data):
    return _crc32c.crc32c(data)


def varint(value):
    """Zigzag base-128 groups, least significant first."""
    value = (value << 1) ^ (value >> 63)
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    shift = value = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("varint")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _field(value):
    return varint(-1) if value is None else varint(len(value)) + value


def encode_record(delta, timestamp_delta, key, value, headers=()):
    body = b"\x00" + varint(timestamp_delta) + varint(delta) + _field(key) + _field(value)
    body += varint(len(headers))
    for name, content in headers:
        body += _field(name.encode()) + _field(content)
    return varint(len(body)) + body


def compress(codec, data):
    if codec == "none":
        return data
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "snappy":  # one raw block, as librdkafka sends it
        import snappy
        return snappy.compress(data)
    if codec == "snappy-xerial":
        import snappy
        out = [XERIAL_MAGIC, struct.pack(">ii", 1, 1)]
        for at in range(0, len(data), 32768):
            block = snappy.compress(data[at:at + 32768])
            out.append(struct.pack(">i", len(block)) + block)
        return b"".join(out)
    if codec == "lz4":
        import lz4.frame
        return lz4.frame.compress(data, block_linked=False, store_size=False)
    if codec == "zstd":
        import zstandard
        with io.BytesIO() as sink:
            writer = zstandard.ZstdCompressor().stream_writer(sink, closefd=False)
            writer.write(data)
            writer.flush(zstandard.FLUSH_FRAME)
            return sink.getvalue()
    raise ValueError(codec)


def decompress(codec, data):
    if codec == "none":
        return data
    if codec == "gzip":
        return zlib.decompress(data, 31)
    if codec == "snappy":
        import snappy
        if not data.startswith(XERIAL_MAGIC):
            return snappy.decompress(data)
        out, at = [], 16
        while at < len(data):
            (size,) = struct.unpack_from(">i", data, at)
            out.append(snappy.decompress(data[at + 4:at + 4 + size]))
            at += 4 + size
        return b"".join(out)
    if codec == "lz4":
        import lz4.frame
        return lz4.frame.decompress(data)
    if codec == "zstd":
        import zstandard
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    raise Malformed(f"codec {codec}")


def encode_batch(records, codec="none", producer_id=-1, producer_epoch=-1, base_sequence=-1,
                 attributes=0, **overrides):
    """A batch as a producer sends it: base offset 0, leader epoch -1.

    `records` are (timestamp, key, value[, headers]) tuples. `overrides` replace header fields
    (count, last_offset_delta, max_timestamp, base_offset, leader_epoch, magic, crc) and
    `payload` the whole records region, for tests of bad input.
    """
    base_timestamp = records[0][0] if records else -1
    plain = b"".join(encode_record(i, r[0] - base_timestamp, r[1], r[2], *r[3:])
                     for i, r in enumerate(records))
    payload = overrides.get("payload")
    if payload is None:
        payload = compress(codec, plain)
    attributes |= CODECS[codec.split("-")[0]]
    max_timestamp = overrides.get("max_timestamp", max((r[0] for r in records), default=-1))
    tail = struct.pack(
        ">hiqqqhii", attributes, overrides.get("last_offset_delta", len(records) - 1),
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence,
        overrides.get("count", len(records))) + payload
    crc = overrides.get("crc", crc32c(tail))
    return struct.pack(">qiibI", overrides.get("base_offset", 0), len(tail) + 9,
                       overrides.get("leader_epoch", -1), overrides.get("magic", 2), crc) + tail


def decode_header(data, at):
    """The batch at `at`, or None when the bytes end before it does."""
    if len(data) - at < HEADER_BYTES:
        return None
    fields = HEADER.unpack_from(data, at)
    end = at + 12 + fields[1]
    if fields[1] < 49 or fields[3] != 2:
        raise Malformed(f"length {fields[1]}, magic {fields[3]} at byte {at}")
    if end > len(data):
        return None
    return Batch(*fields, bytes(data[at:end]))


def decode_batches(data):
    """Whole batches of `data`; a cut last one is left out, as a client does."""
    batches, at = [], 0
    while (batch := decode_header(data, at)) is not None:
        batches.append(batch)
        at += len(batch.raw)
    return batches


def decode_records(batch):
    data = decompress(batch.codec, batch.raw[HEADER_BYTES:])
    records, at = [], 0
    for _ in range(batch.count):
        size, at = read_varint(data, at)
        end = at + size
        record, used = _decode_record(data, at + 1, batch)
        if used != end:
            raise Malformed(f"record of batch {batch.base_offset} has left-over bytes")
        records.append(record)
        at = end
    if at != len(data):
        raise Malformed(f"batch {batch.base_offset} has bytes after its last record")
    return records


def _decode_bytes(data, at):
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise Malformed("field beyond the end")
    return bytes(data[at:at + size]), at + size


def _decode_record(data, at, batch):
    timestamp_delta, at = read_varint(data, at)
    offset_delta, at = read_varint(data, at)
    key, at = _decode_bytes(data, at)
    value, at = _decode_bytes(data, at)
    count, at = read_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _decode_bytes(data, at)
        content, at = _decode_bytes(data, at)
        headers.append((name.decode(), content))
    timestamp = batch.base_timestamp + timestamp_delta
    if batch.attributes & LOG_APPEND_TIME:
        timestamp = batch.max_timestamp
    return Record(batch.base_offset + offset_delta, timestamp, key, value, tuple(headers)), at
