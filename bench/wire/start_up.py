"""`run.py start-up`: how long a broker takes to serve again after kill -9."""

import pathlib
import shutil
import subprocess
import time

import paths  # noqa: F401
import stores
from load_tool import RoundFailed
from record_batch import encode_batch
from report import machine, write_json


def add_options(parser):
    stores.add_options(parser)
    parser.add_argument("--gib", type=float, default=10.0, help="size of the store")
    parser.add_argument("--partitions", type=int, default=1000)


def fill(broker, gib, partitions):
    """Writes `gib` of 1 KiB records over some partitions; the last writes stay in flight."""
    values = [(int(time.time() * 1000), None, b"x" * 1024)] * 900
    batch = encode_batch(values)
    total = int(gib * 2**30 / len(batch))
    with broker.connect(timeout=60) as connection:
        error, message = connection.create_topic("store", partitions, {"polylog.flush": "never"}
                                                 if broker.kind == "polylog" else {})
        if error != 0:
            raise RoundFailed(f"creating the store: {error} {message}")
        waiting = []
        for number in range(total):
            waiting.append(connection.send_produce("store", number % partitions, batch))
            if len(waiting) > 16:
                connection.receive_produce(waiting.pop(0))
        for correlation in waiting:
            connection.receive_produce(correlation)
        for number in range(partitions):
            connection.send_produce("store", number, batch)


def first_service(broker, partitions):
    """Seconds from exec until a produce is acknowledged and every partition answers a fetch."""
    started = time.monotonic()
    broker.start(wait=False)
    while True:
        try:
            connection = broker.connect(timeout=60)
            break
        except OSError:
            time.sleep(0.002)
    with connection:
        connected = time.monotonic() - started
        connection.wait_for_topic("store", partitions, seconds=120)
        batch = encode_batch([(int(time.time() * 1000), None, b"first")])
        if connection.produce("store", 0, batch).error != 0:
            raise RoundFailed("the first produce was refused")
        acked = time.monotonic() - started
        for partition in range(partitions):
            got = connection.fetch("store", partition, 0, max_wait_ms=0, max_bytes=4096)
            if got.error != 0 or not got.records:
                raise RoundFailed(f"partition {partition} answered {got.error}")
    return connected, acked, time.monotonic() - started


def drop_page_cache():
    """Cold means that nothing of the store is in memory."""
    subprocess.run(["sync"], check=True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def run(options, folder):
    gib, partitions = options.gib, options.partitions
    result = {"machine": machine(), "gib": gib, "partitions": partitions, "rows": []}
    print(f"\nstart after kill -9, {gib} GiB in {partitions} partitions, seconds from exec")
    print(f"{'':15} {'cache':>6} {'port':>7} {'ack':>7} {'all fetched':>12} {'peak RSS MiB':>13}")
    for kind in options.brokers:
        broker = stores.make_broker(kind, folder)
        try:
            broker.start()
            fill(broker, gib, partitions)
            for cache in ("warm", "cold"):
                broker.kill9()
                if cache == "cold":
                    drop_page_cache()
                times = first_service(broker, partitions)
                rss = broker.peak_rss_bytes() / 2**20
                port, ack, all_fetched = times
                print(f"{kind:15} {cache:>6} {port:7.2f} {ack:7.2f} {all_fetched:12.2f} "
                      f"{rss:13.0f}")
                result["rows"].append({"broker": kind, "cache": cache, "port_s": port, "ack_s": ack,
                                       "all_fetched_s": all_fetched,
                                       "peak_rss_mib": rss})
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("start-up", result)
    return 0
