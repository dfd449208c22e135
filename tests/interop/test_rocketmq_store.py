"""polylog's shared commit log and RocketMQ's own message store on one directory: each reads what
the other wrote, after a clean stop and after kill -9, in turns; what RocketMQ rebuilds from our log
is what we had written."""

import re
import shutil
import time
import unittest
import zlib

import brokers
import dependencies
import kafka_wire
import rocketmq_store
import testbed
from record_batch import encode_batch
from rocketmq_store import RocketmqStore, Sizes, Store

SIZES = Sizes()
SETTINGS = {"polylog.layout": "rocketmq", "log.retention.hours": -1, **SIZES.polylog_settings()}
INTERNAL = re.compile(r"%RETRY%|%DLQ%|%LMQ%|rmq_sys_|SCHEDULE_TOPIC_XXXX|RMQ_SYS_")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def stored_topic(name):
    return name.replace("%", "%25").replace(".", "%2E")


def external_topic(stored):
    return stored.replace("%2E", ".").replace("%25", "%")


def as_kafka_sees(message):
    """(offset, time, key, value) of a RocketMQ message (record mapping, section 8)."""
    body = zlib.decompress(message.body) if message.sys_flag & 1 else message.body
    properties = message.properties()
    keys = properties.get("KEYS", "")
    key = properties.get("__SHARDINGKEY") or (keys if " " not in keys else "")
    return message.offset, message.born_timestamp, key.encode() or None, body


def leave_to_rebuild(store):
    """As after a crash that took all but the commit log: everything is to be derived again."""
    for name in ("consumequeue", "index"):
        shutil.rmtree(store / name)
    (store / "checkpoint").write_bytes(bytes(4096))
    (store / "abort").write_text("")


def start_again(broker):
    """Starts it on other ports: what runs in between may have been given the old ones."""
    broker.port, broker.http_port = brokers.free_port(), brokers.free_port()
    return broker.start()


class RocketmqTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = testbed.scratch_folder("RocketmqStore")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def original(self, jars):
        return RocketmqStore(jars, SIZES, self.folder / "runs")

    def with_each_version(self, check):
        for jars in dependencies.rocketmq():
            with self.subTest(jars.name):
                check(self.original(jars))

    def store(self, folder, closed=True, index_whole=True):
        """Reads the directory and expects no complaint."""
        store = Store(folder, SIZES, closed, index_whole)
        self.assertEqual(store.complaints[:20], [])
        return store

    def assert_original_reads(self, original, folder, index_whole=True):
        """RocketMQ opens it and finds, by every way, the messages that the log holds."""
        expected = Store(folder, SIZES, closed=False).visible()
        answer = original.read(folder)
        self.assertEqual(answer.complaints(index_whole)[:20], [])
        self.assertEqual({queue: [m["physical"] for m in messages]
                          for queue, messages in answer.by_queue().items()},
                         {queue: [m.physical for m in messages]
                          for queue, messages in expected.items()})
        return answer

    def assert_rebuilds_the_same(self, original, folder):
        """The queues byte for byte, the index by content, against a copy without either."""
        ours, copy = self.store(folder), folder.parent / f"{folder.name}-rebuilt"
        shutil.copytree(folder, copy)
        leave_to_rebuild(copy)
        original.run("rebuild", copy)
        theirs = self.store(copy)
        self.assertEqual(sorted(theirs.queues), sorted(ours.queues))
        for queue, stretch in ours.queues.items():
            self.assertEqual(theirs.queues[queue], stretch, queue)
        self.assertEqual([entry[:2] for entry in theirs.key_entries()],
                         [entry[:2] for entry in ours.key_entries()])
        shutil.rmtree(copy)


