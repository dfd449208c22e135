"""The Java client's ordinary producer and group consumers over a real text, while the broker is
killed with -9 five times and started again on the same directory: committed offsets never go
back, every line is stored once and consumed, none is lost."""

import time

import kafka_wire
import matrix
import matrix_cells
import sample_text
import testbed

LINES = 50_000
LINES_PER_SECOND = 2500
KILLS = 5
JAVA = matrix.CLIENTS["java-4"]


class Soak(testbed.BrokerTest):
    settings = matrix_cells.SETTINGS

    @classmethod
    def prepare(cls):
        cls.text = cls.folder / "text"
        cls.lines = sample_text.sample_lines(LINES * 70).decode(errors="replace")
        # Java ends a line at a carriage return as well.
        cls.lines = cls.lines.replace("\r", "").splitlines()[:LINES]
        cls.lines = [line for line in cls.lines if line.isprintable()]
        cls.text.write_text("\n".join(cls.lines) + "\n")
        cls.bench = matrix_cells.Bench(cls.broker, cls.folder / "programs")
        cls.addClassCleanup(cls.bench.end_programs)

    def test_classic_group(self):
        self.soak("classic")

    def test_kip848_group(self):
        self.soak("consumer")

    def soak(self, protocol):
        group = matrix_cells.Group(self.bench, JAVA, f"soak-{protocol}", protocol)
        members = [group.join(), group.join()]
        producer = matrix_cells.Program(
            self.bench, JAVA, "lines", topic=group.topic, partitions=matrix_cells.PARTITIONS,
            file=self.text, rate=LINES_PER_SECOND)
        total = 0
        for kill in range(KILLS):
            due = (kill + 1) * len(self.lines) // (KILLS + 1)
            self.wait("the producer goes on", lambda due=due: self.sent(producer) >= due, producer)
            self.wait("the group goes on", lambda total=total:
                      sum(group.offsets().values()) > total, producer)
            self.broker.kill9()
            time.sleep(0.3)
            self.broker.start()
            committed = group.offsets()
            total = sum(committed.values())
            print(f"{protocol}: kill {kill + 1} of {KILLS}, committed {committed}", flush=True)
        self.wait("every line is acknowledged", lambda: producer.process.poll() is not None,
                  producer)
        self.assertEqual(producer.finish()["count"], len(self.lines))
        expected = self.stored(group.topic)
        self.wait("every line is consumed",
                  lambda: sum(len(m.records()) for m in members) >= len(self.lines)
                  and expected <= self.consumed(members))
        for member in members:
            member.leave()
        self.assertEqual(self.consumed(members) - expected, set(), "lines nobody wrote")
        ends = {p: sum(1 for place, _, _ in expected if place == p)
                for p in range(matrix_cells.PARTITIONS)}
        self.assertEqual(group.offsets(), ends)
        again = sum(len(m.records()) for m in members) - len(self.lines)
        print(f"{protocol}: {len(self.lines)} lines, {again} consumed again", flush=True)

    def sent(self, producer):
        return max(producer.told("sent"), default=0)

    def consumed(self, members):
        return {record for member in members for record in member.records()}

    def stored(self, topic):
        """What the log holds: every line once, in order, as the producer is an idempotent one."""
        found = set()
        with self.broker.connect() as connection:
            for partition in range(matrix_cells.PARTITIONS):
                records = kafka_wire.read_records(connection, topic, partition)
                numbers = [int(r.key) for r in records]
                self.assertEqual(
                    numbers, list(range(partition, len(self.lines), matrix_cells.PARTITIONS)),
                    f"partition {partition} does not hold its lines once and in order")
                for record, number in zip(records, numbers):
                    self.assertEqual(record.value.decode(), self.lines[number])
                    found.add((partition, record.offset, self.lines[number]))
        return found

    def wait(self, what, condition, producer=None, seconds=150):
        until = time.monotonic() + seconds
        while not condition():
            if producer is not None and producer.process.poll() not in (None, 0):
                self.fail(f"the producer failed: {producer.complaint()}")
            if time.monotonic() > until:
                parts = "\n".join(p.complaint() for p in self.bench.programs)
                self.fail(f"not in {seconds} s: {what}\n{parts}")
            time.sleep(0.2)


if __name__ == "__main__":
    testbed.main()
