"""Clients that write and read all the time and tell the history what they were told."""

import random
import threading
import time

import scenario

import kafka_wire
from record_batch import decode_batches, encode_batch

GONE = (OSError, ConnectionError, ValueError, TimeoutError, KeyError)
DUPLICATE_SEQUENCE = 46
SIZES = (20, 300, 2000)
CODECS = ("none", "none", "lz4", "zstd")


def now_ms():
    return int(time.time() * 1000)


def values_of(rng, label, serial):
    count, size = rng.choice((1, 1, 2, 5)), rng.choice(SIZES)
    return [b"%s/%d/%d " % (label.encode(), serial, n) + b"." * size for n in range(count)]


class Client(threading.Thread):
    """A thread with a connection; it ends with stop() or when its broker is gone."""

    def __init__(self, broker, session, seed):
        super().__init__(name=session.name, daemon=True)
        self.broker, self.session, self.rng = broker, session, random.Random(seed)
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            with self.broker.connect(timeout=10) as connection:
                self.work(connection)
        except GONE:
            pass  # the broker is gone, as it should be
        except scenario.Failed as problem:
            if self.session.history.powered:
                self.failure = str(problem)

    def work(self, connection):
        raise NotImplementedError

    def stop(self):
        self.ended.set()
        self.join(30)


class Writer(Client):
    """Up to three requests in flight, to places in turn at random; no retries."""

    def __init__(self, broker, session, seed, places, acks=-1, may_lose_s=0.0, pause_s=0.0,
                 flight=3):
        super().__init__(broker, session, seed)
        self.places, self.acks, self.may_lose_s = places, acks, may_lose_s
        self.pause_s, self.flight = pause_s, flight

    def work(self, connection):
        serial, waiting = 0, []
        while not self.ended.is_set():
            place = self.rng.choice(self.places)
            values = values_of(self.rng, self.session.name, serial)
            batch = encode_batch([(now_ms(), None, v) for v in values], self.rng.choice(CODECS))
            sent = self.session.write(place, values, may_lose_s=self.may_lose_s)
            waiting.append((sent, connection.send_produce(*place, batch, acks=self.acks)))
            serial += 1
            while len(waiting) >= self.flight:
                self.answered(connection, *waiting.pop(0))
            time.sleep(self.pause_s)
        for item in waiting:
            self.answered(connection, *item)

    def answered(self, connection, sent, correlation):
        answer = connection.receive_produce(correlation)
        if answer.error == 0:
            sent.ok(answer.base_offset)


class Creator(Client):
    """Makes new topics, each in the next layout, and writes the first records of each."""

    def __init__(self, broker, session, seed, create):
        super().__init__(broker, session, seed)
        self.create, self.places = create, []

    def work(self, connection):
        serial = 0
        while not self.ended.is_set():
            topic = f"new-{self.session.name}-{serial}"
            self.create(connection, topic, serial)
            values = values_of(self.rng, self.session.name, serial)
            sent = self.session.write((topic, 0), values)
            self.places.append((topic, 0))
            answer = connection.produce(topic, 0,
                                        encode_batch([(now_ms(), None, v) for v in values]))
            if answer.error == 0:
                sent.ok(answer.base_offset)
            serial += 1
            time.sleep(0.05)


class Reader(Client):
    """Follows the end of some places."""

    def __init__(self, broker, session, seed, places):
        super().__init__(broker, session, seed)
        self.places = places

    def work(self, connection):
        positions = {p: connection.list_offset(*p, kafka_wire.LATEST).offset for p in self.places}
        while not self.ended.is_set():
            place = self.rng.choice(self.places)
            positions[place] = poll(connection, self.session, place, positions[place], 5)[0]


def poll(connection, session, place, position, max_wait_ms=0):
    """One fetch into the history; answers the next position and the last batch's epoch."""
    got = connection.fetch(*place, position, max_wait_ms=max_wait_ms)
    if got.error:
        raise ValueError(f"fetch of {place} at {position} answered {got.error}")
    records, epoch = [], None
    for batch in decode_batches(got.records):
        if batch.last_offset >= position:
            records += [(r.offset, r.value) for r in batch.records() if r.offset >= position]
            epoch = batch.leader_epoch
    session.poll(place, position, records)
    return (records[-1][0] + 1 if records else position), epoch


