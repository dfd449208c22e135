"""Stock clients that produce and consume on assigned partitions: each reads what each wrote.

Groups belong to another test: consumers here are given their partitions.
"""

import clients
import testbed

CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
COUNT = 500


def kafkajs_values():
    return [f"kafkajs {n} {'x' * (n % 50)}".encode() for n in range(COUNT)]


class Clients(testbed.BrokerTest):
    def read_with_kcat(self, topic):
        return clients.kcat_consume(self.broker, topic).splitlines()

    def read_with_kafka_python(self, topic, count):
        return [m.value for m in clients.python_read(self.broker, topic, count)]

    def read_with_console_consumer(self, topic, count):
        text = clients.java_output(
            CONSOLE_CONSUMER, "--bootstrap-server", self.broker.address, "--topic", topic,
            "--partition", 0, "--offset", "earliest", "--max-messages", count,
            "--timeout-ms", 20000)
        return text.encode().splitlines()

    def assert_read_by_all(self, topic, expected):
        self.assertEqual(self.read_with_kcat(topic), expected, "kcat")
        got = self.read_with_kafka_python(topic, len(expected))
        self.assertEqual(got, expected, "kafka-python")

    def test_kafkajs_produces_every_codec_it_has(self):
        for codec in ("none", "gzip", "snappy", "lz4"):
            with self.subTest(codec=codec):
                topic = f"js-{codec}"
                answer = clients.node("peer.js", self.broker.port, "produce", topic, codec, COUNT)
                told = [(a["partition"], a["errorCode"], a["baseOffset"]) for a in answer]
                self.assertEqual(told, [(0, 0, "0")])
                self.assert_read_by_all(topic, kafkajs_values())

    def test_kafka_python_produces_every_codec(self):
        expected = [b"python %d %s" % (n, b"y" * (n % 90)) for n in range(COUNT)]
        for codec in (None, "gzip", "snappy", "lz4", "zstd"):
            with self.subTest(codec=codec):
                topic = f"py-{codec}"
                producer = clients.python_producer(self.broker, compression_type=codec, acks="all",
                                                   linger_ms=20)
                sent = [producer.send(topic, value, partition=0) for value in expected]
                offsets = [future.get(30).offset for future in sent]
                producer.close()
                self.assertEqual(offsets, list(range(COUNT)))
                self.assert_read_by_all(topic, expected)

    def test_java_console_producer_writes_and_console_consumer_reads(self):
        expected = [b"console %d" % n for n in range(COUNT)]
        for codec in ("none", "zstd"):
            with self.subTest(codec=codec):
                topic = f"java-{codec}"
                clients.java(CONSOLE_PRODUCER, "--bootstrap-server", self.broker.address,
                             "--topic", topic, "--compression-codec", codec,
                             given=b"\n".join(expected) + b"\n")
                self.assert_read_by_all(topic, expected)
                self.assertEqual(self.read_with_console_consumer(topic, COUNT), expected)

    def test_console_consumer_reads_from_a_given_offset(self):
        topic = self.topic("from-offset")
        lines = b"".join(b"%d\n" % n for n in range(100))
        clients.kcat(self.broker, "-P", "-t", topic, given=lines)
        text = clients.java_output(
            CONSOLE_CONSUMER, "--bootstrap-server", self.broker.address, "--topic", topic,
            "--partition", 0, "--offset", 90, "--max-messages", 10, "--timeout-ms", 20000)
        self.assertEqual(text.split(), [str(n) for n in range(90, 100)])

    def test_console_consumer_reads_what_kafkajs_wrote(self):
        clients.node("peer.js", self.broker.port, "produce", "js-java", "snappy", COUNT)
        self.assertEqual(self.read_with_console_consumer("js-java", COUNT), kafkajs_values())

    def test_kafka_python_seeks_by_time_and_to_the_end(self):
        topic = self.topic("python-seek")
        producer = clients.python_producer(self.broker)
        for n in range(10):
            producer.send(topic, b"%d" % n, partition=0, timestamp_ms=1000 + n * 10)
        producer.close()
        consumer = clients.python_consumer(self.broker, topic)
        (where,) = consumer.assignment()
        found = consumer.offsets_for_times({where: 1045})[where]
        self.assertEqual((found.offset, found.timestamp), (5, 1050))
        self.assertEqual(consumer.end_offsets([where])[where], 10)
        self.assertEqual(consumer.beginning_offsets([where])[where], 0)
        consumer.close()


if __name__ == "__main__":
    testbed.main()
