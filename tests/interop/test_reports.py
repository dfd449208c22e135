"""Public bug reports a Kafka client can meet in ordinary use, each test named after its report."""

import json
import struct
import time

import brokers
import clients
import kafka_wire
import testbed
from record_batch import encode_batch

NOW = int(time.time() * 1000)
DAY = 86_400_000


class Times(testbed.BrokerTest):
    """BR-07, BR-09, BR-11."""

    settings = {"log.retention.hours": -1, "log.retention.check.interval.ms": 300}
    if brokers.is_kafka():
        settings["log.initial.task.delay.ms"] = 100

    def test_br07_largest_timestamp_inside_a_batch(self):
        topics = []
        for codec in ("none", "gzip", "snappy", "lz4"):
            topic = self.topic(f"br07-js-{codec}")
            messages = json.dumps([{"value": str(t), "timestamp": str(t)} for t in (10, 30, 20)])
            clients.node("peer.js", self.broker.port, "batch", topic, codec, messages)
            topics.append(topic)
        with self.connect() as connection:
            for codec in ("none", "zstd"):
                topic = self.topic(f"br07-raw-{codec}")
                # The header's maxTimestamp is wrong on purpose: the broker corrects it.
                records = [(t, None, b"x") for t in (10, 30, 20)]
                batch = encode_batch(records, codec, max_timestamp=20)
                self.assertEqual(connection.produce(topic, 0, batch).error, 0)
                topics.append(topic)
        for step in ("fresh", "restarted", "killed", "without time index"):
            for topic in topics:
                with self.subTest(step=step, topic=topic), self.connect() as connection:
                    got = connection.list_offset(topic, 0, kafka_wire.MAX_TIMESTAMP)
                    self.assertEqual(got[:3], (0, 30, 1))
                    self.assertEqual(connection.list_offset(topic, 0, 11).offset, 1)
            self.damage(step, topics)

    def damage(self, step, topics):
        if step == "fresh":
            self.broker.restart()
        elif step == "restarted":
            self.broker.kill9()
            self.broker.start()
        elif step == "killed":
            self.broker.stop()
            # Kafka does not rebuild a time index after a clean stop; after an unclean one it does.
            if brokers.is_kafka():
                (self.broker.log_dir / ".kafka_cleanshutdown").unlink()
            for topic in topics:
                for path in (self.broker.log_dir / f"{topic}-0").glob("*.timeindex"):
                    path.unlink()
            self.broker.start()

    def query(self, topic, timestamp):
        text = clients.kcat(self.broker, "-Q", "-t", f"{topic}:0:{timestamp}").decode()
        return int(text.split()[-1])

    def test_br09_times_between_before_and_after_the_records(self):
        topic = self.topic("br09")
        with self.connect() as connection:
            for stamp in (2, 4, 6, 8):
                connection.produce(topic, 0, encode_batch([(stamp, None, b"x")]))
            expected = dict(zip(range(1, 10), (0, 0, 1, 1, 2, 2, 3, 3, -1)))
            for stamp, offset in expected.items():
                with self.subTest(timestamp=stamp):
                    self.assertEqual(self.query(topic, stamp), offset)
            self.assertEqual(connection.list_offset(topic, 0, 9)[:3], (0, -1, -1))
            self.assertEqual(connection.delete_records(topic, 0, 4), (0, 4))
            for stamp in (1, 8, 9):
                with self.subTest(timestamp=stamp, records="none left"):
                    self.assertEqual(self.query(topic, stamp), -1)
                    self.assertEqual(connection.list_offset(topic, 0, stamp)[:3], (0, -1, -1))
            if not brokers.is_kafka():  # Kafka names a record below its own log start here
                got = connection.list_offset(topic, 0, kafka_wire.MAX_TIMESTAMP)
                self.assertEqual(got[:3], (0, -1, -1))

    def test_br11_a_timestamp_years_ahead_is_refused(self):
        topic = self.topic("br11")
        with self.connect() as connection:
            for ahead in (10 * 365 * DAY, 2 * 3_600_000):
                answer = connection.produce(topic, 0, encode_batch([(NOW + ahead, None, b"x")]))
                self.assertEqual(answer.error, kafka_wire.INVALID_TIMESTAMP)
            now = connection.produce(topic, 0, encode_batch([(NOW, None, b"x")]))
            self.assertEqual(now[:2], (0, 0))

    def test_br11_timestamps_of_none_and_zero_do_not_stop_retention(self):
        for stamp in (-1, 0):
            with self.subTest(timestamp=stamp), self.connect() as connection:
                topic = self.topic(f"br11-old-{abs(stamp)}", configs={
                    "retention.ms": 1500, "internal.segment.bytes": 20000,
                    "file.delete.delay.ms": 0})
                for number in range(40):
                    when = stamp if number == 3 else int(time.time() * 1000)
                    connection.produce(topic, 0, encode_batch([(when, None, bytes(2000))]))
                until = time.monotonic() + 20
                while connection.list_offset(topic, 0, -2).offset < 20:
                    self.assertLess(time.monotonic(), until, "retention is stuck")
                    time.sleep(0.2)