class Follower:
    """A consumer that outlives its broker's crashes: it remembers where it was and under which
    epoch, and asks for truncations as current clients do."""

    def __init__(self, history, place):
        self.session = history.session(f"follower-{place[0]}-{place[1]}")
        self.place, self.position, self.epoch = place, 0, None

    def catch_up(self, connection):
        if self.epoch is not None:
            error, epoch, end = connection.end_of_epoch(*self.place, self.epoch)
            if error:
                raise ValueError(f"end of epoch {self.epoch} of {self.place} answered {error}")
            if epoch != self.epoch or end < self.position:
                self.session.truncated(self.place, end)
                self.position = min(self.position, end)
        while True:
            position, epoch = poll(connection, self.session, self.place, self.position)
            if position == self.position:
                return
            self.position, self.epoch = position, epoch


class IdempotentWriter(threading.Thread):
    """Sends every batch until it is acknowledged, over as many connections as that takes."""

    def __init__(self, broker, session, seed, place, pause_s=0.0, flight=3):
        super().__init__(name=session.name, daemon=True)
        self.broker, self.session, self.rng = broker, session, random.Random(seed)
        self.place, self.pause_s, self.flight = place, pause_s, flight
        self.ended, self.problem = threading.Event(), None
        self.sequence, self.serial, self.waiting = 0, 0, []
        self.producer_id = None

    def run(self):
        self.answered_last = time.monotonic()
        while not self.ended.is_set() or self.waiting:
            try:
                with self.broker.connect(timeout=10) as connection:
                    if self.producer_id is None:
                        self.producer_id, self.epoch = connection.init_producer_id()
                    self.work(connection)
            except Refused as problem:
                self.problem = str(problem)
                return
            except GONE:
                if time.monotonic() > self.answered_last + 60:
                    self.problem = f"{self.name}: no answer for a minute"
                    return
                time.sleep(0.01)

    def work(self, connection):
        flying = [[item, self.send(connection, item)] for item in self.waiting]
        for item, _ in flying:
            item[0].retried()
        while flying or not self.ended.is_set():
            while len(flying) < self.flight and not self.ended.is_set():
                item = self.next_batch()
                self.waiting.append(item)
                flying.append([item, self.send(connection, item)])
                time.sleep(self.pause_s)
            if flying:
                item, correlation = flying.pop(0)
                self.answered(item, connection.receive_produce(correlation))
                self.waiting.remove(item)

    def next_batch(self):
        values = values_of(self.rng, self.session.name, self.serial)
        batch = encode_batch([(now_ms(), None, v) for v in values], self.rng.choice(CODECS),
                             producer_id=self.producer_id, producer_epoch=self.epoch,
                             base_sequence=self.sequence)
        self.sequence += len(values)
        self.serial += 1
        return self.session.write(self.place, values, idempotent=True), batch

    def send(self, connection, item):
        return connection.send_produce(*self.place, item[1])

    def answered(self, item, answer):
        self.answered_last = time.monotonic()
        if answer.error in kafka_wire.RETRIABLE:
            raise ConnectionError(f"answered {answer.error}")  # all in flight are sent again
        if answer.error == DUPLICATE_SEQUENCE:
            item[0].ok()
        elif answer.error != 0:
            raise Refused(f"{self.name} to {self.place}: a batch was answered {answer.error}")
        else:
            item[0].ok(answer.base_offset if answer.base_offset >= 0 else None)

    def stop(self, seconds=60):
        self.ended.set()
        self.join(seconds)
        if self.is_alive():
            self.problem = f"{self.name}: {len(self.waiting)} batches unanswered after {seconds} s"


class Refused(Exception):
    """An answer that an idempotent producer must never get."""
