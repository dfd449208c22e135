#!/usr/bin/env python3
"""Writes the golden frames of the Kafka protocol: python3 make.py (needs mvn and a JDK 17).

Field values are drawn here, deterministically, from the schemas in src/protocol/kafka/schemas; the
bytes come from Kafka's own message classes (Oracle.java, kafka-clients from Maven Central), so that
they owe nothing to our generator. <Message>.txt has one frame a line: version, bytes of the header,
header and body in hex (without the frame's size). examples.txt has a few frames with fixed values,
which the test builds field by field. errors.txt has Kafka's error codes. The fuzz targets start
from one frame per message and version. MANIFEST says what wrote what.
"""

import base64
import hashlib
import json
import pathlib
import random
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCHEMAS = HERE.parents[2] / "src/protocol/kafka/schemas"
KAFKA = "4.3.1"
# The last line of Kafka that spoke the oldest versions; they went with 4.0.
OLD_KAFKA = "3.9.1"
OLD_VERSIONS = {"CreateTopics": (0, 1), "DeleteTopics": (0,)}

CORPUS = HERE.parents[1] / "fuzz/protocol/corpus"

# Message, version, values; compared field by field in messages_test.cc.
EXAMPLES = (
    ("ProduceRequest", 9, {
        "transactionalId": None, "acks": -1, "timeoutMs": 30000, "topicData": [
            {"name": "orders", "partitionData": [
                {"index": 0, "records": "AQIDBA=="}, {"index": 7, "records": None}]}]}),
    ("FetchResponse", 16, {
        "throttleTimeMs": 5, "errorCode": 0, "sessionId": 77, "responses": [
            {"topicId": "AAECAwQFBgcICQoLDA0ODw", "partitions": [
                {"partitionIndex": 3, "errorCode": 74, "highWatermark": 1000,
                 "lastStableOffset": 900, "logStartOffset": 10,
                 "currentLeader": {"leaderId": 4, "leaderEpoch": 9},
                 "abortedTransactions": [{"producerId": 2 ** 40, "firstOffset": 910}],
                 "preferredReadReplica": -1, "records": "/w=="}]}],
        "nodeEndpoints": [{"nodeId": 4, "host": "broker-4", "port": 9092, "rack": None}]}),
    ("MetadataResponse", 1, {
        "brokers": [{"nodeId": 1, "host": "localhost", "port": 9092, "rack": None}],
        "controllerId": 1, "topics": [
            {"errorCode": 0, "name": "orders", "isInternal": False, "partitions": [
                {"errorCode": 5, "partitionIndex": 0, "leaderId": -1, "replicaNodes": [1],
                 "isrNodes": []}]}]}),
    ("ApiVersionsResponse", 3, {
        "errorCode": 0, "apiKeys": [{"apiKey": 0, "minVersion": 0, "maxVersion": 13},
                                    {"apiKey": 18, "minVersion": 0, "maxVersion": 4}],
        "throttleTimeMs": 0, "finalizedFeaturesEpoch": 6, "finalizedFeatures": [
            {"name": "group.version", "maxVersionLevel": 1, "minVersionLevel": 1}]}),
    ("FetchRequest", 11, {
        "replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 52428800,
        "isolationLevel": 1, "sessionId": 8, "sessionEpoch": 2, "topics": [
            {"topic": "orders", "partitions": [
                {"partition": 0, "currentLeaderEpoch": 3, "fetchOffset": 42,
                 "logStartOffset": -1, "partitionMaxBytes": 1048576}]}],
        "forgottenTopicsData": [{"topic": "old", "partitions": [1, 2]}], "rackId": "r1"}),
)

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = ("", "a", "orders", "t\u00f6pic-\u20ac", "\U0001f600", "x" * 126, "y" * 127, "z" * 130)


def within(versions, version):
    if versions in (None, "none"):
        return False
    first, plus, last = re.fullmatch(r"(\d+)(\+?)(?:-(\d+))?", versions).groups()
    return int(first) <= version and (bool(plus) or version <= int(last or first))


class Values:
    """Draws field values. Styles: empty, edge (largest and smallest), random."""

    def __init__(self, style, seed, common):
        self.style = style
        self.common = {struct["name"]: struct["fields"] for struct in common}
        self.random = random.Random(seed)

    def pick(self, empty, edge, drawn):
        return {"empty": empty, "edge": edge, "random": drawn}[self.style]()

    def integer(self, bits):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        return self.pick(lambda: 0, lambda: self.random.choice((low, high, -1)),
                         lambda: self.random.randint(low, high))

    def blob(self, size):
        return base64.b64encode(self.random.randbytes(size)).decode()

    def scalar(self, kind):
        if kind in INTEGER_BITS:
            return self.integer(INTEGER_BITS[kind])
        if kind == "float64":
            return self.pick(lambda: 0.0, lambda: self.random.choice((1.5e308, -5e-324)),
                             lambda: self.random.uniform(-1e6, 1e6))
        if kind == "bool":
            return self.pick(lambda: False, lambda: True, lambda: self.random.random() < 0.5)
        if kind == "string":
            return self.pick(lambda: "", lambda: TEXTS[-1], lambda: self.random.choice(TEXTS))
        if kind == "uuid":
            raw = self.pick(lambda: bytes(16), lambda: b"\xff" * 16,
                            lambda: self.random.randbytes(16))
            return base64.urlsafe_b64encode(raw).decode().rstrip("=")
        if kind in ("bytes", "records"):
            # Around the size from which our writer splices instead of copying, too.
            return self.pick(lambda: self.blob(0), lambda: self.blob(700),
                             lambda: self.blob(self.random.choice((1, 61, 511, 512))))
        raise ValueError(kind)

    def field(self, field, version):
        if within(field.get("nullableVersions"), version):
            if self.pick(lambda: True, lambda: False, lambda: self.random.random() < 0.3):
                return None
        kind = field["type"]
        if kind.startswith("[]"):
            count = self.pick(lambda: 0, lambda: 2, lambda: self.random.randint(0, 3))
            return [self.value(kind[2:], field, version) for _ in range(count)]
        return self.value(kind, field, version)

    def value(self, kind, field, version):
        fields = field.get("fields") or self.common.get(kind)
        return self.struct(fields, version) if fields else self.scalar(kind)

    def struct(self, fields, version):
        out = {}
        for field in fields:
            if not within(field["versions"], version):
                continue
            if "tag" in field:
                # Absent means its default.
                if self.pick(lambda: True, lambda: False, lambda: self.random.random() < 0.5):
                    continue
            out[field["name"][0].lower() + field["name"][1:]] = self.field(field, version)
        return out