class Idempotence(testbed.BrokerTest):
    """BR-15, BR-17."""

    def send(self, connection, topic, producer, sequence, count, epoch=0):
        batch = encode_batch([(NOW, None, b"%d" % (sequence + n)) for n in range(count)], "none",
                             producer, epoch, sequence)
        return connection.produce(topic, 0, batch)[:2]

    def test_br15_a_retry_is_answered_with_the_original_offset(self):
        topic = self.topic("br15")
        with self.connect() as connection:
            producer, _ = connection.init_producer_id()
            sent = [(self.send(connection, topic, producer, n * 2, 2), n * 2) for n in range(8)]
            self.assertEqual(sent, [((0, n * 2), n * 2) for n in range(8)])
            for sequence in (6, 8, 10, 12, 14):  # the last five are remembered
                self.assertEqual(self.send(connection, topic, producer, sequence, 2), (0, sequence))
            self.assertEqual(self.send(connection, topic, producer, 20, 2)[0],
                             kafka_wire.OUT_OF_ORDER_SEQUENCE)
        for step in ("kill9", "restart"):
            if step == "kill9":
                self.broker.kill9()
                self.broker.start()
            else:
                self.broker.restart()
            with self.subTest(step), self.connect() as connection:
                connection.wait_for_topic(topic)
                self.assertEqual(self.send(connection, topic, producer, 14, 2), (0, 14))
                self.assertEqual(connection.list_offset(topic, 0, -1).offset, 16)
                self.assertEqual(self.send(connection, topic, producer, 18, 2)[0],
                                 kafka_wire.OUT_OF_ORDER_SEQUENCE)

    def test_br15_retries_in_flight_together(self):
        topic = self.topic("br15-pipelined")
        with self.connect() as connection:
            producer, epoch = connection.init_producer_id()
            batches = [encode_batch([(NOW, None, b"x")], "none", producer, epoch, n)
                       for n in range(5)]
            waiting = [connection.send_produce(topic, 0, batch) for batch in batches + batches]
            answers = [connection.receive_produce(correlation)[:2] for correlation in waiting]
            self.assertEqual(answers, [(0, n) for n in range(5)] * 2)

    def test_br17_the_sequence_wraps(self):
        topic = self.topic("br17")
        last = 2**31 - 1
        plans = (((last - 1, 2), (0, 2)), ((last - 1, 3), (1, 1)))
        offset = 0
        for number, plan in enumerate(plans):
            with self.connect() as connection:
                producer, _ = connection.init_producer_id()
                for sequence, count in plan:
                    with self.subTest(plan=number, sequence=sequence):
                        for _ in ("first", "resent"):
                            answer = self.send(connection, topic, producer, sequence, count)
                            self.assertEqual(answer, (0, offset))
                    offset += count
            self.broker.restart()
            with self.subTest(plan=number, step="restarted"), self.connect() as connection:
                connection.wait_for_topic(topic)
                self.assertEqual(self.send(connection, topic, producer, sequence, count),
                                 (0, offset - count))
                following = sequence + count
                self.assertEqual(self.send(connection, topic, producer, following, 1), (0, offset))
                offset += 1


class Shapes(testbed.BrokerTest):
    """BR-26."""

    def test_br26_empty_and_null_stay_apart(self):
        topic = self.topic("br26")
        for given, options in ((b":\n", ()), (b":\n", ("-Z",)), (b"k:\n", ("-Z",))):
            clients.kcat(self.broker, "-P", "-t", topic, "-K:", *options, given=given)
        for step in ("fresh", "restarted", "killed"):
            with self.subTest(step):
                text = clients.kcat_consume(self.broker, topic, layout="%K %S\n").decode()
                self.assertEqual(text.splitlines(), ["0 0", "-1 -1", "1 -1"])
                if step == "fresh":
                    self.broker.restart()
                elif step == "restarted":
                    self.broker.kill9()
                    self.broker.start()

    def test_br26_headers_keep_order_repeats_and_nulls(self):
        topic = self.topic("br26-headers")
        headers = (("a", b""), ("a", None), ("", b"1"), ("b", b"\x00\xff"), ("a", b"last"))
        with self.connect() as connection:
            connection.produce(topic, 0, encode_batch([(NOW, b"", None, headers)]))
            (record,) = kafka_wire.read_records(connection, topic)
            self.assertEqual((record.key, record.value, record.headers), (b"", None, headers))


