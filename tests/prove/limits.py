"""Too few descriptors, and as few mappings as ever: at the open-file limit new work is refused
clearly, old partitions serve, nothing spins and nothing floods; all is well again when clients
leave. What is open does not grow with the number of partitions, and neither do mappings."""

import pathlib
import socket
import time

import scenario
from load import now_ms

import kafka_wire
from record_batch import encode_batch

FILES, CONNECTIONS, PARTITIONS = 256, 300, 50
MAPPINGS_MAX = 1000  # the kernel's own limit of 65,530 must be out of reach at any size


class Limits(scenario.Scenario):
    name = "limits"
    checks = (f"{FILES} descriptors under 450 partitions and {CONNECTIONS} connections: old "
              "partitions serve, creations whole or refused, no spin, no flood; few mappings, none "
              "of a data file")
    seconds = {"ci": 40, "long": 200}

    def run(self):
        broker = self.broker()
        broker.files_max = FILES
        self.start(broker)
        self.sessions = {}
        places = []
        with broker.connect(timeout=60) as connection:
            for n in range(self.size(3, 12)):
                for layout in scenario.LAYOUTS:
                    topic = f"many-{layout}-{n}"
                    self.create(connection, topic, PARTITIONS, layout)
                    places += [(topic, p) for p in range(PARTITIONS)]
            for place in places:
                self.write(connection, place)
            self.count("partitions", len(places))
            self.crowd(broker, connection, [*places[:2], places[70], places[-1]])
        with broker.connect(timeout=60) as connection:
            for place in places:
                self.write(connection, place)
            self.wide(broker, connection)
        mappings = pathlib.Path(f"/proc/{broker.pid}/maps").read_text().splitlines()
        self.figure("mappings", len(mappings))
        self.require(len(mappings) < MAPPINGS_MAX, f"{len(mappings)} mappings")
        # What is mapped could be cut short by somebody and kill the broker; what is read cannot.
        data = [line for line in mappings if f"{broker.data_dir}/" in line]
        self.require(data == [], f"files of the data folder are mapped: {data[:3]}")
        broker.stop()
        self.check_store(broker)
        self.start(broker)
        self.read_finals(broker, [*places, ("narrow", 0)])
        self.judge()

    def write(self, connection, place):
        session = self.sessions.setdefault(place, self.history.session(f"writer-{place}"))
        value = b"%s-%d %d" % (place[0].encode(), place[1], time.monotonic_ns())
        sent = session.write(place, [value])
        answer = connection.produce(*place, encode_batch([(now_ms(), None, value)]))
        self.require(answer.error == 0, f"a write to {place} was answered {answer.error}")
        if answer.error == 0:
            sent.ok(answer.base_offset)

    def wide(self, broker, connection):
        """A creation beyond the limit is done or refused whole, and the next one works."""
        error, _ = connection.create_topic("wide", 400)
        folders = list(broker.log_dir.glob("wide-*"))
        if error == 0:
            self.require(len(folders) == 400, f"{len(folders)} of 400 partitions were made")
        else:
            self.require(error in kafka_wire.RETRIABLE, f"a wide topic was answered {error}")
            self.require(folders == [], f"a refused topic left {len(folders)} folders")
        self.count("partitions of one topic made" if error == 0 else "refused creations")
        self.create(connection, "narrow", 1, "kafka")
        self.write(connection, ("narrow", 0))

    def crowd(self, broker, old, places):
        """More connections than descriptors, beside one that was there before."""
        logged = broker.output.stat().st_size
        links = []
        try:
            for _ in range(CONNECTIONS):
                links.append(socket.create_connection(("127.0.0.1", broker.port), 5))
            time.sleep(0.5)
            before = broker.cpu_seconds()
            time.sleep(2.0)
            busy = (broker.cpu_seconds() - before) / 2.0
            self.figure("CPU at the limit, %", round(busy * 100, 1))
            self.require(busy < 0.2, "the accept loop spins")
            for place in places:
                got = kafka_wire.read_records(old, *place)
                self.require(len(got) == 1, f"{place} reads as {len(got)} records")
                self.write(old, place)
        finally:
            for link in links:
                link.close()
        grown = broker.output.stat().st_size - logged
        self.require(grown < 64 << 10, f"the log grew by {grown} bytes")
        time.sleep(0.5)
