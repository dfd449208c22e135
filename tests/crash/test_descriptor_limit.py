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

    def write(self, connection, place):
        batch = encode_batch([(NOW, None, b"%s-%d" % (place[0].encode(), place[1]))])
        return connection.produce(*place, batch).error

    def assert_holds(self, connection, place, count=1):
        values = [record.value for record in kafka_wire.read_records(connection, *place)]
        self.assertEqual(values, [b"%s-%d" % (place[0].encode(), place[1])] * count)

    def idle_cpu(self, seconds=2.0):
        before = self.broker.cpu_seconds()
        time.sleep(seconds)
        return (self.broker.cpu_seconds() - before) / seconds

    def test_many_partitions_and_connections(self):
        places = [(f"many-{n}", p) for n in range(PARTITIONS // 50) for p in range(50)]
        with self.broker.connect(timeout=60) as connection:
            for topic in sorted({topic for topic, _ in places}):
                self.assertEqual(connection.create_topic(topic, 50)[0], 0, self.broker.tail())
            refused = {place: error for place in places
                       if (error := self.write(connection, place)) != 0}
            self.assertEqual(refused, {})
            for place in places[::7]:
                self.assert_holds(connection, place)
            self.crowd(connection, places[:2] + places[-1:])
        with self.broker.connect(timeout=60) as connection:
            for place in places:
                self.assertEqual(self.write(connection, place), 0)
        self.broker.restart()
        with self.broker.connect(timeout=60) as connection:
            for place in places[::13]:
                self.assert_holds(connection, place, 2)

    def test_one_creation_beyond_the_limit_is_done_or_refused_whole(self):
        with self.broker.connect(timeout=60) as connection:
            error, _ = connection.create_topic("wide", PARTITIONS)
            folders = list(self.broker.log_dir.glob("wide-*"))
            if error == 0:
                self.assertEqual(len(folders), PARTITIONS)
            else:
                self.assertIn(error, kafka_wire.RETRIABLE)
                self.assertEqual(folders, [])
                self.assertNotIn("wide", connection.metadata(None))
            # Whatever the answer, the next topic is made and written.
            self.assertEqual(connection.create_topic("narrow")[0], 0, self.broker.tail())
            self.assertEqual(self.write(connection, ("narrow", 0)), 0)

    def crowd(self, old, places):
        """More connections than descriptors, beside one that was there before."""
        logged = self.broker.output.stat().st_size
        links = []
        try:
            for _ in range(CONNECTIONS):
                links.append(socket.create_connection(("127.0.0.1", self.broker.port), 5))
            time.sleep(0.5)
            self.assertLess(self.idle_cpu(), 0.2, "the accept loop spins")
            for place in places:
                self.assert_holds(old, place)
        finally:
            for link in links:
                link.close()
        self.assertLess(self.broker.output.stat().st_size - logged, 64 << 10, "the log is flooded")
        time.sleep(0.5)


if __name__ == "__main__":
    testbed.main()