class Names(testbed.BrokerTest):
    """BR-33."""

    def folders(self):
        return [path.name for path in self.broker.log_dir.iterdir() if path.is_dir()]

    def test_br33_names_at_the_limit(self):
        longest = "d" * 249
        with self.connect() as connection:
            self.assertEqual(connection.create_topic(longest, 2)[0], 0)
            for length in (250, 255, 1000):
                self.assertEqual(connection.create_topic("e" * length)[0], kafka_wire.INVALID_TOPIC)
                found = connection.metadata(["f" * length], create=True)
                self.assertEqual([t.error for t in found.values()], [kafka_wire.INVALID_TOPIC])
            for name in (".", "..", "", "a/b", "a b", "a\x00b", "ä"):
                with self.subTest(name=name):
                    self.assertEqual(connection.create_topic(name)[0], kafka_wire.INVALID_TOPIC)
        done = clients.kcat(self.broker, "-P", "-t", "g" * 250, "-X", "message.timeout.ms=3000",
                            given=b"x\n", check=False)
        self.assertNotEqual(done.returncode, 0)
        clients.kcat(self.broker, "-P", "-t", "h" * 249, given=b"auto\n")
        clients.kcat(self.broker, "-P", "-t", longest, "-p", 1, given=b"made\n")
        expected = {f"{longest}-0", f"{longest}-1", f"{'h' * 249}-0"}
        for step in ("fresh", "restarted"):
            with self.subTest(step):
                self.assertEqual(set(self.folders()), expected)
                self.assertEqual(clients.kcat_consume(self.broker, longest, partition=1), b"made\n")
                self.assertEqual(clients.kcat_consume(self.broker, "h" * 249), b"auto\n")
                self.broker.restart()

    def test_names_that_differ_by_dot_and_underscore_collide(self):
        with self.connect() as connection:
            self.assertEqual(connection.create_topic("same.name")[0], 0)
            self.assertEqual(connection.create_topic("same_name")[0], kafka_wire.INVALID_TOPIC)
            self.assertEqual(connection.delete_topic("same.name"), 0)


class Produce(testbed.BrokerTest):
    """What Kafka refuses, and for that partition only."""

    def test_bad_batches_are_refused_for_their_partition(self):
        topic = self.topic("refused", 2)
        good = [(NOW, None, b"v")]
        cases = {
            "bad CRC": (encode_batch(good, crc=1), {kafka_wire.CORRUPT_MESSAGE}),
            "base offset": (encode_batch(good, base_offset=7), {kafka_wire.INVALID_RECORD}),
            "count": (encode_batch(good, count=2), {kafka_wire.INVALID_RECORD,
                                                    kafka_wire.CORRUPT_MESSAGE}),
            "control": (encode_batch(good, attributes=0x20), {kafka_wire.INVALID_RECORD}),
            "two batches": (encode_batch(good) * 2, {kafka_wire.INVALID_RECORD}),
            "empty": (b"", {kafka_wire.INVALID_RECORD}),
            "too large": (encode_batch([(NOW, None, bytes(2 << 20))]),
                          {kafka_wire.MESSAGE_TOO_LARGE}),
        }
        with self.connect() as connection:
            for what, (batch, errors) in cases.items():
                with self.subTest(what):
                    self.assertIn(connection.produce(topic, 0, batch).error, errors)
            self.assertEqual(connection.produce(topic, 1, encode_batch(good))[:2], (0, 0))
            self.assertEqual(connection.list_offset(topic, 0, -1).offset, 0)

    def test_required_acks_and_replicas(self):
        topic = self.topic("acks")
        strict = self.topic("strict", configs={"min.insync.replicas": 2})
        batch = encode_batch([(NOW, None, b"v")])
        with self.connect() as connection:
            self.assertEqual(connection.produce(topic, 0, batch, acks=2).error, 21)
            # One replica: the effective minimum is never above the replica count.
            self.assertIn(connection.produce(strict, 0, batch, acks=-1).error,
                          {0, kafka_wire.NOT_ENOUGH_REPLICAS})
            self.assertEqual(connection.produce(strict, 0, batch, acks=1).error, 0)
            error, _ = connection.create_topic("copies", replication=3)
            self.assertEqual(error, kafka_wire.INVALID_REPLICATION_FACTOR)

    def test_pipelined_requests_are_answered_in_order(self):
        topic = self.topic("pipelined")
        with self.connect() as connection:
            waiting = []
            for number in range(60):
                acks = (0, 1, -1)[number % 3]
                correlation = connection.send_produce(
                    topic, 0, encode_batch([(NOW, None, b"%d" % number)]), acks)
                if acks != 0:
                    waiting.append((correlation, number))
            for correlation, number in waiting:
                self.assertEqual(connection.receive_produce(correlation)[:2], (0, number))
            values = [record.value for record in kafka_wire.read_records(connection, topic)]
            self.assertEqual(values, [b"%d" % n for n in range(60)])

    def test_a_failed_acks_0_produce_closes_the_connection(self):
        with self.connect() as connection:
            connection.produce("no-such-topic", 0, encode_batch([(NOW, None, b"x")]), acks=0)
            with self.assertRaises((ConnectionError, struct.error)):
                connection.receive_frame()


if __name__ == "__main__":
    testbed.main()
