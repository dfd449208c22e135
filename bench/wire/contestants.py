"""The brokers of the scoreboard: each is started, given a place to write to, loaded and metered.

Modes: "memory" acknowledges before a sync, "durable" after it. One process serves both modes where
the original lets a topic or a command choose; otherwise there is one of each.
"""

import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import load_tool
import loads
import paths  # noqa: F401
import brokers
import dependencies
import peer_packages
import scaling
from load_tool import LibrdkafkaLoad, RoundFailed
from peers import CLIENT

MEMORY, DURABLE = "memory", "durable"
HEAP = "1g"
LONG_TURN_SECONDS = 30
REGISTER_SECONDS = 30
OPEN_FILES = min(200_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
LAYOUTS = ("kafka", "rocketmq", "segment")
IDEAL_FILE_MIB = 1024
# The files beside a partition's log are made in the background.
SETTLE_SECONDS_EACH, SETTLE_SECONDS_MAX = 0.001, 4.0


def polylog_settings():
    """Settings for every polylog of the benchmark: POLYLOG_BENCH_SETTINGS="name=value ..."."""
    pairs = os.environ.get("POLYLOG_BENCH_SETTINGS", "").split()
    return {"log.segment.delete.delay.ms": 0, **dict(pair.split("=", 1) for pair in pairs)}


class Contestant:
    """One of the brokers. `made` names what was written to; a name is never used twice."""

    name = ""
    modes = (MEMORY, DURABLE)
    protocol = "kafka"
    layout = None  # of polylog
    raw = None  # the protocol of wire_load, where `load` goes through the broker's own client

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / self.name.replace(" ", "-")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.made = self.cleared = 0
        self.idle_rss_bytes = 0

    def start(self):
        """Starts what there is to start, and notes what it takes with nothing in it."""
        raise NotImplementedError

    def close(self):
        raise NotImplementedError

    def fresh(self):
        """Between two rows: gives back the disk, where deleting a topic does not."""
        if self.made > self.cleared:
            self.cleared = self.made
            self._clear()

    def _clear(self):
        pass

    def processes(self):
        """What runs for it, all of it."""
        return getattr(self, "of", {}).values()

    def broker(self, mode):
        """The process that is measured."""
        raise NotImplementedError

    def make(self, mode, partitions):
        """A new place to write to."""
        raise NotImplementedError

    def drop(self, mode, topic):
        raise NotImplementedError

    def load(self, mode, topic, load):
        return loads.over_the_wire(self.protocol, self.broker(mode).address, topic, load)

    def next_name(self):
        self.made += 1
        return f"bench-{self.made}"

    def warm_up(self, seconds):
        """So that the JIT compilers have done their work before anything counts."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for mode in self.modes:
                for load in (loads.Load(partitions=16, connections=4, in_flight=8, seconds=2),
                             loads.Load(batch_bytes=65_536, in_flight=5, seconds=2,
                                        records=200_000)):
                    topic = self.make(mode, load.partitions)
                    self.load(mode, topic, load)
                    self.drop(mode, topic)

    def _start_each(self, make):
        """One process of each mode, known before it runs: close() finds it whatever happens."""
        self.of = {}
        for mode in self.modes:
            self.of[mode] = make(mode)
            self.of[mode].start()

    def _note_idle(self, mode=MEMORY):
        if not self.idle_rss_bytes:
            time.sleep(0.3)
            self.idle_rss_bytes = self.broker(mode).rss_bytes()


class KafkaSpeaking(Contestant):
    """Kafka and polylog: topics by Kafka's requests."""

    def broker(self, mode):
        return self.one

    def processes(self):
        return (self.one,)

    def start(self):
        self.one = self.make_broker()
        self.one.files_max = OPEN_FILES
        self.one.start()
        self._note_idle()

    def close(self):
        if hasattr(self, "one"):
            self.one.close()

    def make(self, mode, partitions):
        topic = self.next_name()
        scaling.create(self.one, topic, partitions, self.configs(mode, partitions))
        # Every partition has its files before the clock runs.
        if partitions > 1:
            loads.over_the_wire("kafka", self.one.address, topic, loads.Load(
                "rounds", partitions, record_bytes=16, rounds=1, seconds=120))
            time.sleep(min(SETTLE_SECONDS_MAX, partitions * SETTLE_SECONDS_EACH))
        return topic

    def drop(self, mode, topic):
        with self.one.connect(timeout=300) as connection:
            connection.delete_topic(topic)

    def librdkafka(self, mode, topic, size, count):
        done = load_tool.run(self.one.address, LibrdkafkaLoad(topic, size, count, CLIENT))
        return {"records": done.messages, "seconds": done.seconds,
                "cpu_seconds": done.client_cpu_seconds}


class Polylog(KafkaSpeaking):
    settings = {}  # of its own

    def make_broker(self):
        return brokers.PolylogBroker(self.folder / "data", {**self.settings, **polylog_settings()})

    def configs(self, mode, partitions):
        return {"polylog.layout": self.layout,
                "polylog.flush": "ack" if mode == DURABLE else "never"}

    def _clear(self):
        self.one.close()
        shutil.rmtree(self.one.data_dir, ignore_errors=True)
        self.start()

    def warm_up(self, seconds):
        super().warm_up(0.1)


class PolylogKafka(Polylog):
    name, layout = "polylog kafka", "kafka"


class PolylogJournal(PolylogKafka):
    """The kafka layout, its sync rounds through one journal. In row 4 alone."""

    name, settings = "polylog journal", {"polylog.journal": "true"}


class PolylogRocketmq(Polylog):
    name, layout = "polylog rocketmq", "rocketmq"


class PolylogSegment(Polylog):
    name, layout = "polylog segment", "segment"


class Kafka(KafkaSpeaking):
    """1 GiB of heap. Durable: flush.messages=1 on the topic."""

    name = "Kafka"

    def make_broker(self):
        broker = brokers.KafkaBroker(self.folder / "data", {
            "log.segment.delete.delay.ms": 0, "log.cleaner.enable": "true",
            # 1,000 clients connect at once; from the usual 50 on they try again after seconds.
            "socket.listen.backlog.size": 4096,
            # It stands still while others have their turn, and is not to be fenced for that.
            "broker.session.timeout.ms": 3_600_000}, heap=HEAP)
        broker.jvm_options = ["-XX:+UseG1GC", f"-Xms{HEAP}"]
        return broker

    def configs(self, mode, partitions):
        configs = {"flush.messages": 1} if mode == DURABLE else {}
        # Its index files are sparse and mapped. The first entry of each costs newer kernels 10 ms
        # where they have their usual 10 MiB, 20 s for 1,000 partitions.
        return configs | {"segment.index.bytes": 65536} if partitions >= 1000 else configs


class Mock(Contestant):
    """librdkafka's in-process broker: what its load tool can do at most."""

    name, modes = "mock", (MEMORY,)

    def start(self):
        pass

    def close(self):
        pass

    def warm_up(self, seconds):
        pass

    def broker(self, mode):
        return None

    def make(self, mode, partitions):
        return self.next_name()

    def drop(self, mode, topic):
        pass

    def librdkafka(self, _mode, _topic, size, count):
        done = load_tool.run(None, LibrdkafkaLoad("bench", size, count, CLIENT))
        return {"records": done.messages, "seconds": done.seconds,
                "cpu_seconds": done.client_cpu_seconds}


class IdealProcess(brokers.Broker):
    kind, clean_exit = "ideal", (0, -15)

    def __init__(self, folder, mode):
        super().__init__(folder)
        self.mode = mode

    def command(self):
        return [peer_packages.ideal_broker(), str(self.port), self.data_dir / "log",
                str(IDEAL_FILE_MIB), self.mode]

    def ready(self):
        return "ready" in self.log_text()


class Ideal(Contestant):
    """load/ideal_broker.cc: receives, checks, stores and answers, and nothing else."""

    name = "ideal"

    def start(self):
        self._start_each(lambda mode: IdealProcess(self.folder / mode, mode))
        self._note_idle()

    def close(self):
        for broker in getattr(self, "of", {}).values():
            broker.close()

    def warm_up(self, seconds):
        pass

    def broker(self, mode):
        return self.of[mode]

    def make(self, mode, partitions):
        return self.next_name()

    def drop(self, mode, topic):
        pass


class NatsServer(brokers.Broker):
    kind, clean_exit = "nats", (0, 1, -15)

    def __init__(self, folder, mode):
        super().__init__(folder)
        self.mode = mode

    def command(self):
        config = self.data_dir / "server.conf"
        sync = "always" if self.mode == DURABLE else "2m"
        config.write_text(f"listen: {self.address}\nmax_payload: 8388608\n"
                          f"jetstream {{ store_dir: {self.data_dir}/store, max_file: 40G, "
                          f"max_mem: 1G, sync_interval: {sync} }}\n")
        return ["env", "GOMEMLIMIT=1GiB", peer_packages.nats_server(), "-c", config]

    def ready(self):
        return "Server is ready" in self.log_text()


class Nats(Contestant):
    """JetStream in files. Durable: sync_interval always. A subject each stands for a partition."""

    name, protocol = "NATS", "nats"

    def start(self):
        self._start_each(lambda mode: NatsServer(self.folder / mode, mode))
        self._note_idle()

    def close(self):
        for broker in getattr(self, "of", {}).values():
            broker.close()

    def broker(self, mode):
        return self.of[mode]

    def warm_up(self, seconds):
        super().warm_up(0.1)

    def _ask(self, mode, what, value):
        """A request of JetStream's API; answers its reply."""
        text = json.dumps(value).encode() if value else b""
        with socket.create_connection(("127.0.0.1", self.of[mode].port), timeout=30) as link:
            link.sendall(b'CONNECT {"verbose":false}\r\nSUB _A 1\r\n'
                         + f"PUB $JS.API.{what} _A {len(text)}\r\n".encode() + text + b"\r\n")
            said = b""
            while b"MSG _A" not in said or not said.endswith(b"}\r\n"):
                part = link.recv(65536)
                if not part:
                    raise RoundFailed("NATS closed the connection")
                said += part
        if b'"error"' in said:
            raise RoundFailed(f"NATS: {said[-300:]!r}")

    def make(self, mode, partitions):
        topic = self.next_name()
        self._ask(mode, f"STREAM.CREATE.{topic}", {
            "name": topic, "subjects": [f"{topic}.*"], "storage": "file", "num_replicas": 1,
            "retention": "limits", "max_msgs": -1, "max_bytes": -1, "discard": "old"})
        return topic

    def drop(self, mode, topic):
        self._ask(mode, f"STREAM.DELETE.{topic}", None)


class RedisServer(brokers.Broker):
    kind, clean_exit = "redis", (0,)

    def command(self):
        return [peer_packages.redis_server(), "--bind", "127.0.0.1", "--port", str(self.port),
                "--dir", self.data_dir, "--save", "", "--appendonly", "yes",
                "--auto-aof-rewrite-percentage", "0", "--maxclients", "15000"]

    def ready(self):
        with contextlib.suppress(OSError, RoundFailed):
            self.ask("PING")
            return True
        return False

    def ask(self, *words):
        text = f"*{len(words)}\r\n" + "".join(f"${len(w)}\r\n{w}\r\n" for w in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as link:
            link.sendall(text.encode())
            said = link.recv(65536)
        if said[:1] not in (b"+", b":"):
            raise RoundFailed(f"Redis: {said[:200]!r}")


class Redis(Contestant):
    """Streams. Durable: appendfsync always, else every second."""

    name, protocol = "Redis", "redis"

    def start(self):
        self.one = RedisServer(self.folder / "data")
        self.one.files_max = OPEN_FILES
        self.one.start()
        self.mode = None
        self._note_idle()

    def close(self):
        if hasattr(self, "one"):
            self.one.close()

    def broker(self, mode):
        return self.one

    def processes(self):
        return (self.one,)

    def warm_up(self, seconds):
        super().warm_up(0.1)

    def make(self, mode, partitions):
        if self.mode != mode:
            self.one.ask("CONFIG", "SET", "appendfsync",
                         "always" if mode == DURABLE else "everysec")
            self.mode = mode
        return self.next_name()

    def drop(self, mode, topic):
        self.one.ask("FLUSHALL")

    def _clear(self):
        self.close()
        shutil.rmtree(self.one.data_dir, ignore_errors=True)
        self.start()


class RocketmqProcess(brokers.Broker):
    """A name server or a broker."""

    clean_exit = (0, 143)
    extra = ()

    def java(self, heap, main, *arguments):
        jars = peer_packages.rocketmq()
        return ["env", f"ROCKETMQ_HOME={self.data_dir}", f"NAMESRV_ADDR={self.name_server}",
                "java", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC",
                f"-XX:MaxDirectMemorySize={heap}", f"-Duser.home={self.data_dir}",
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
                "-cp", f"{jars}/*", main, *map(str, arguments)]

    def ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


class RocketmqNameServer(RocketmqProcess):
    kind = "namesrv"

    def command(self):
        self.name_server = self.address
        config = self.data_dir / "namesrv.conf"
        config.write_text(f"listenPort={self.port}\nbindAddress=127.0.0.1\n")
        return self.java("256m", "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", config)


class RocketmqBroker(RocketmqProcess):
    kind = "rocketmq"

    def __init__(self, folder, mode, name_server):
        super().__init__(folder)
        self.mode, self.name_server = mode, name_server
        self.broker_name = f"broker-{mode}"

    def command(self):
        while not _free(self.port - 2):
            self.port = brokers.free_port()
        config = self.data_dir / "broker.conf"
        values = {
            "brokerClusterName": "bench", "brokerName": self.broker_name, "brokerId": 0,
            "brokerIP1": "127.0.0.1", "bindAddress": "127.0.0.1", "listenPort": self.port,
            "haListenPort": brokers.free_port(), "namesrvAddr": self.name_server,
            "storePathRootDir": self.data_dir / "store",
            "storePathCommitLog": self.data_dir / "store" / "commitlog",
            "flushDiskType": "SYNC_FLUSH" if self.mode == DURABLE else "ASYNC_FLUSH",
            "autoCreateTopicEnable": "true", "diskMaxUsedSpaceRatio": 95,
            # What is full is deleted at any hour: the disk has to last for the benchmark.
            "fileReservedTime": 0, "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return self.java(HEAP, "org.apache.rocketmq.broker.BrokerStartup", "-c", config)

    def send_once(self, topic, body):
        """One message over a connection of its own, acknowledged; for a broker just started."""
        header = json.dumps({
            "code": 310, "flag": 0, "language": "CPP", "opaque": 1, "version": 493,
            "serializeTypeCurrentRPC": "JSON",
            "extFields": {"a": "load", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0",
                          "g": str(int(time.time() * 1000)), "h": "0", "i": "", "j": "0",
                          "k": "false", "m": "false"}}).encode()
        frame = struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as link:
            link.sendall(frame)
            said = link.recv(65536)
        if b'"code":0' not in said:
            raise RoundFailed(f"RocketMQ: {said[8:300]!r}")


def _free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Rocketmq(Contestant):
    """A name server and two brokers, ASYNC_FLUSH and SYNC_FLUSH, through RocketMQ's own client."""

    name, protocol, raw = "RocketMQ", "rocketmq", "rocketmq"

    def start(self):
        self.names = RocketmqNameServer(self.folder / "names")
        self.names.start()
        self._start_each(lambda mode: RocketmqBroker(self.folder / mode, mode,
                                                     self.names.address))
        self._note_idle()
        self.client = loads.RocketmqClient(self.names.address, self.folder / "client.out")

    def close(self):
        if hasattr(self, "client"):
            self.client.close()
        for broker in getattr(self, "of", {}).values():
            broker.close()
        if hasattr(self, "names"):
            self.names.close()

    def broker(self, mode):
        return self.of[mode]

    def processes(self):
        return (self.names, *self.of.values(), self.client)

    def make(self, mode, partitions):
        topic = self.next_name()
        self.client.make_topic(topic, self.of[mode].address, partitions)
        return topic

    def drop(self, mode, topic):
        pass  # files go when they are full

    def warm_up(self, seconds):
        """The client may have to wait until the name server tells it of a broker just started."""
        until = time.monotonic() + REGISTER_SECONDS
        while True:
            try:
                return super().warm_up(seconds)
            except RoundFailed:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    def load(self, mode, topic, load):
        return self.client.load(topic, self.of[mode].broker_name, load)

    def load_raw(self, mode, topic, load):
        """For more connections than its client can make."""
        return loads.over_the_wire(self.raw, self.of[mode].address, topic, load)


ALL = (Mock, Ideal, Kafka, Rocketmq, Nats, Redis, PolylogKafka, PolylogRocketmq, PolylogSegment,
       PolylogJournal)
BY_NAME = {one.name: one for one in ALL}
POLYLOGS = tuple(one.name for one in (PolylogKafka, PolylogRocketmq, PolylogSegment))


@contextlib.contextmanager
def alone(running, name=None):
    """The others stand still while one has its turn: ten brokers' collectors, compilers and timers
    would be measured with it. Without a name all of them do."""
    still = [one.process for other in running.values() if other.name != name
             for one in other.processes() if one.process is not None]
    began = time.monotonic()
    try:
        for process in still:
            process.send_signal(signal.SIGSTOP)
        yield
    finally:
        for process in still:
            process.send_signal(signal.SIGCONT)
        if still and time.monotonic() - began > LONG_TURN_SECONDS:
            time.sleep(1)  # RocketMQ's name server forgets a broker that is silent for two minutes


def versions():
    """What the pinned peers are, without asking for them."""
    return {"Kafka": dependencies.KAFKA_VERSIONS[0],
            "RocketMQ": peer_packages.ROCKETMQ_VERSIONS[0],
            "NATS": peer_packages.nats_version(),
            "librdkafka (mock)": dependencies.RDKAFKA_PACKAGE}


def polylog_version():
    said = subprocess.run([brokers.polylog_binary(), "--version"], capture_output=True, text=True,
                          check=False)
    return said.stdout.strip() or "?"