class OwnStores(RocketmqTest):
    """The tools themselves, on stores that only RocketMQ has touched."""

    def check(self, original):
        folder = self.folder / original.version
        puts = original.write(folder, rocketmq_store.scenario(1))
        store = self.store(folder)
        refused = [p["status"] for p in puts if p["status"] != "PUT_OK"]
        self.assertEqual(refused, ["PROPERTIES_SIZE_EXCEEDED"])
        by_place = {m.physical: m for m in store.messages}
        for line in puts:
            if line["status"] == "PUT_OK" and line["count"] == 1:
                message = by_place[line["physical"]]
                self.assertEqual((line["size"], line["stored"], line["id"]), (
                    message.size, message.store_timestamp, message.message_id()))
        self.assert_original_reads(original, folder)
        self.assert_rebuilds_the_same(original, folder)

    def test_reader_and_rocketmq_agree(self):
        self.with_each_version(self.check)

    def test_damage_is_complained_of(self):
        original = self.original(dependencies.rocketmq()[-1])
        folder = self.folder / "store"
        original.write(folder, rocketmq_store.scenario(1))
        log = "commitlog/00000000000000000000"
        index = next((folder / "index").iterdir()).relative_to(folder)
        slots_end = 40 + 4 * SIZES.index_slots
        for what, name, at in (("size", log, 3), ("body", log, 93), ("place", log, 35),
                               ("entry", "consumequeue/Many/0/00000000000000000000", 7),
                               ("tag", "consumequeue/Many/1/00000000000000000000", 39),
                               ("index hash", index, slots_end + 20 + 3),
                               ("index chain", index, slots_end + 20 * 300 + 19),
                               ("index count", index, 39), ("checkpoint", "checkpoint", 60)):
            with self.subTest(what):
                path = folder / name
                good = path.read_bytes()
                path.write_bytes(good[:at] + bytes([good[at] ^ 0x21]) + good[at + 1:])
                self.assertNotEqual(Store(folder, SIZES).complaints, [])
                path.write_bytes(good)
        self.store(folder)


class Workload:
    """Sends records of every kind over Kafka's protocol; knows what was acknowledged."""

    TOPICS = {"packages": 2, "dotted.name": 1, "shapes": 1, "edges": 1}

    def __init__(self, broker, create=True):
        self.broker, self.sent, self.round = broker, {}, 0
        if create:
            with broker.connect() as connection:
                for name, partitions in self.TOPICS.items():
                    error, message = connection.create_topic(name, partitions)
                    if error != 0:
                        raise ValueError(f"creating {name}: {error} {message}")

    def send(self, connection, topic, partition, records, codec="none"):
        answer = connection.produce(topic, partition, encode_batch(records, codec))
        if answer.error != 0:
            raise ValueError(f"Produce to {topic} answered {answer.error}")
        self.sent.setdefault((topic, partition), []).extend(
            (answer.base_offset + n, *record[:3]) for n, record in enumerate(records))

    def write(self, rounds):
        now = int(time.time() * 1000)
        with self.broker.connect() as connection:
            for _ in range(rounds):
                self.round += 1
                n, codec = self.round, CODECS[self.round % len(CODECS)]
                self.send(connection, "packages", n % 2, [
                    (now + k, b"key-%d" % (n % 50), b"%d/%d " % (n, k) * (1 + n * 7 % 90))
                    for k in range(1 + n % 5)], codec)
                self.send(connection, "dotted.name", 0, [(now, b"Aa" if n % 2 else b"BB",
                                                          b"v" * (n * 131 % 3000))])
            headers = (("h", b""), ("h", None), ("plain", b"text"), ("bin", b"\x00\xff"))
            self.send(connection, "shapes", 0, [
                (now, None, None), (now, b"", b""), (now, b"two words", None),
                (now, b"\x00\xff", b"v", headers), (now, None, b"v", (("rmq.tags", b"TagA"),))])

    def write_edges(self, store, edges=(7, 8, 9)):
        """Records whose size and `edge` bytes are exactly what is left of a commit log file."""
        now = int(time.time() * 1000)
        with self.broker.connect() as connection:
            for edge in edges:
                self.send(connection, "edges", 0, [(now, None, b"probe")])
                last = Store(store, SIZES, closed=False).messages[-1]
                fixed = last.size - len(b"probe")
                remaining = SIZES.log_bytes - (last.physical + last.size) % SIZES.log_bytes
                body = remaining - 2 * fixed - 10 - edge
                if body < 0:
                    raise ValueError("too near to a file's end; write more before")
                self.send(connection, "edges", 0, [(now, None, b"f" * body)])
                self.send(connection, "edges", 0, [(now, None, b"e" * 10)])
                self.send(connection, "edges", 0, [(now, None, b"next")])


