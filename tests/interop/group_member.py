"""A member of a classic group over raw requests, one connection for all it says."""

import kafka_wire
from kafka_wire import Writer

JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
UNKNOWN_MEMBER_ID = 25
SESSION_MS, REBALANCE_MS = 600_000, 5_000


class Refused(Exception):
    """The coordinator answered with an error, which is the argument."""


class Member:
    """Without join() one that is in no group and commits alone."""

    def __init__(self, connection, group, topic):
        self.connection, self.group, self.topic = connection, group, topic
        self.generation, self.id = -1, ""

    def _ask(self, api, version, writer):
        """The answer behind its throttle time and error."""
        reader = self.connection.request(api, version, writer.data)
        reader.get("i")
        error = reader.get("h")
        if error != kafka_wire.NONE:
            raise Refused(error)
        return reader

    def join(self):
        """The only member of its group: it leads, and assigns itself something."""
        subscription = Writer().put("h", 0).array(1).string(self.topic).put("i", -1)
        join = Writer().string(self.group).put("ii", SESSION_MS, REBALANCE_MS).string(self.id)
        join.string("consumer").array(1).string("range").blob(subscription.data)
        joined = self._ask(JOIN_GROUP, 2, join)
        self.generation = joined.get("i")
        joined.string()
        joined.string()
        self.id = joined.string()
        sync = self._named(Writer()).array(1).string(self.id).blob(b"\0" * 40)
        self._ask(SYNC_GROUP, 1, sync)
        return self

    def beat(self):
        self._ask(HEARTBEAT, 1, self._named(Writer()))

    def commit(self, offsets):
        writer = self._named(Writer()).array(1).string(self.topic).array(len(offsets))
        for partition, offset in offsets.items():
            writer.put("iqi", partition, offset, -1).string("")
        reader = self.connection.request(kafka_wire.OFFSET_COMMIT, 6, writer.data)
        reader.get("i")
        reader.array()
        reader.string()
        error = max(reader.get("ih")[1] for _ in range(reader.array()))
        reader.finish()
        if error != kafka_wire.NONE:
            raise Refused(error)

    def _named(self, writer):
        return writer.string(self.group).put("i", self.generation).string(self.id)
