"""An ordinary client as a process of its own, which must not notice what others do: it writes a
record and reads it back, again and again, and prints how long each took.

Usage: canary.py PORT TOPIC.
"""

import sys
import time

import paths  # noqa: F401

import kafka_wire
from load import now_ms
from record_batch import decode_batches, encode_batch


def main(port, topic):
    position = None
    with kafka_wire.Connection(port, timeout=60) as connection:
        position = connection.list_offset(topic, 0, kafka_wire.LATEST).offset
        while True:
            value = b"canary %d" % position
            before = time.perf_counter()
            answer = connection.produce(topic, 0, encode_batch([(now_ms(), None, value)]))
            got = connection.fetch(topic, 0, position, max_wait_ms=500)
            took = time.perf_counter() - before
            found = [r.value for batch in decode_batches(got.records) for r in batch.records()]
            if answer.error or answer.base_offset != position or found != [value]:
                sys.exit(f"at {position}: answered {answer}, read {found}")
            print(f"{time.monotonic()} {took}", flush=True)
            position += 1
            time.sleep(0.004)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
