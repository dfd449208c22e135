"""Every version of every API that the broker advertises, through a codec that is not its own.

The codec below interprets the published message schemas (src/protocol/kafka/schemas are Kafka's
files); the broker's is generated C++. A small valid request of each advertised version must get an
answer that the schema decodes with no byte left over.
"""

import json
import re
import socket
import struct
import uuid

import dependencies
import testbed

SCHEMAS = dependencies.SOURCE_DIR / "src/protocol/kafka/schemas"
API_VERSIONS = 18
FIXED = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
         "int64": "q", "float64": "d"}
TOPIC = "swept"


def includes(text, version):
    """Whether "3+", "2-5", "7" or "none" has this version."""
    if text in (None, "none"):
        return False
    first, plus, last = re.fullmatch(r"(\d+)(\+?)(?:-(\d+))?", text).groups()
    return int(first) <= version and (bool(plus) or version <= int(last or first))


class Schema:
    """One message of Kafka's protocol."""

    def __init__(self, name):
        lines = (SCHEMAS / f"{name}.json").read_text().splitlines()
        self.top = json.loads("\n".join(line for line in lines
                                        if not line.lstrip().startswith("//")))
        self.structs = {each["name"]: each["fields"] for each in self.top.get("commonStructs", ())}
        self._collect(self.top["fields"])

    def _collect(self, fields):
        for field in fields:
            if "fields" in field:
                self.structs[field["type"].removeprefix("[]")] = field["fields"]
                self._collect(field["fields"])

    def flexible(self, version):
        return includes(self.top.get("flexibleVersions"), version)


class Encoder:
    def __init__(self, schema, version):
        self.schema, self.version = schema, version
        self.flexible = schema.flexible(version)
        self.out = bytearray()

    def message(self, values):
        self._fields(self.schema.top["fields"], values)
        return bytes(self.out)

    def _uvarint(self, value):
        while value > 0x7F:
            self.out.append((value & 0x7F) | 0x80)
            value >>= 7
        self.out.append(value)

    def _length(self, layout, length):
        if self.flexible:
            self._uvarint(length + 1)
        else:
            self.out += struct.pack(">" + layout, length)

    def _fields(self, fields, values):
        """Tagged fields stay at their defaults, and so are not written."""
        unknown = set(values) - {field["name"] for field in fields}
        if unknown:
            raise ValueError(f"{self.schema.top['name']} has no {unknown}")
        for field in fields:
            if includes(field["versions"], self.version) and not self._tagged(field):
                self._field(field, values.get(field["name"], self._default(field)))
        if self.flexible:
            self._uvarint(0)

    def _tagged(self, field):
        return includes(field.get("taggedVersions"), self.version)

    def _default(self, field):
        kind, default = field["type"], field.get("default")
        if default == "null":
            # Nullable from a later version on only: then what is empty stands for it.
            if includes(field.get("nullableVersions"), self.version):
                return None
            default = None
        if kind.startswith("[]"):
            return []
        if kind == "string":
            return default or ""
        if kind in ("bytes", "records"):
            return b""
        if kind == "uuid":
            return uuid.UUID(int=0)
        if kind == "bool":
            return default in (True, "true")
        if kind == "float64":
            return float(default or 0)
        if kind in FIXED:
            return int(str(default or 0), 0)
        return {}

    def _field(self, field, value):
        kind = field["type"]
        if value is None and not includes(field.get("nullableVersions"), self.version):
            raise ValueError(f"{field['name']} may not be null in version {self.version}")
        if kind.startswith("[]"):
            self._length("i", -1 if value is None else len(value))
            for each in value or ():
                self._value(kind[2:], each)
        elif kind in self.schema.structs and "nullableVersions" in field:
            self.out += struct.pack(">b", -1 if value is None else 1)
            if value is not None:
                self._value(kind, value)
        else:
            self._value(kind, value)

    def _value(self, kind, value):
        if kind in FIXED:
            self.out += struct.pack(">" + FIXED[kind], value)
        elif kind == "uuid":
            self.out += value.bytes
        elif kind in ("string", "bytes", "records"):
            content = value.encode() if isinstance(value, str) else value
            self._length("h" if kind == "string" else "i", -1 if content is None else len(content))
            self.out += content or b""
        else:
            self._fields(self.schema.structs[kind], value)


