"""Where the programs come from that the scoreboard measures against, and its own load tools.

Pinned versions, resolved by name into build/deps; nothing of this is needed by polylog itself.
"""

import os
import pathlib
import shutil
import subprocess

import paths  # noqa: F401
import dependencies
from dependencies import DEPS, MissingDependency

HERE = pathlib.Path(__file__).resolve().parent
ROCKETMQ_VERSIONS = ("5.3.3",)
NATS_MODULE = "github.com/nats-io/nats-server/v2"


def rocketmq():
    """The folder with the jars of a RocketMQ broker, its name server and its client."""
    return dependencies._maven_jars("rocketmq-broker", ROCKETMQ_VERSIONS,
                                    HERE / "peers" / "rocketmq.xml")


def rocketmq_load():
    """Our load program on RocketMQ's own client."""
    jars = rocketmq()
    return dependencies._compiled(jars, HERE / "java", DEPS / f"classes-{jars.name}")


def nats_server():
    """nats-server, compiled from the Go module proxy's sources."""
    if shutil.which("go") is None:
        raise MissingDependency("no go: nats-server is compiled from its module")

    def build(folder):
        env = dict(os.environ, CGO_ENABLED="0")
        dependencies._run(["go", "build", "-p", "2", "-o", folder / "nats-server", NATS_MODULE],
                          cwd=folder, env=env)
    return dependencies._built("nats", HERE / "peers" / "nats", build) / "nats-server"


def nats_version():
    text = (HERE / "peers" / "nats" / "go.mod").read_text()
    return text.split(NATS_MODULE + " v")[1].split()[0]


def redis_server():
    """Debian's redis-server. The package redis-tools has the program under another name, and
    starts no service."""
    found = shutil.which("redis-server")
    if found:
        return pathlib.Path(found)
    program = pathlib.Path("/usr/bin/redis-check-rdb")
    if not program.exists():
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        for command in (["apt-get", "update", "-q"],
                        ["apt-get", "install", "-y", "-q", "--no-install-recommends",
                         "redis-tools"]):
            dependencies._run(command, env=env)
    link = DEPS / "redis" / "redis-server"
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(program)
    return link


def redis_version():
    said = subprocess.run([redis_server(), "--version"], capture_output=True, text=True,
                          check=True).stdout
    return said.split("v=")[1].split()[0]


def _compile(name, sources, libraries=()):
    """One of our own C++ tools, compiled when a source is newer."""
    folder = HERE / "load"
    binary = dependencies.SOURCE_DIR / "build" / "bench" / name
    newest = max(path.stat().st_mtime for path in folder.iterdir())
    if not binary.exists() or binary.stat().st_mtime < newest:
        compiler = os.environ.get("CXX") or shutil.which("g++-12") or "g++"
        binary.parent.mkdir(parents=True, exist_ok=True)
        dependencies._run([compiler, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Wpedantic",
                           "-Wconversion", "-Wshadow", *(folder / source for source in sources),
                           "-o", binary, *libraries])
    return binary


def wire_load():
    return _compile("wire_load", ("wire_load.cc", "links.cc", "fetch.cc", "dialects.cc"))


def ideal_broker():
    return _compile("ideal_broker", ("ideal_broker.cc", "dialects.cc"), ("-luring", "-lisal"))
