"""The client matrix: which clients, which features, how a driver is called, what is a gap and why.

Every client has one small program of the same command line:

    produce --bootstrap B --topic T --partitions P --count N --codec C --prefix X --idempotent 0|1
    read    --bootstrap B --topic T --partitions P --count N
    consume --bootstrap B --topic T --group G --stop FILE --protocol classic|consumer
    seek    --bootstrap B --topic T --time MS
    admin   --bootstrap B --topic T --group G --data TOPIC

It prints a JSON object a line. `produce` sends record n to partition n mod P with the key and the
value of contract.py. `read` prints {"record": [partition, offset, key, value]}. `consume` is a
member of the group until FILE exists, prints {"record": [partition, offset, value]} and, after
the broker has acknowledged a commit, {"committed": [[partition, offset], ...]}; it leaves the
group with everything committed. `seek` asks partition 0 for the first record at or after a time
and reads it. `admin` prints {"step": name, ...}. {"note": text} is a complaint the program lived
with, {"done": {...}} the last line of a program that did what it was asked. T, C, X and MS may be
lists with commas: the program does each in turn, with a "done" line after each.
"""

import os
import sys
from typing import NamedTuple

import dependencies

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FEATURES = {
    "produce": "produce and read back",
    "idempotent": "idempotent producer",
    "group": "group and rebalance",
    "kill": "group over kill -9",
    "seek": "seek by time",
    "admin": "administer",
    "kip848": "KIP-848 group",
    "kip848-kill": "KIP-848 over kill -9",
}
ADMIN_STEPS = ("create-topic", "describe-topic", "describe-config", "alter-config",
               "create-partitions", "list-groups", "describe-group", "group-offsets",
               "delete-group", "delete-records", "delete-topic", "list-topics")
NO_KIP848 = "the client knows only the classic group protocol"


class Client(NamedTuple):
    """One column of the matrix; `gaps` names a feature, codec or admin step and its reason."""

    name: str
    title: str
    version: str
    command: object  # () -> (argv, environment)
    gaps: dict
    quick: bool = False
    partitions: int = 2  # how many its driver can be told to write to

    @property
    def codecs(self):
        return [c for c in CODECS if f"codec {c}" not in self.gaps]

    @property
    def admin_steps(self):
        return [s for s in ADMIN_STEPS if f"admin {s}" not in self.gaps]

    @property
    def cells(self):
        return [f for f in FEATURES if f not in self.gaps]


def _python(script, client=None):
    def command():
        folder = dependencies.python_client(client) if client else dependencies.HERE
        return ([sys.executable, dependencies.HERE / "python" / script],
                {"PYTHONPATH": str(folder)})
    return command


def _node(script, resolve=dependencies.node):
    def command():
        folder = resolve()
        return (["node", dependencies.node_script(script, folder)],
                {"NODE_PATH": str(folder / "node_modules"), "KAFKAJS_NO_PARTITIONER_WARNING": "1"})
    return command


def _java(jars):
    def command():
        folder = jars()
        log4j = dependencies.PINS / "log4j2.properties"
        return (["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto",
                 f"-Dlog4j2.configurationFile={log4j}", "-cp",
                 f"{dependencies.java_driver(folder)}:{folder}/*", "Driver"], {})
    return command


def _go(name):
    return lambda: ([dependencies.go_driver(name)], {})


def _rust(name):
    return lambda: ([dependencies.rust_drivers() / name], {})


CLIENTS = {client.name: client for client in (
    Client(
        "kcat", "librdkafka 2.0 (kcat)", "kcat 1.7.1, librdkafka 2.0.2",
        _python("with_kcat.py"), {
            "admin": "kcat has no admin commands",
            "kip848": "librdkafka 2.0 is older than the protocol",
            "kip848-kill": "librdkafka 2.0 is older than the protocol",
        }, quick=True),
    Client(
        "confluent-kafka", "confluent-kafka", "2.16.1",
        _python("with_confluent.py", "confluent-kafka"), {},
        quick=True),
    Client(
        "java-3.9", "Java kafka-clients 3.9", dependencies.CLIENTS_39_VERSIONS[0],
        _java(dependencies.kafka_clients_39), {
            "kip848": "an early-access preview in 3.9, final in 4.0",
            "kip848-kill": "an early-access preview in 3.9, final in 4.0",
        }),
    Client(
        "java-4", "Java kafka-clients 4", dependencies.KAFKA_VERSIONS[0],
        _java(dependencies.kafka), {},
        quick=True),
    Client(
        "java-tools", "Kafka's command-line tools", dependencies.KAFKA_VERSIONS[0],
        _python("with_java_tools.py"), {}, partitions=1),
    Client(
        "kafkajs", "kafkajs", "2.2.4",
        _node("with_kafkajs.js"), {
            "codec zstd": "its zstd plug-in does not install on Node 20",
            "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
        }, quick=True),
    Client(
        "platformatic", "@platformatic/kafka", "1.35.0",
        _node("with_platformatic.mjs", dependencies.platformatic), {
            "codec zstd": "it takes Node's own zstd, which came with Node 22",
        }),
    # Not in the quick slice, which has to run with what Debian 12 brings: see dependencies.py for
    # what the clients in Go and Rust and @platformatic/kafka need.
    Client("franz-go", "franz-go with kadm", "1.22.3, kadm 1.20.0", _go("franz"), {}),
    Client("sarama", "sarama", "1.61.1", _go("sarama"), {
        "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
    }),
    Client("kafka-go", "kafka-go", "0.4.51", _go("segmentio"), {
        "idempotent": "the client has no idempotent producer",
        "admin delete-records": "the client has no such call",
        "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
    }),
    Client(
        "kafka-python-2", "kafka-python 2.0", "2.0.2",
        _python("with_kafka_python.py", "kafka-python-2"), {
            "idempotent": "the client has no idempotent producer",
            "admin delete-records": "the client has no such call",
            "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
        }),
    Client(
        "kafka-python-3", "kafka-python 3", "3.0.12",
        _python("with_kafka_python.py", "kafka-python-3"), {
            "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
        }),
    Client("aiokafka", "aiokafka", "0.14.0", _python("with_aiokafka.py", "aiokafka"), {
        "admin delete-group": "the client has no such call",
        "kip848": NO_KIP848, "kip848-kill": NO_KIP848,
    }),
    Client("rdkafka", "rdkafka (Rust)", "0.39.0, librdkafka 2.12.1", _rust("with_rdkafka"), {}),
    Client("rskafka", "rskafka (Rust)", "0.6.0", _rust("with_rskafka"), {
        "idempotent": "the client has no idempotent producer",
        "group": "the client has no groups", "kill": "the client has no groups",
        **{f"admin {step}": "the client has no such call" for step in (
            "describe-config", "alter-config", "create-partitions", "list-groups",
            "describe-group", "group-offsets", "delete-group")},
        "kip848": "the client has no groups", "kip848-kill": "the client has no groups",
    }),
)}


def chosen(full):
    """The clients of this run; POLYLOG_MATRIX_CLIENTS=a,b narrows it."""
    names = os.environ.get("POLYLOG_MATRIX_CLIENTS")
    if names:
        return names.split(",")
    return [name for name, client in CLIENTS.items() if full or client.quick]