class Decoder:
    def __init__(self, schema, version, data):
        self.schema, self.version, self.data, self.at = schema, version, data, 0
        self.flexible = schema.flexible(version)

    def message(self):
        values = self._fields(self.schema.top["fields"])
        if self.at != len(self.data):
            raise ValueError(f"{len(self.data) - self.at} bytes left over")
        return values

    def _take(self, size):
        if self.at + size > len(self.data):
            raise ValueError(f"{size} bytes wanted, {len(self.data) - self.at} left")
        self.at += size
        return self.data[self.at - size:self.at]

    def _get(self, layout):
        return struct.unpack(">" + layout, self._take(struct.calcsize(">" + layout)))[0]

    def uvarint(self):
        shift = value = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise ValueError("a number with needless bytes")
                return value
            shift += 7

    def _length(self, layout):
        length = self.uvarint() - 1 if self.flexible else self._get(layout)
        if length < -1:
            raise ValueError(f"length {length}")
        return length

    def _fields(self, fields):
        values, tagged = {}, {}
        for field in fields:
            if includes(field.get("taggedVersions"), self.version):
                tagged[field["tag"]] = field
            elif includes(field["versions"], self.version):
                values[field["name"]] = self._field(field)
        if self.flexible:
            before = -1
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                if tag <= before or tag not in tagged:
                    raise ValueError(f"tag {tag} is not in the schema, or not in order")
                before, end = tag, self.at + size
                values[tagged[tag]["name"]] = self._field(tagged[tag])
                if self.at != end:
                    raise ValueError(f"tag {tag} is not {size} bytes")
        return values

    def _nullable(self, field, value):
        if value is None and not includes(field.get("nullableVersions"), self.version):
            raise ValueError(f"{field['name']} is null in version {self.version}")
        return value

    def _field(self, field):
        kind = field["type"]
        if kind.startswith("[]"):
            count = self._length("i")
            value = None if count < 0 else [self._value(kind[2:]) for _ in range(count)]
        elif kind in self.schema.structs and "nullableVersions" in field:
            value = None if self._get("b") < 0 else self._value(kind)
        else:
            value = self._value(kind)
        return self._nullable(field, value)

    def _value(self, kind):
        if kind == "bool":
            byte = self._take(1)[0]
            if byte > 1:
                raise ValueError(f"a truth value of {byte}")
            return bool(byte)
        if kind in FIXED:
            return self._get(FIXED[kind])
        if kind == "uuid":
            return uuid.UUID(bytes=self._take(16))
        if kind in ("string", "bytes", "records"):
            length = self._length("h" if kind == "string" else "i")
            content = None if length < 0 else self._take(length)
            return content.decode() if content is not None and kind == "string" else content
        return self._fields(self.schema.structs[kind])


def names_by_key():
    found = {}
    for path in SCHEMAS.glob("*Request.json"):
        schema = Schema(path.stem)
        found[schema.top["apiKey"]] = path.stem.removesuffix("Request")
    return found


def some(version, first, value, otherwise=None):
    """`value` where the version has it."""
    return value if version >= first else otherwise or {}


