"""An independent reader and checker of a Kafka log directory.

Shares no code with polylog. Judges files semantically, since index contents are not canonical.
Source: Kafka 4.3 log format: "The .log file", ".index", ".timeindex", ".txnindex", ".snapshot",
"leader-epoch-checkpoint", "What the checkers check".

Run as a program it prints every complaint about the given log directories and exits with 1 if
there is one.
"""

import base64
import pathlib
import re
import struct
import sys
from typing import NamedTuple

import record_batch
from record_batch import Malformed

PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d+)")
SEGMENT = re.compile(r"\d{20}")
I32_MAX = 2**31 - 1


class Segment(NamedTuple):
    base: int
    path: pathlib.Path
    batches: list      # (position, Batch)
    trailing: int      # bytes after the last whole batch


class Partition:
    """One partition directory, read whole. `complaints` is empty when all is well."""

    def __init__(self, folder, closed=True, compacted=False, decode=True, log_start=0):
        self.folder = pathlib.Path(folder)
        self.closed = closed          # after a clean stop: every index has its final entry
        self.compacted = compacted    # gaps are legal
        self.log_start = log_start    # epochs below it may be forgotten
        self.complaints = []
        self.segments = [self._read_segment(path) for path in sorted(self.folder.glob("*.log"))]
        self._check_names()
        self._check_offsets(decode)
        for number, segment in enumerate(self.segments):
            active = number == len(self.segments) - 1
            self._check_index(segment)
            self._check_time_index(segment, closed or not active)
            self._check_txn_index(segment)
        self._check_snapshots()
        self.epochs = self._read_epochs()
        self._check_epochs()
        self.topic_id = self._read_topic_id()

    @property
    def batches(self):
        return [batch for segment in self.segments for _, batch in segment.batches]

    @property
    def end(self):
        batches = self.batches
        if batches:
            return batches[-1].last_offset + 1
        return self.segments[0].base if self.segments else 0

    def codecs(self):
        return {batch.codec for batch in self.batches if not batch.is_control}

    def records(self):
        return [r for batch in self.batches if not batch.is_control for r in batch.records()]

    def complain(self, path, text):
        self.complaints.append(f"{self.folder.name}/{path.name if path else ''}: {text}")

    def _read_segment(self, path):
        data, at, batches = path.read_bytes(), 0, []
        try:
            while (batch := record_batch.decode_header(data, at)) is not None:
                batches.append((at, batch))
                at += len(batch.raw)
        except Malformed as problem:
            self.complain(path, str(problem))
        if at != len(data):
            self.complain(path, f"{len(data) - at} bytes remaining after the last batch")
        return Segment(int(path.stem), path, batches, len(data) - at)

    def _check_names(self):
        if not self.segments:
            self.complain(None, "no segment")
        for path in self.folder.iterdir():
            known = path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
            if known and not SEGMENT.fullmatch(path.stem):
                self.complain(path, "not named by 20 digits")
            if path.suffix in (".cleaned", ".swap", ".tmp"):
                self.complain(path, "left over from an interrupted operation")
        bases = {segment.base for segment in self.segments}
        for path in self.folder.glob("*index"):
            if int(path.stem) not in bases:
                self.complain(path, "index without its .log")
        # Whoever starts on an unclean directory makes the active segment's indexes again.
        for segment in self.segments if self.closed else self.segments[:-1]:
            if not segment.path.with_suffix(".index").exists():
                self.complain(segment.path, "no .index beside it")

    def _check_offsets(self, decode):
        expected = None
        for number, segment in enumerate(self.segments):
            last = number + 1 == len(self.segments)
            limit = None if last else self.segments[number + 1].base
            if expected is not None and not self.compacted and segment.base != expected:
                self.complain(segment.path, f"starts at {segment.base}, expected {expected}")
            for position, batch in segment.batches:
                self._check_batch(segment, position, batch, decode)
                behind = expected is not None and batch.base_offset < expected
                gap = expected is not None and batch.base_offset > expected
                if behind or (gap and not self.compacted):
                    self.complain(segment.path, f"Non-consecutive offsets: {batch.base_offset} "
                                                f"where {expected} is due")
                expected = batch.last_offset + 1
            if expected is None:
                expected = segment.base
            if limit is not None and expected > limit:
                self.complain(segment.path, f"runs to {expected}, beyond the next one's {limit}")

    def _check_batch(self, segment, position, batch, decode):
        def complain(text):
            self.complain(segment.path, f"batch {batch.base_offset} at {position}: {text}")

        if not batch.crc_is_right:
            complain("isvalid: false (CRC)")
            return
        if batch.base_offset < segment.base or batch.last_offset - segment.base > I32_MAX:
            complain("offset does not belong to this segment")
        if not self.compacted and batch.count != batch.last_offset_delta + 1:
            complain(f"{batch.count} records, last delta {batch.last_offset_delta}")
        if not decode:
            return
        try:
            records = batch.records()
        except Malformed as problem:
            complain(str(problem))
            return
        offsets = [record.offset for record in records]
        if offsets != sorted(set(offsets)) or (
                not self.compacted and offsets != list(range(batch.base_offset,
                                                             batch.last_offset + 1))):
            complain("record offsets are not consecutive")
        if records and max(r.timestamp for r in records) != batch.max_timestamp:
            complain("maxTimestamp is not the largest record timestamp")

    def _entries(self, segment, suffix, layout):
        path = segment.path.with_suffix(suffix)
        if not path.exists():
            return path, []
        data, size = path.read_bytes(), struct.calcsize(layout)
        if len(data) % size:
            self.complain(path, f"length {len(data)} is no multiple of {size}")
            data = data[:len(data) - len(data) % size]
        entries = list(struct.iter_unpack(layout, data))
        # An active index of a Kafka that was killed is zero-filled to its full size.
        zeros = (0,) * len(entries[0]) if entries else None
        if not self.closed:
            while entries and entries[-1] == zeros:
                entries.pop()
        return path, entries

    def _check_index(self, segment):
        path, entries = self._entries(segment, ".index", ">ii")
        by_position = dict(segment.batches)
        previous = (-1, -1)
        for offset, position in entries:
            if offset <= previous[0] or position <= previous[1]:
                self.complain(path, f"entry ({offset}, {position}) does not rise")
            batch = by_position.get(position)
            if batch is None:
                self.complain(path, f"no batch starts at {position}")
            elif batch.last_offset != segment.base + offset:
                self.complain(path, f"Mismatches in: entry {segment.base + offset}, batch ends "
                                    f"with {batch.last_offset}")
            previous = (offset, position)

    def _check_time_index(self, segment, final):
        path, entries = self._entries(segment, ".timeindex", ">qi")
        by_last = {batch.last_offset: batch for _, batch in segment.batches}
        running, maxima = -1, {}
        for _, batch in segment.batches:
            running = max(running, batch.max_timestamp)
            maxima[batch.last_offset] = running
        previous = (-1, -1)
        for timestamp, relative in entries:
            offset = segment.base + relative
            if timestamp <= previous[0] or relative < previous[1]:
                self.complain(path, f"out of order timestamp {timestamp} at {offset}")
            if offset not in by_last:
                if not self.compacted:
                    self.complain(path, f"no batch ends with {offset}")
            elif by_last[offset].max_timestamp != timestamp or maxima[offset] != timestamp:
                self.complain(path, f"Found timestamp mismatch at {offset}: entry {timestamp}, "
                                    f"batch {by_last[offset].max_timestamp}")
            previous = (timestamp, relative)
        if final and running >= 0 and previous[0] != running and not self.compacted:
            self.complain(path, f"last entry {previous[0]}, largest timestamp {running}")

    def _check_txn_index(self, segment):
        path, entries = self._entries(segment, ".txnindex", ">hqqqq")
        markers = {batch.base_offset: batch for _, batch in segment.batches if batch.is_control}
        previous = -1
        for version, producer, first, last, stable in entries:
            if version != 0 or last <= previous or first > last or stable > last + 1:
                self.complain(path, f"bad entry {(version, producer, first, last, stable)}")
            marker = markers.get(last)
            if not self.compacted and (marker is None or marker.producer_id != producer):
                self.complain(path, f"no abort marker of {producer} at {last}")
            previous = last

    def _check_snapshots(self):
        for path in self.folder.glob("*.snapshot"):
            try:
                read_snapshot(path)
            except Malformed as problem:
                self.complain(path, str(problem))
            if int(path.stem) > self.end:
                self.complain(path, f"beyond the log end {self.end}")
        written = self.end > self.segments[0].base if self.segments else False
        if self.closed and written and not (self.folder / f"{self.end:020}.snapshot").exists():
            self.complain(None, f"no {self.end:020}.snapshot after a clean stop")

    def _read_epochs(self):
        path = self.folder / "leader-epoch-checkpoint"
        try:
            return [tuple(map(int, line.split())) for line in read_checkpoint(path, 2)]
        except (Malformed, FileNotFoundError, ValueError) as problem:
            self.complain(path, str(problem))
            return []

    def _check_epochs(self):
        path = self.folder / "leader-epoch-checkpoint"
        starts = {start for _, start in self.epochs}
        if self.epochs != sorted(self.epochs) or len(starts) != len(self.epochs):
            self.complain(path, f"epochs or starts do not rise: {self.epochs}")
        if self.epochs and not self.closed:  # the log start is written down lazily
            self.log_start = max(self.log_start, self.epochs[0][1])
        for batch in self.batches:
            covering = [epoch for epoch, start in self.epochs if start <= batch.base_offset]
            if batch.leader_epoch < 0:
                self.complain(path, f"batch {batch.base_offset} has no leader epoch")
            elif covering and batch.leader_epoch != covering[-1]:
                self.complain(path, f"batch {batch.base_offset} has epoch {batch.leader_epoch}, "
                                    f"the file says {covering[-1]}")
            elif not covering and batch.base_offset >= self.log_start:
                self.complain(path, f"no epoch covers offset {batch.base_offset}")

    def _read_topic_id(self):
        path = self.folder / "partition.metadata"
        if not path.exists():
            self.complain(path, "missing")
            return None
        found = re.fullmatch(r"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})", path.read_text())
        if not found:
            self.complain(path, f"not as Kafka writes it: {path.read_text()!r}")
            return None
        return base64.urlsafe_b64decode(found[1] + "==")


