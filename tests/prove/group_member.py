"""A member of a classic consumer group, by hand over the wire, as a process that can be paused.

Usage: group_member.py PORT GROUP TOPIC PARTITIONS NAME. Prints a line of JSON for everything it
learns: what it owns in which generation, what it read, what it committed and what was refused.
The leader of a generation shares the partitions out in turn. Source: Kafka protocol guide,
JoinGroup 5, SyncGroup 3, Heartbeat 3, OffsetCommit 7.
"""

import json
import struct
import sys
import time

import paths  # noqa: F401

import kafka_wire
from kafka_wire import Writer
from record_batch import decode_batches

JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 27, 25, 22, 79
SESSION_MS, REBALANCE_MS = 1500, 3000


def say(kind, **fields):
    print(json.dumps({"kind": kind, "at": time.monotonic(), **fields}), flush=True)


class Member:
    def __init__(self, port, group, topic, partitions, name):
        self.port, self.group, self.topic = port, group, topic
        self.partitions, self.name = partitions, name
        self.member_id, self.generation, self.owned = "", -1, {}

    def run(self):
        while True:
            try:
                with kafka_wire.Connection(self.port, timeout=10) as self.connection:
                    self.connection.find_coordinator(self.group)
                    while True:
                        self.join()
                        self.consume()
            except (OSError, ConnectionError, ValueError) as problem:
                say("gone", problem=str(problem))
                time.sleep(0.1)

    def join(self):
        """Until it is a member of a generation and knows what it owns."""
        while True:
            body = Writer().string(self.group).put("ii", SESSION_MS, REBALANCE_MS)
            body.string(self.member_id).string(None).string("consumer").array(1)
            reader = self.connection.request(JOIN_GROUP, 5,
                                             body.string("in-turn").blob(b"").data)
            reader.get("i")
            error, self.generation = reader.get("hi")
            reader.string()
            leader, member_id = reader.string(), reader.string()
            members = []
            for _ in range(reader.array()):
                members.append(reader.string())
                reader.string()
                reader.blob()
            if error in (0, MEMBER_ID_REQUIRED):
                self.member_id = member_id
            elif error == UNKNOWN_MEMBER:
                self.member_id = ""
            else:
                time.sleep(0.05)
            if error == 0 and self.sync(sorted(members) if leader == member_id else []):
                return

    def sync(self, members):
        body = Writer().string(self.group).put("i", self.generation).string(self.member_id)
        body.string(None).array(len(members))
        for n, member in enumerate(members):
            mine = list(range(n, self.partitions, len(members)))
            body.string(member).blob(struct.pack(f">{len(mine)}i", *mine))
        reader = self.connection.request(SYNC_GROUP, 3, body.data)
        reader.get("i")
        error, assignment = reader.get("h"), reader.blob()
        if error == UNKNOWN_MEMBER:
            self.member_id = ""
        if error != 0:
            return False
        owned = [p for p, in struct.iter_unpack(">i", assignment or b"")]
        committed = self.connection.committed(self.group, self.topic, owned) if owned else {}
        self.owned = {p: committed.get(p, 0) for p in owned}
        say("owns", group=self.group, generation=self.generation, member=self.member_id,
            partitions=owned, committed=committed)
        return True

    def consume(self):
        """Until the group rebalances."""
        beat = 0.0
        while True:
            if time.monotonic() - beat > SESSION_MS / 5000:
                beat = time.monotonic()
                body = Writer().string(self.group).put("i", self.generation)
                reader = self.connection.request(
                    HEARTBEAT, 3, body.string(self.member_id).string(None).data)
                reader.get("i")
                if self.over(reader.get("h"), "heartbeat"):
                    return
            for partition in list(self.owned):
                if not self.step(partition):
                    return
            time.sleep(0.02)

    def over(self, error, what):
        if error == UNKNOWN_MEMBER:
            self.member_id = ""
        if error in (UNKNOWN_MEMBER, ILLEGAL_GENERATION):
            say("fenced", what=what, generation=self.generation, member=self.member_id)
        return error != 0

    def step(self, partition):
        """One fetch and one commit; False when the generation is over."""
        position = self.owned[partition]
        got = self.connection.fetch(self.topic, partition, position, max_wait_ms=20,
                                    max_bytes=50_000)
        records = [(r.offset, r.value.decode()) for batch in decode_batches(got.records)
                   for r in batch.records() if r.offset >= position]
        if got.error or not records:
            return True
        say("read", partition=partition, position=position, generation=self.generation,
            records=[(offset, value.split(" ")[0]) for offset, value in records])
        after = records[-1][0] + 1
        body = Writer().string(self.group).put("i", self.generation).string(self.member_id)
        body.string(None).array(1).string(self.topic).array(1)
        body.put("iqi", partition, after, -1).string("")
        reader = self.connection.request(kafka_wire.OFFSET_COMMIT, 7, body.data)
        reader.get("i")
        reader.array()
        reader.string()
        reader.array()
        _, error = reader.get("ih")
        if self.over(error, "commit"):
            return False
        say("committed", group=self.group, generation=self.generation, member=self.member_id,
            partition=partition, offset=after)
        self.owned[partition] = after
        return True


if __name__ == "__main__":
    Member(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]).run()
