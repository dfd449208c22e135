"""Launchers for the brokers under test: polylog, and a real Kafka 4.x to compare with.

Both have the same shape: start(), stop() with SIGTERM, kill9(), port, data_dir, log_dir (where
the partition directories are). Every process is ended by its own pid. POLYLOG_TEST_BROKER=kafka
runs a test against Kafka instead, which is how the tests themselves were checked.
"""

import base64
import contextlib
import os
import pathlib
import resource
import signal
import socket
import subprocess
import time
import uuid

import dependencies
import kafka_wire

START_SECONDS = 60
STOP_SECONDS = 60


class BrokerFailed(Exception):
    """The broker did not start, or did not stop as it should."""


_given = set()


def free_port():
    """A port nobody listens on now and that no other launcher of this process was given."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def polylog_binary():
    path = os.environ.get("POLYLOG_BINARY") or dependencies.SOURCE_DIR / "build/release/polylog"
    path = pathlib.Path(path)
    if not path.exists():
        raise BrokerFailed(f"no polylog at {path}: build it first, or set POLYLOG_BINARY")
    return path


class Broker:
    """A broker process on 127.0.0.1 with one data directory; what both kinds share."""

    kind = ""

    def __init__(self, data_dir, settings=None, port=None):
        self.data_dir = pathlib.Path(data_dir)
        self.settings = dict(settings or {})
        self.port = port or free_port()
        self.output = self.data_dir.parent / f"{self.data_dir.name}.{self.kind}.out"
        self.process = None
        self.files_max = None  # RLIMIT_NOFILE of the process
        self.memory_max = None  # RLIMIT_DATA, bytes

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def command(self):
        raise NotImplementedError

    def ready(self):
        raise NotImplementedError

    def _limits(self):
        if self.files_max:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files_max, self.files_max))
        if self.memory_max:
            resource.setrlimit(resource.RLIMIT_DATA, (self.memory_max, self.memory_max))

    def start(self, wait=True):
        if self.process is not None:
            raise BrokerFailed("already started")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with open(self.output, "ab") as sink:
            self.seen = sink.tell()
            self.process = subprocess.Popen(self.command(), stdout=sink, stderr=sink,
                                            stdin=subprocess.DEVNULL, preexec_fn=self._limits)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        until = time.monotonic() + START_SECONDS
        while not self.ready():
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise BrokerFailed(f"{self.kind} ended with {code} while starting:\n{self.tail()}")
            if time.monotonic() > until:
                self.kill9()
                raise BrokerFailed(f"{self.kind} not ready in {START_SECONDS} s:\n{self.tail()}")
            time.sleep(0.005 if self.kind == "polylog" else 0.1)

    def stop(self, may_fail=False):
        """SIGTERM; the broker must end by itself, and well unless `may_fail`."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerFailed(f"{self.kind} ignored SIGTERM:\n{self.tail()}") from None
        if code not in self.clean_exit and not (may_fail and code > 0):
            raise BrokerFailed(f"{self.kind} stopped with {code}:\n{self.tail()}")

    def kill9(self):
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def restart(self):
        self.stop()
        return self.start()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        """For the end of a test, whatever happened before."""
        if self.process is not None:
            with contextlib.suppress(OSError):
                self.kill9()

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *_):
        self.close()

    def log_text(self):
        """What the broker printed since its last start."""
        with open(self.output, "rb") as source:
            source.seek(self.seen)
            return source.read().decode(errors="replace")

    def tail(self, lines=25):
        return "\n".join(self.log_text().splitlines()[-lines:])

    def connect(self, **options):
        return kafka_wire.Connection(self.port, **options)

    def rss_bytes(self):
        return self._status("VmRSS")

    def peak_rss_bytes(self):
        return self._status("VmHWM")

    def _status(self, name):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise BrokerFailed(f"no {name} for {self.pid}")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class PolylogBroker(Broker):
    """`polylog serve`."""

    kind = "polylog"
    clean_exit = (0,)

    def __init__(self, data_dir, settings=None, port=None):
        super().__init__(data_dir, settings, port)
        self.http_port = free_port()

    @property
    def log_dir(self):
        return self.data_dir / "kafka"

    def command(self):
        command = [polylog_binary(), "serve", "--data", self.data_dir, "--kafka", self.address,
                   "--http", f"127.0.0.1:{self.http_port}"]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def ready(self):
        return any(line.startswith("polylog ready") for line in self.log_text().splitlines())


class KafkaBroker(Broker):
    """A single-node KRaft broker from the Maven artifacts; formats its directory when new.

    The metadata log stands in a directory of its own, so that `data_dir` can be put on a small
    disk or be replaced.
    """

    kind = "kafka"
    clean_exit = (0, 143)  # 128 + SIGTERM: how a JVM ends after its shutdown hooks ran

    def __init__(self, data_dir, settings=None, port=None, metadata_dir=None, heap="512m"):
        super().__init__(data_dir, settings, port)
        self.controller_port = free_port()
        self.metadata_dir = pathlib.Path(metadata_dir or f"{self.data_dir}.metadata")
        self.heap = heap
        self.jvm_options = ["-XX:+UseG1GC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]

    @property
    def log_dir(self):
        return self.data_dir

    def properties(self):
        values = {
            "process.roles": "broker,controller", "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},"
                         f"CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.data_dir, "metadata.log.dir": self.metadata_dir,
            "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            # Quick to take a killed broker back.
            "broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 400,
        }
        values.update({k: v for k, v in self.settings.items() if not k.startswith("polylog.")})
        return "".join(f"{key}={value}\n" for key, value in values.items())

    def java(self, *arguments):
        log4j = dependencies.PINS / "log4j2.properties"
        return ["java", f"-Xmx{self.heap}", *self.jvm_options,
                f"-Dlog4j2.configurationFile={log4j}", "-cp", f"{dependencies.kafka()}/*",
                *map(str, arguments)]

    def command(self):
        config = self.data_dir.parent / f"{self.data_dir.name}.properties"
        config.write_text(self.properties())
        if not (self.metadata_dir / "meta.properties").exists():
            self.metadata_dir.mkdir(parents=True, exist_ok=True)
            # An id as Kafka's own tool makes it; it never lets one begin with a dash.
            text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            cluster = "A" + text[1:]
            done = subprocess.run(self.java("kafka.tools.StorageTool", "format", "-t", cluster,
                                            "-c", config), text=True, capture_output=True,
                                  check=False)
            if done.returncode != 0:
                raise BrokerFailed(f"formatting failed:\n{done.stdout}{done.stderr}")
        return self.java("kafka.Kafka", config)

    def ready(self):
        try:
            with kafka_wire.Connection(self.port, timeout=2) as connection:
                return connection.api_versions()[0] == 0
        except (OSError, ValueError, ConnectionError):
            return False


def broker_under_test(data_dir, settings=None, port=None):
    """polylog, or what POLYLOG_TEST_BROKER names."""
    kind = os.environ.get("POLYLOG_TEST_BROKER", "polylog")
    return {"polylog": PolylogBroker, "kafka": KafkaBroker}[kind](data_dir, settings, port)


def is_kafka():
    return os.environ.get("POLYLOG_TEST_BROKER") == "kafka"
