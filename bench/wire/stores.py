"""The brokers whose stores `run.py start-up` and `run.py memory` look at."""

import pathlib

import paths  # noqa: F401
import brokers


def add_options(parser):
    parser.add_argument("--brokers", nargs="+", choices=("polylog", "kafka"), default=["polylog"])


def make_broker(kind, folder):
    folder = pathlib.Path(folder) / f"{kind}-store"
    if kind == "polylog":
        return brokers.PolylogBroker(folder)
    broker = brokers.KafkaBroker(folder, heap="1g")
    broker.jvm_options = ["-XX:+UseG1GC"]
    return broker
