"""`run.py start-up`: how long a broker takes to serve again after kill -9, and what it reads.

polylog reads what lies beyond the last checkpoint, whatever the size of the store: --gib 2 10 shows
that. Each start has --tail-mib of new records to find.
"""

import pathlib
import re
import shutil
import subprocess
import time

import paths  # noqa: F401
import kafka_wire
import stores
from load_tool import RoundFailed
from record_batch import encode_batch
from report import cell, machine, say, write_json

RECOVERED = re.compile(r"(\d+) partitions, (?:un)?clean stop, (\d+) bytes read")
IN_FLIGHT = 16
MIB = 2**20
CACHES = ("warm", "cold")


def add_options(parser):
    stores.add_options(parser)
    parser.add_argument("--layout", nargs="+", choices=("kafka", "rocketmq", "segment"),
                        default=["kafka"], help="of polylog's store")
    parser.add_argument("--gib", type=float, nargs="+", default=[10.0], help="sizes of the store")
    parser.add_argument("--tail-mib", type=float, default=100.0,
                        help="written between the first start and the second kill")
    parser.add_argument("--partitions", type=int, default=1000)


def create(broker, layout, partitions):
    configs = {"polylog.flush": "never", "polylog.layout": layout}
    with broker.connect(timeout=120) as connection:
        error, message = connection.create_topic("store", partitions,
                                                 configs if broker.kind == "polylog" else {})
        if error != 0:
            raise RoundFailed(f"creating the store: {error} {message}")


def write(broker, size, partitions):
    """Writes `size` bytes of 1 KiB records over the partitions; the last writes stay in flight."""
    values = [(int(time.time() * 1000), None, b"x" * 1024)] * 900
    batch = encode_batch(values)
    with broker.connect(timeout=60) as connection:
        waiting = []
        for number in range(int(size / len(batch)) + 1):
            waiting.append(connection.send_produce("store", number % partitions, batch))
            if len(waiting) > IN_FLIGHT:
                acknowledged(connection.receive_produce(waiting.pop(0)))
        for correlation in waiting:
            acknowledged(connection.receive_produce(correlation))
        for number in range(min(partitions, IN_FLIGHT)):
            connection.send_produce("store", number, batch)


def acknowledged(answer):
    if answer.error != 0:
        raise RoundFailed(f"a produce was answered with {answer.error}")


def touch_all(broker, partitions):
    """At least one record everywhere, so that every partition can answer a fetch."""
    batch = encode_batch([(int(time.time() * 1000), None, b"one")])
    with broker.connect(timeout=60) as connection:
        for number in range(partitions):
            produce_when_led(connection, number, batch)


def produce_when_led(connection, partition, batch, seconds=60):
    """Kafka's metadata runs ahead of the broker that is to lead."""
    until = time.monotonic() + seconds
    while True:
        answer = connection.produce("store", partition, batch)
        if answer.error not in kafka_wire.RETRIABLE or time.monotonic() > until:
            return acknowledged(answer)
        time.sleep(0.001)


def fetch_when_led(connection, partition, seconds=60):
    until = time.monotonic() + seconds
    while True:
        got = connection.fetch("store", partition, 0, max_wait_ms=0, max_bytes=4096)
        if got.error == 0 and got.records:
            return
        if got.error not in kafka_wire.RETRIABLE or time.monotonic() > until:
            raise RoundFailed(f"partition {partition} answered {got.error}")
        time.sleep(0.001)


def bytes_read(broker):
    """Of the process so far: asked for, and fetched from the device."""
    lines = pathlib.Path(f"/proc/{broker.pid}/io").read_text().splitlines()
    fields = dict(line.split(": ") for line in lines)
    return int(fields["rchar"]), int(fields["read_bytes"])


def bytes_scanned(broker):
    """What polylog says that its recovery has read of the log; None: it says nothing."""
    found = [int(size) for _, size in RECOVERED.findall(broker.log_text())]
    return sum(found) if found else None


def first_service(broker, partitions):
    """Seconds from exec until a produce is acknowledged and every partition answers a fetch, and
    what was read until the port was open."""
    started = time.monotonic()
    broker.start(wait=False)
    while True:
        try:
            connection = broker.connect(timeout=60)
            break
        except OSError:
            time.sleep(0.002)
    with connection:
        row = {"port_s": time.monotonic() - started}
        row["asked_for_bytes"], row["device_bytes"] = bytes_read(broker)
        connection.wait_for_topic("store", partitions, seconds=120)
        batch = encode_batch([(int(time.time() * 1000), None, b"first")])
        produce_when_led(connection, 0, batch)
        row["ack_s"] = time.monotonic() - started
        for partition in range(partitions):
            fetch_when_led(connection, partition)
    row["all_fetched_s"] = time.monotonic() - started
    row["scanned_bytes"] = bytes_scanned(broker)
    row["peak_rss_bytes"] = broker.peak_rss_bytes()
    return row


def drop_page_cache():
    """Cold means that nothing of the store is in memory."""
    subprocess.run(["sync"], check=True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def measure(broker, layout, gib, options, show=None, caches=CACHES):
    """Starts after kill -9: with a warm page cache, and with nothing in it."""
    show = show or print_row
    rows = []
    broker.start()
    create(broker, layout, options.partitions)
    touch_all(broker, options.partitions)
    before = time.monotonic()
    write(broker, gib * 2**30, options.partitions)
    say(f"{broker.kind} {layout}: {gib} GiB in {time.monotonic() - before:.0f} s")
    for cache in caches:
        if cache == "cold":
            write(broker, options.tail_mib * MIB, options.partitions)
        broker.kill9()
        if cache == "cold":
            drop_page_cache()
        row = first_service(broker, options.partitions)
        rows.append({"broker": broker.kind, "layout": layout, "gib": gib, "cache": cache, **row})
        show(rows[-1])
    return rows


def mib(size, width):
    return cell(None if size is None else size / MIB, width, 1)


def print_row(row):
    name = row["layout"] if row["broker"] == "polylog" else row["broker"]
    print(f"{name:9} {row['gib']:6.2f} {row['cache']:>6} {row['port_s']:7.2f} {row['ack_s']:7.2f} "
          f"{row['all_fetched_s']:12.2f} {mib(row['scanned_bytes'], 11)} "
          f"{mib(row['asked_for_bytes'], 10)} {mib(row['device_bytes'], 11)} "
          f"{mib(row['peak_rss_bytes'], 8)}", flush=True)


def run(options, folder):
    result = {"machine": machine(), "partitions": options.partitions,
              "tail_mib": options.tail_mib, "rows": []}
    print(f"\nstart after kill -9, {options.partitions} partitions; seconds from exec, MiB read "
          "until the port is open")
    print(f"{'':9} {'GiB':>6} {'cache':>6} {'port':>7} {'ack':>7} {'all fetched':>12} "
          f"{'log scanned':>11} {'asked for':>10} {'from device':>11} {'peak RSS':>8}")
    for kind in options.brokers:
        for layout in options.layout if kind == "polylog" else ["kafka"]:
            for gib in options.gib:
                broker = stores.make_broker(kind, folder)
                try:
                    result["rows"] += measure(broker, layout, gib, options)
                finally:
                    broker.close()
                    shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("start-up", result)
    return 0