class WrittenByPolylog(RocketmqTest):
    def fill(self, clean):
        broker = brokers.PolylogBroker(self.folder / "data", SETTINGS)
        self.addCleanup(broker.close)
        broker.start()
        workload, store = Workload(broker), broker.data_dir / "rocketmq"
        workload.write(testbed.size(60, 600))
        workload.write_edges(store)
        broker.kill9()
        start_again(broker)
        workload.write(testbed.size(60, 600))
        broker.stop() if clean else broker.kill9()
        return broker, workload, store

    def assert_all_there(self, answer, workload):
        found = {queue: [(m["offset"], m["bornTimestamp"], rocketmq_store.decoded_body(m))
                         for m in messages] for queue, messages in answer.by_queue().items()}
        for (topic, partition), records in workload.sent.items():
            self.assertEqual(found[stored_topic(topic), partition],
                             [(offset, born, value or b"") for offset, born, _, value in records])

    def assert_edges(self, store):
        """The test reached what it was to reach: a record that just fits, one that does not."""
        left = {SIZES.log_bytes - (m.physical + m.size) % SIZES.log_bytes
                for m in Store(store, SIZES, closed=False).messages if m.body == b"e" * 10}
        self.assertLessEqual({8, 9}, left)
        rolled = [m for m in Store(store, SIZES, closed=False).messages
                  if m.body == b"e" * 10 and m.physical % SIZES.log_bytes == 0]
        self.assertEqual(len(rolled), 1)

    def check(self, clean):
        broker, workload, store = self.fill(clean)
        self.store(store, closed=clean)
        self.assert_edges(store)

        def check_version(original):
            copy = self.folder / f"copy-{original.version}"
            shutil.copytree(store, copy)
            # After a kill RocketMQ makes the index again from where its own rules begin.
            answer = self.assert_original_reads(original, copy, index_whole=clean)
            self.assert_all_there(answer, workload)
            self.store(copy, index_whole=clean)
            if clean:
                self.assert_rebuilds_the_same(original, store)

        self.with_each_version(check_version)
        start_again(broker)
        with broker.connect() as connection:
            for (topic, partition), records in workload.sent.items():
                got = kafka_wire.read_records(connection, topic, partition)
                self.assertEqual([(r.offset, r.timestamp, r.key, r.value) for r in got], records)
        broker.stop()

    def test_after_a_clean_stop(self):
        self.check(clean=True)

    def test_after_kill_9(self):
        self.check(clean=False)


class WrittenByRocketmq(RocketmqTest):
    def serve(self, folder):
        broker = brokers.PolylogBroker(folder, SETTINGS)
        self.addCleanup(broker.close)
        return broker.start()

    def assert_serves(self, broker, visible, sent=()):
        with broker.connect() as connection:
            for (topic, queue), records in dict(sent).items():
                got = kafka_wire.read_records(connection, topic, queue)
                self.assertEqual([(r.offset, r.timestamp, r.key, r.value) for r in got], records)
            for (stored, queue), messages in visible.items():
                topic = external_topic(stored)
                if INTERNAL.match(stored) or topic in Workload.TOPICS:
                    continue
                got = kafka_wire.read_records(connection, topic, queue)
                self.assertEqual([(r.offset, r.timestamp, r.key, r.value) for r in got],
                                 [as_kafka_sees(m) for m in messages], f"{topic}-{queue}")

    def check(self, original, end):
        data = self.folder / f"{original.version}-{end}"
        store = data / "rocketmq"
        data.mkdir()
        original.write(store, rocketmq_store.scenario(1), "--end", end)
        visible = Store(store, SIZES, closed=False).visible()
        broker = self.serve(data)
        self.assert_serves(broker, visible)
        workload = Workload(broker)
        workload.write(20)
        broker.stop()
        self.store(store)
        self.assert_original_reads(original, store)
        more = original.write(store, rocketmq_store.scenario(2), "--end", end)
        self.assertEqual([p["status"] for p in more if p["status"] != "PUT_OK"],
                         ["PROPERTIES_SIZE_EXCEEDED"])
        start_again(broker)
        for _ in range(2):
            visible = Store(store, SIZES, closed=False).visible()
            self.assert_serves(broker, visible, workload.sent)
            broker.kill9()
            start_again(broker)
        broker.stop()
        self.store(store)

    def test_after_a_clean_stop(self):
        self.with_each_version(lambda original: self.check(original, "shutdown"))

    def test_polylog_rebuilds_the_same(self):
        """Queues byte for byte and the index, from RocketMQ's commit log alone."""
        original, data = self.original(dependencies.rocketmq()[-1]), self.folder / "rebuilt"
        data.mkdir()
        original.write(data / "rocketmq", rocketmq_store.scenario(1))
        theirs = self.store(data / "rocketmq")
        leave_to_rebuild(data / "rocketmq")
        self.serve(data).stop()
        ours = self.store(data / "rocketmq")
        self.assertEqual(ours.queues, theirs.queues)
        self.assertEqual([entry[:2] for entry in ours.key_entries()],
                         [entry[:2] for entry in theirs.key_entries()])

    def test_after_a_halt(self):
        self.with_each_version(lambda original: self.check(original, "halt"))


