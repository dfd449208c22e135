"""kcat, which is Debian's librdkafka 2.0, as a driver of the client matrix.

kcat takes a record a line and commits by itself: its balanced consumer commits what it printed at
an interval and when it is asked to end. Without -E it ends when its broker is away.
"""

import os
import signal
import subprocess
import time

import contract

LAYOUT = "%p\t%o\t%k\t%s\n"


def kcat(a, *arguments, given=None):
    done = subprocess.run(["kcat", "-b", a.bootstrap, *map(str, arguments)], input=given,
                          capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"kcat ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return done.stdout.decode()


def produce(a):
    for partition in range(a.partitions):
        lines = "".join(f"{contract.key_of(n)}\t{contract.value_of(a.prefix, n)}\n"
                        for n in range(partition, a.count, a.partitions))
        kcat(a, "-P", "-t", a.topic, "-p", partition, "-K", "\t", "-z", a.codec,
             "-X", f"enable.idempotence={'true' if a.idempotent else 'false'}",
             given=lines.encode())
    return {"count": a.count}


def read(a):
    count = 0
    for partition in range(a.partitions):
        text = kcat(a, "-C", "-q", "-t", a.topic, "-p", partition, "-o", "beginning", "-e",
                    "-f", LAYOUT)
        for line in text.splitlines():
            place, offset, key, value = line.split("\t")
            contract.emit(record=[int(place), int(offset), key, value])
            count += 1
    if count != a.count:
        raise RuntimeError(f"{count} records came")
    return {"count": count}


def consume(a):
    positions = contract.Positions(a)
    process = subprocess.Popen(
        ["kcat", "-b", a.bootstrap, "-G", a.group, "-E", "-u", "-f", LAYOUT,
         "-X", "auto.offset.reset=earliest", "-X", "auto.commit.interval.ms=200",
         "-X", "session.timeout.ms=10000", "-X", "heartbeat.interval.ms=500",
         "-X", "reconnect.backoff.max.ms=500", a.topic],
        stdout=subprocess.PIPE)
    os.set_blocking(process.stdout.fileno(), False)
    pending = b""
    ended = False
    while not ended:
        if positions.stopped() and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        ended = process.poll() is not None
        pending += process.stdout.read() or b""
        *lines, pending = pending.split(b"\n")
        for line in lines:
            place, offset, _, value = line.split(b"\t")
            positions.record(int(place), int(offset), value)
        time.sleep(0.02)
    if process.returncode != 0:
        raise RuntimeError(f"kcat ended with {process.returncode}")
    return {"count": positions.count}


def seek(a):
    answer = kcat(a, "-Q", "-t", f"{a.topic}:0:{a.time}")
    offset = int(answer.split()[-1])
    value = kcat(a, "-C", "-q", "-t", a.topic, "-p", 0, "-o", f"s@{a.time}", "-c", 1, "-f", "%s")
    return {"offset": offset, "value": value}


if __name__ == "__main__":
    contract.run({"produce": produce, "read": read, "consume": consume, "seek": seek})
