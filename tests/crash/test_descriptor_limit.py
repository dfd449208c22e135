"""BR-31: at the open-file limit new work is refused clearly, old partitions serve, nothing spins
and nothing floods; all is well again when clients leave."""

import socket
import time

import interop_path  # noqa: F401
import brokers
import kafka_wire
import testbed
from record_batch import encode_batch

FILES = 256
PARTITIONS = 400
CONNECTIONS = 300
NOW = int(time.time() * 1000)


class DescriptorLimit(testbed.BrokerTest):
    @classmethod
    def prepare(cls):
        if not brokers.is_kafka():
            cls.broker.files_max = FILES

    def write(self, connection, topic, partition):
        batch = encode_batch([(NOW, None, b"%d" % partition)])
        return connection.produce(topic, partition, batch).error

    def idle_cpu(self, seconds=2.0):
        before = self.broker.cpu_seconds()
        time.sleep(seconds)
        return (self.broker.cpu_seconds() - before) / seconds

    def test_many_partitions_and_connections(self):
        with self.broker.connect(timeout=60) as connection:
            self.assertEqual(connection.create_topic("many", PARTITIONS)[0], 0)
            errors = {p: self.write(connection, "many", p) for p in range(PARTITIONS)}
            self.assertEqual({e for e in errors.values()} - {0} - kafka_wire.RETRIABLE, set())
            self.assertEqual([p for p, e in errors.items() if e != 0], [], "not written")
            for partition in range(0, PARTITIONS, 7):
                records = kafka_wire.read_records(connection, "many", partition)
                self.assertEqual([r.value for r in records], [b"%d" % partition])
            self.crowd(connection)
        with self.broker.connect(timeout=60) as connection:
            for partition in range(PARTITIONS):
                self.assertEqual(self.write(connection, "many", partition), 0)
        self.broker.restart()
        with self.broker.connect(timeout=60) as connection:
            for partition in range(0, PARTITIONS, 13):
                self.assertEqual(len(kafka_wire.read_records(connection, "many", partition)), 2)

    def crowd(self, old):
        """More connections than descriptors, beside one that was there before."""
        logged = self.broker.output.stat().st_size
        links = []
        try:
            for _ in range(CONNECTIONS):
                links.append(socket.create_connection(("127.0.0.1", self.broker.port), 5))
            time.sleep(0.5)
            self.assertLess(self.idle_cpu(), 0.2, "the accept loop spins")
            for partition in (0, 1, PARTITIONS - 1):
                records = kafka_wire.read_records(old, "many", partition)
                self.assertEqual([r.value for r in records], [b"%d" % partition])
        finally:
            for link in links:
                link.close()
        self.assertLess(self.broker.output.stat().st_size - logged, 64 << 10, "the log is flooded")
        time.sleep(0.5)


if __name__ == "__main__":
    testbed.main()