def cases(schema, version):
    """The lines for the oracle: one message in each style, and more random ones."""
    for number, style in enumerate(("empty", "edge", "random", "random", "random")):
        values = Values(style, f"{schema['name']} {version} {number}",
                        schema.get("commonStructs", ()))
        client = ("-", "", "rdkafka", "cl\u00efent")[values.random.randrange(4)]
        correlation = values.random.randint(-2 ** 31, 2 ** 31 - 1)
        fields = values.struct(schema["fields"], version)
        yield "\t".join((schema["name"], str(version), str(correlation), client,
                         json.dumps(fields)))


def oracle(kafka_version, scratch):
    """A function that runs Oracle.java with that version of Kafka on some input."""
    out = scratch / f"classpath-{kafka_version}"
    subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", f"-Dkafka.version={kafka_version}",
                    "dependency:build-classpath", f"-Dmdep.outputFile={out}"], check=True)
    command = ["java", "-Dfile.encoding=UTF-8", "-cp", out.read_text(), str(HERE / "Oracle.java")]

    def run(lines, *arguments):
        done = subprocess.run(command + list(arguments), input="\n".join(lines), check=True,
                              text=True, encoding="utf-8", stdout=subprocess.PIPE)
        return done.stdout.splitlines()
    return run


def write_corpus(name, frames):
    """One frame per version, the largest: a request as it is, a response behind key and version."""
    largest = {}
    for frame in frames:
        version, _, text = frame.split()
        if len(text) > len(largest.get(version, "")):
            largest[version] = text
    kind = "kafka_request" if name.endswith("Request") else "kafka_response"
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    (CORPUS / kind).mkdir(parents=True, exist_ok=True)
    for version, text in largest.items():
        prefix = b""
        if kind == "kafka_response":
            prefix = schema["apiKey"].to_bytes(2, "big") + int(version).to_bytes(2, "big")
        (CORPUS / kind / f"{name}-v{version}").write_bytes(prefix + bytes.fromhex(text))


def main():
    written = {}  # file name: versions of Kafka
    with tempfile.TemporaryDirectory() as scratch:
        new = oracle(KAFKA, pathlib.Path(scratch))
        old = oracle(OLD_KAFKA, pathlib.Path(scratch))
        (HERE / "errors.txt").write_text("\n".join(new([], "errors")) + "\n")
        written["errors.txt"] = KAFKA
        lines = ["\t".join((name, str(version), "1", "-", json.dumps(values)))
                 for name, version, values in EXAMPLES]
        frames = [f"{name} {frame}" for (name, _, _), frame in zip(EXAMPLES, new(lines))]
        (HERE / "examples.txt").write_text("\n".join(frames) + "\n")
        written["examples.txt"] = KAFKA
        for path in sorted(SCHEMAS.glob("*.json")):
            schema = json.loads(path.read_text())
            if schema["type"] not in ("request", "response"):
                continue
            api = re.sub("Re(quest|sponse)$", "", schema["name"])
            first, _, last = schema["validVersions"].partition("-")
            first, last = int(first), int(last or first)
            olds = [v for v in range(first, last + 1) if v in OLD_VERSIONS.get(api, ())]
            news = [v for v in range(first, last + 1) if v not in olds]
            frames = [frame for version in olds for frame in old(cases(schema, version))]
            frames += new(line for version in news for line in cases(schema, version))
            file = schema["name"] + ".txt"
            (HERE / file).write_text("\n".join(frames) + "\n")
            write_corpus(schema["name"], frames)
            written[file] = f"{KAFKA}, v{olds[0]}-{olds[-1]} {OLD_KAFKA}" if olds else KAFKA
    with open(HERE / "MANIFEST", "w", encoding="utf-8") as manifest:
        manifest.write("# file\tsha256\tsystem\tversion\tcommand\n")
        for file, version in sorted(written.items()):
            digest = hashlib.sha256((HERE / file).read_bytes()).hexdigest()
            manifest.write(f"{file}\t{digest}\tApache Kafka (kafka-clients, Java)\t{version}\t"
                           "python3 tests/golden/kafka_wire/make.py\n")


if __name__ == "__main__":
    main()