class Turns(RocketmqTest):
    """Both on one directory in turns, killed in the middle of their work."""

    def setUp(self):
        super().setUp()
        self.broker = brokers.PolylogBroker(self.folder / "data", SETTINGS)
        self.addCleanup(self.broker.close)
        self.broker.start()
        self.workload = Workload(self.broker)
        self.broker.stop()
        self.store_folder = self.broker.data_dir / "rocketmq"
        self.bodies = {}  # what must be there: (stored topic, queue) -> bodies

    def take_stock(self, closed, spare):
        """All that was there before and all acknowledged since; at most `spare` more."""
        now = {queue: [m.body for m in messages]
               for queue, messages in
               self.store(self.store_folder, closed, index_whole=False).visible().items()}
        more = 0
        for queue, bodies in self.bodies.items():
            self.assertEqual(now.get(queue, [])[:len(bodies)], bodies, queue)
        for queue, bodies in now.items():
            more += len(bodies) - len(self.bodies.get(queue, []))
        self.assertLessEqual(more, spare)
        self.bodies = now

    def polylog_turn(self, kill):
        start_again(self.broker)
        before = {queue: len(records) for queue, records in self.workload.sent.items()}
        self.workload.write(15)
        for (topic, partition), records in self.workload.sent.items():
            self.bodies.setdefault((stored_topic(topic), partition), []).extend(
                value or b"" for _, _, _, value in records[before.get((topic, partition), 0):])
        self.broker.kill9() if kill else self.broker.stop()
        self.take_stock(closed=not kill, spare=0)

    def rocketmq_turn(self, original, kill, number):
        spec = [rocketmq_store.put("packages", b"turn %d.%d " % (number, n) * (1 + n % 40), n % 2,
                                   properties={"KEYS": f"turn{number} n{n % 17}"})
                for n in range(20_000 if kill else 300)]
        run = original.start("write", self.store_folder, spec=spec)
        if kill:
            until = time.monotonic() + rocketmq_store.START_SECONDS
            while len(run.lines()) < 150 and time.monotonic() < until:
                time.sleep(0.01)
            run.kill9()
        else:
            run.wait()
        put = [line for line in run.lines() if "put" in line]
        self.assertGreater(len(put), 100, run.tail())
        self.assertEqual({line["status"] for line in put}, {"PUT_OK"})
        for line, asked in zip(put, spec):
            body = rocketmq_store.decoded_body(asked)
            self.bodies.setdefault((line["topic"], line["queue"]), []).append(body)
        self.take_stock(closed=not kill, spare=1 if kill else 0)

    def test_turns(self):
        versions = dependencies.rocketmq()
        self.polylog_turn(kill=False)
        for number, (theirs, ours) in enumerate(((False, False), (True, False), (False, True),
                                                 (True, True), (True, True), (False, False))):
            original = self.original(versions[-1 - number % len(versions)])
            with self.subTest(turn=number, version=original.version, theirs_killed=theirs,
                              ours_killed=ours):
                self.rocketmq_turn(original, theirs, number)
                self.polylog_turn(ours)
        self.assert_original_reads(self.original(versions[-1]), self.store_folder,
                                   index_whole=False)


if __name__ == "__main__":
    testbed.main()