def content(name, version, topic_id):
    """What the smallest request that is answered with more than an error says beyond defaults."""
    topic = [{"Name": TOPIC}]
    partition = [{"Name": TOPIC, "Partitions": [{}]}]
    return {
        "Produce": {"Acks": 1, "TimeoutMs": 1000},
        "Fetch": {"Topics": [{"Partitions": [{"PartitionMaxBytes": 1000}],
                              **some(version, 13, {"TopicId": topic_id}, {"Topic": TOPIC})}]},
        "ListOffsets": {"Topics": [{"Name": TOPIC, "Partitions": [{"Timestamp": -1}]}]},
        "Metadata": {"Topics": topic},
        "ApiVersions": {"ClientSoftwareName": "sweep", "ClientSoftwareVersion": "1"},
        "CreateTopics": {"Topics": [{"Name": f"made{version}", "NumPartitions": 1,
                                     "ReplicationFactor": 1}]},
        "DeleteTopics": some(version, 6, {"Topics": [{"Name": f"made{version}"}]},
                             {"TopicNames": [f"made{version}"]}),
        "DeleteRecords": {"Topics": partition},
        "InitProducerId": {"TransactionalId": None},
        "OffsetForLeaderEpoch": {"Topics": [{"Topic": TOPIC, "Partitions": [{}]}]},
        "DescribeConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": TOPIC,
                                           "ConfigurationKeys": None}]},
        "AlterConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": TOPIC}]},
        "IncrementalAlterConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": TOPIC}]},
        "DescribeLogDirs": {"Topics": None},
        "CreatePartitions": {"Topics": [{"Name": TOPIC, "Count": version + 2,
                                         "Assignments": None}]},
        "ElectLeaders": {"TopicPartitions": [{"Topic": TOPIC, "Partitions": [0, 99]}]},
        "AlterPartitionReassignments": {"Topics": [{"Name": TOPIC,
                                                    "Partitions": [{"Replicas": [1]}]}]},
        "DescribeProducers": {"Topics": [{"Name": TOPIC, "PartitionIndexes": [0, 99]}]},
        "DescribeTopicPartitions": {"Topics": topic},
        "FindCoordinator": some(version, 4, {"CoordinatorKeys": ["g"]}, {"Key": "g"}),
        "OffsetCommit": {"GroupId": "g", "Topics": [{
            "Partitions": [{}], **some(version, 10, {"TopicId": topic_id}, {"Name": TOPIC})}]},
        "OffsetFetch": some(version, 8, {"Groups": [{"GroupId": "g", "Topics": [{
            "PartitionIndexes": [0],
            **some(version, 10, {"TopicId": topic_id}, {"Name": TOPIC})}]}]},
            {"GroupId": "g", "Topics": [{"Name": TOPIC, "PartitionIndexes": [0]}]}),
        "OffsetDelete": {"GroupId": "g", "Topics": partition},
        "JoinGroup": {"GroupId": "g", "MemberId": "nobody", "SessionTimeoutMs": 10000,
                      "ProtocolType": "consumer", "Protocols": [{"Name": "range"}]},
        "SyncGroup": {"GroupId": "g", "MemberId": "nobody"},
        "Heartbeat": {"GroupId": "g", "MemberId": "nobody"},
        "LeaveGroup": {"GroupId": "g", **some(version, 3, {"Members": [{"MemberId": "nobody"}]},
                                              {"MemberId": "nobody"})},
        "DescribeGroups": {"Groups": ["g", "none"]},
        "DeleteGroups": {"GroupsNames": ["none"]},
        "ConsumerGroupHeartbeat": {"GroupId": "next", "MemberId": "nobody", "MemberEpoch": 7},
        "ConsumerGroupDescribe": {"GroupIds": ["none"]},
        "DescribeClientQuotas": {"Components": [{"EntityType": "client-id"}]},
        "AlterClientQuotas": {"ValidateOnly": True, "Entries": [{
            "Entity": [{"EntityType": "client-id", "EntityName": "c"}],
            "Ops": [{"Key": "producer_byte_rate", "Value": 1e6}]}]},
    }.get(name, {})


class EveryVersion(testbed.BrokerTest):
    def ask(self, name, version, values):
        """The decoded answer; each request has a connection of its own."""
        request, response = Schema(name + "Request"), Schema(name + "Response")
        key = request.top["apiKey"]
        header = struct.pack(">hhih", key, version, 77, 5) + b"sweep"
        if request.flexible(version):
            header += b"\0"
        frame = header + Encoder(request, version).message(values)
        with socket.create_connection(("127.0.0.1", self.broker.port), timeout=20) as wire:
            wire.sendall(struct.pack(">i", len(frame)) + frame)
            size, = struct.unpack(">i", self.exactly(wire, 4))
            answer = self.exactly(wire, size)
        self.assertEqual(answer[:4], struct.pack(">i", 77))
        answer = answer[4:]
        if response.flexible(version) and key != API_VERSIONS:
            self.assertEqual(answer[:1], b"\0", "no tags in the header")
            answer = answer[1:]
        return Decoder(response, version, answer).message()

    def exactly(self, wire, size):
        found = b""
        while len(found) < size:
            more = wire.recv(size - len(found))
            self.assertTrue(more, f"closed after {len(found)} of {size} bytes")
            found += more
        return found

    def test_every_advertised_version_is_answered_as_the_schemas_say(self):
        self.topic(TOPIC)
        described = self.ask("Metadata", 12, {"Topics": [{"Name": TOPIC}]})
        topic_id = described["Topics"][0]["TopicId"]
        known = names_by_key()
        advertised = self.ask("ApiVersions", 4, content("ApiVersions", 4, topic_id))
        self.assertGreater(len(advertised["ApiKeys"]), 13)
        for api in advertised["ApiKeys"]:
            self.assertIn(api["ApiKey"], known, "there is no schema of it")
            name = known[api["ApiKey"]]
            # Kafka's clients look for Produce 0, which nobody serves.
            first = max(api["MinVersion"], 3 if name == "Produce" else 0)
            for version in range(first, api["MaxVersion"] + 1):
                with self.subTest(f"{name} {version}"):
                    self.ask(name, version, content(name, version, topic_id))


if __name__ == "__main__":
    testbed.main()
