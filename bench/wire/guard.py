"""The noise guard: is this machine quiet enough for a round to count?

Two small measurements before and after each round: a 64-byte ping-pong over loopback and 64 KiB
writes with fdatasync into a prewritten file. A busy neighbour shows in both at once.
"""

import os
import pathlib
import socket
import statistics
import threading
import time
from typing import NamedTuple

PING_P99_US_MAX = 300.0
SYNC_FACTOR_MAX = 2.0
PINGS, SYNCS = 2000, 60
BLOCK = 64 << 10


class Reading(NamedTuple):
    ping_p50_us: float
    ping_p99_us: float
    sync_p50_us: float


def _echo(listener):
    link, _ = listener.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with link:
        while data := link.recv(64):
            link.sendall(data)


def _percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def ping_pong():
    """Round trips between two processes, in microseconds: (p50, p99)."""
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        _echo(listener)
        os._exit(0)
    times = []
    with socket.create_connection(listener.getsockname()) as link:
        listener.close()
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(PINGS):
            before = time.perf_counter_ns()
            link.sendall(b"x" * 64)
            link.recv(64)
            times.append((time.perf_counter_ns() - before) / 1000)
    os.waitpid(child, 0)
    times = times[PINGS // 10:]
    return statistics.median(times), _percentile(times, 0.99)


def prewritten_sync(folder):
    """64 KiB over bytes that are already there, then fdatasync: median in microseconds."""
    path = pathlib.Path(folder) / "guard.dat"
    block = os.urandom(BLOCK)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        for number in range(SYNCS):
            os.pwrite(file, block, number * BLOCK)
        os.fsync(file)
        times = []
        for number in range(SYNCS):
            before = time.perf_counter_ns()
            os.pwrite(file, block, number * BLOCK)
            os.fdatasync(file)
            times.append((time.perf_counter_ns() - before) / 1000)
    finally:
        os.close(file)
        path.unlink()
    return statistics.median(times)


class Guard:
    """Keeps the quiet value of the sync and judges rounds by it."""

    def __init__(self, folder):
        self.folder = folder
        self.syncs = []
        self.lock = threading.Lock()

    def read(self):
        p50, p99 = ping_pong()
        sync = prewritten_sync(self.folder)
        with self.lock:
            self.syncs.append(sync)
        return Reading(p50, p99, sync)

    def quiet(self, *readings):
        usual = statistics.median(self.syncs)
        return all(reading.ping_p99_us <= PING_P99_US_MAX
                   and reading.sync_p50_us <= SYNC_FACTOR_MAX * usual for reading in readings)
