"""`run.py memory`: resident memory, idle and with many partitions."""

import shutil
import time

import paths  # noqa: F401
import kafka_wire
import stores
from load_tool import RoundFailed
from record_batch import encode_batch
from report import machine, write_json


def add_options(parser):
    stores.add_options(parser)
    parser.add_argument("--partitions-many", type=int, default=10_000)


def touch_partitions(broker, partitions):
    """One record in each of many partitions, over topics of at most 1,000."""
    batch = encode_batch([(int(time.time() * 1000), None, b"one")])
    with broker.connect(timeout=120) as connection:
        for first in range(0, partitions, 1000):
            count = min(1000, partitions - first)
            topic = f"many-{first}"
            error, message = connection.create_topic(topic, count)
            if error != 0:
                raise RoundFailed(f"creating {topic}: {error} {message}")
            waiting = []
            for partition in range(count):
                waiting.append(connection.send_produce(topic, partition, batch))
                if len(waiting) > 8:
                    _expect_ack(connection, waiting.pop(0))
            for correlation in waiting:
                _expect_ack(connection, correlation)


def _expect_ack(connection, correlation):
    answer = connection.receive_produce(correlation)
    if answer.error != kafka_wire.NONE:
        raise RoundFailed(f"a partition answered {answer.error}")


def run(options, folder):
    result = {"machine": machine(), "partitions": options.partitions_many, "rows": []}
    print(f"\nresident memory, MiB; {options.partitions_many} partitions with one record each")
    print(f"{'':15} {'idle':>7} {'partitions':>11} {'KiB each':>9} {'restarted':>10} "
          f"{'start s':>8}")
    for kind in options.brokers:
        broker = stores.make_broker(kind, folder)
        try:
            broker.start()
            time.sleep(1)
            idle = broker.rss_bytes()
            touch_partitions(broker, options.partitions_many)
            time.sleep(1)
            loaded = broker.rss_bytes()
            broker.kill9()
            before = time.monotonic()
            broker.start()
            start = time.monotonic() - before
            time.sleep(1)
            again = broker.rss_bytes()
            each = (loaded - idle) / 1024 / options.partitions_many
            print(f"{kind:15} {idle / 2**20:7.1f} {loaded / 2**20:11.1f} {each:9.2f} "
                  f"{again / 2**20:10.1f} {start:8.2f}")
            result["rows"].append({"broker": kind, "idle_mib": idle / 2**20,
                                   "partitions_mib": loaded / 2**20, "kib_each": each,
                                   "restarted_mib": again / 2**20, "start_s": start})
        finally:
            broker.close()
            shutil.rmtree(broker.data_dir, ignore_errors=True)
    write_json("memory", result)
    return 0