class Producer(NamedTuple):
    """An entry of a .snapshot."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    open_transaction: int


def read_snapshot(path):
    data = pathlib.Path(path).read_bytes()
    if len(data) < 10:
        raise Malformed("snapshot shorter than its header")
    version, crc, count = struct.unpack_from(">hIi", data)
    if version != 1 or len(data) != 10 + 46 * count:
        raise Malformed(f"version {version}, {count} entries in {len(data)} bytes")
    if record_batch.crc32c(data[6:]) != crc:
        raise Malformed("snapshot CRC")
    return [Producer(*fields) for fields in struct.iter_unpack(">qhiqiqiq", data[10:])]


def read_checkpoint(path, fields):
    """Lines of a checkpoint file; an empty file means none."""
    text = pathlib.Path(path).read_text()
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] != "" or lines[0] != "0" or len(lines) < 3:
        raise Malformed(f"not a version 0 checkpoint: {text[:40]!r}")
    entries = lines[2:-1]
    if len(entries) != int(lines[1]) or any(len(e.split(" ")) != fields for e in entries):
        raise Malformed(f"{lines[1]} entries announced: {entries[:5]}")
    return entries


def offset_checkpoint(log_dir, name):
    """topic-partition -> offset of one of the checkpoint files at the root."""
    path = pathlib.Path(log_dir) / name
    if not path.exists():
        return {}
    lines = (line.split(" ") for line in read_checkpoint(path, 3))
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


def partitions(log_dir):
    """The partition directories of a log directory, by name."""
    return {path.name: path for path in sorted(pathlib.Path(log_dir).iterdir())
            if path.is_dir() and PARTITION.fullmatch(path.name)}


def check_log_dir(log_dir, closed=True, compacted=(), decode=True):
    """Complaints about a whole log directory; `closed` = after a clean stop."""
    log_dir, complaints, ends = pathlib.Path(log_dir), [], {}
    starts = offset_checkpoint(log_dir, "log-start-offset-checkpoint")
    for name, folder in partitions(log_dir).items():
        if name.startswith("__cluster_metadata"):
            continue
        partition = Partition(folder, closed, name.rsplit("-", 1)[0] in compacted, decode,
                              starts.get(name, 0))
        complaints += partition.complaints
        ends[name] = partition.end
    for path in log_dir.iterdir():
        special = path.name == "remote-log-index-cache" or path.name.endswith("-delete")
        if path.is_dir() and not special and not PARTITION.fullmatch(path.name):
            complaints.append(f"{path.name}: a folder Kafka would refuse to start on")
    recovery = offset_checkpoint(log_dir, "recovery-point-offset-checkpoint")
    high = offset_checkpoint(log_dir, "replication-offset-checkpoint")
    for name, end in ends.items():
        if recovery.get(name, 0) > end or high.get(name, 0) > end:
            complaints.append(f"{name}: checkpoints {recovery.get(name)}, {high.get(name)} "
                              f"beyond the end {end}")
        if closed and (recovery.get(name), high.get(name)) != (end, end):
            complaints.append(f"{name}: after a clean stop the checkpoints are "
                              f"{recovery.get(name)}, {high.get(name)}, the end is {end}")
    if closed != (log_dir / ".kafka_cleanshutdown").exists():
        complaints.append(f".kafka_cleanshutdown: {'missing' if closed else 'left behind'}")
    if not (log_dir / "meta.properties").exists():
        complaints.append("meta.properties: missing")
    return complaints


def main(arguments):
    complaints = []
    for argument in arguments:
        marker = pathlib.Path(argument) / ".kafka_cleanshutdown"
        complaints += check_log_dir(argument, closed=marker.exists())
    print("\n".join(complaints) or "no complaint")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
