"""What every driver of the client matrix takes and prints: see matrix.py for the contract."""

import json
import os
import sys
import traceback
from types import SimpleNamespace

FILLER = "polylog "
RETENTION, ALTERED_RETENTION = "3600000", "7200000"
LISTS = ("topic", "codec", "prefix", "time")
INTEGERS = ("count", "partitions", "idempotent")


def emit(**fields):
    print(json.dumps(fields), flush=True)


def value_of(prefix, number):
    return f"{prefix} {number} {FILLER * (number % 20)}".rstrip()


def key_of(number):
    return f"key-{number}"


def text(content):
    return content if content is None or isinstance(content, str) else content.decode()


def note(error):
    """A complaint that is no failure: what a client says while its broker is away."""
    emit(note=f"{type(error).__name__}: {error}"[:300])


class Positions:
    """What a member has handed over, and so may commit: partition -> next offset."""

    def __init__(self, arguments):
        self.stop_file = arguments.stop
        self.count = 0
        self.next = {}
        self.told = {}

    def stopped(self):
        return os.path.exists(self.stop_file)

    def record(self, partition, offset, value):
        emit(record=[partition, offset, text(value)])
        self.next[partition] = offset + 1
        self.count += 1

    def uncommitted(self):
        return {p: o for p, o in self.next.items() if self.told.get(p) != o}

    def committed(self, offsets):
        emit(committed=sorted(offsets.items()))
        self.told.update(offsets)

    def lost(self, partitions):
        """Another member may own these now: nothing of them may be committed any more."""
        for partition in partitions:
            self.next.pop(partition, None)
            self.told.pop(partition, None)


def arguments(argv):
    command, rest = argv[0], argv[1:]
    values = {name.removeprefix("--"): value for name, value in zip(rest[::2], rest[1::2])}
    for name in INTEGERS:
        if name in values:
            values[name] = int(values[name])
    values.setdefault("idempotent", 0)
    values.setdefault("protocol", "classic")
    return command, SimpleNamespace(**values)


def each(given):
    """The same for every item of lists with commas; a list of one goes with all."""
    lists = {name: str(getattr(given, name)).split(",") for name in LISTS if hasattr(given, name)}
    for n in range(max(len(items) for items in lists.values())):
        one = SimpleNamespace(**vars(given))
        for name, items in lists.items():
            setattr(one, name, items[n % len(items)])
        if hasattr(one, "time"):
            one.time = int(one.time)
        yield one


def run(commands):
    """The main program of a driver: `commands` maps a name to a function of the arguments."""
    command, given = arguments(sys.argv[1:])
    try:
        for one in each(given):
            emit(done=commands[command](one) or {})
    except Exception:  # noqa: BLE001: the test shows whatever it was
        traceback.print_exc()
        sys.exit(1)
