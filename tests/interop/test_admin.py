"""Kafka's own Java command line tools against the broker: TopicCommand, GetOffsetShell,
DeleteRecordsCommand."""

import json

import clients
import testbed

TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"


class Admin(testbed.BrokerTest):
    settings = {"log.retention.hours": -1}

    def topics(self, *arguments, **options):
        return clients.java(TOPIC_COMMAND, "--bootstrap-server", self.broker.address, *arguments,
                            **options)

    def offsets(self, topic, time):
        text = clients.java_output(GET_OFFSETS, "--bootstrap-server", self.broker.address,
                                   "--topic", topic, "--time", time)
        found = {}
        for line in text.splitlines():
            _, partition, offset = line.split(":")
            found[int(partition)] = int(offset) if offset else None
        return found

    def test_topic_command_creates_lists_describes_and_deletes(self):
        self.topics("--create", "--topic", "made-by-java", "--partitions", 3,
                    "--replication-factor", 1, "--config", "retention.ms=3600000",
                    "--config", "segment.bytes=2097152")
        self.assertIn("made-by-java", self.topics("--list").stdout.decode().split())
        text = self.topics("--describe", "--topic", "made-by-java").stdout.decode()
        self.assertIn("PartitionCount: 3", text)
        self.assertIn("ReplicationFactor: 1", text)
        self.assertIn("retention.ms=3600000", text)
        self.assertEqual(text.count("Leader: 1"), 3)
        again = self.topics("--create", "--topic", "made-by-java", check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn(b"already exists", again.stdout + again.stderr)
        self.topics("--delete", "--topic", "made-by-java")
        self.assertNotIn("made-by-java", self.topics("--list").stdout.decode().split())

    def test_replication_factor_above_the_brokers_is_refused(self):
        done = self.topics("--create", "--topic", "three-copies", "--replication-factor", 3,
                           check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"InvalidReplicationFactor", done.stdout + done.stderr)
        self.assertNotIn("three-copies", self.topics("--list").stdout.decode().split())

    def test_get_offset_shell_answers_every_special_time(self):
        topic = self.topic("times", 2)
        lines = json.dumps([{"key": "k", "value": str(n), "timestamp": str(t)}
                            for n, t in enumerate((1000, 5000, 3000, 4000))])
        clients.node("peer.js", self.broker.port, "batch", topic, "none", lines)
        self.assertEqual(self.offsets(topic, "latest"), {0: 4, 1: 0})
        self.assertEqual(self.offsets(topic, "earliest"), {0: 0, 1: 0})
        self.assertEqual(self.offsets(topic, -1), {0: 4, 1: 0})
        self.assertEqual(self.offsets(topic, -2), {0: 0, 1: 0})
        self.assertEqual(self.offsets(topic, "max-timestamp")[0], 1)
        self.assertEqual(self.offsets(topic, -3)[0], 1)
        self.assertEqual(self.offsets(topic, "earliest-local"), {0: 0, 1: 0})
        self.assertEqual(self.offsets(topic, -4), {0: 0, 1: 0})
        for time, offset in ((999, 0), (1001, 1), (5000, 1)):
            self.assertEqual(self.offsets(topic, time)[0], offset, f"time {time}")

    def test_delete_records_moves_the_log_start(self):
        topic = self.topic("trimmed")
        clients.kcat(self.broker, "-P", "-t", topic, given=b"".join(b"%d\n" % n for n in range(50)))
        wanted = self.folder / "delete.json"
        wanted.write_text(json.dumps({"version": 1, "partitions": [
            {"topic": topic, "partition": 0, "offset": 30}]}))
        text = clients.java_output(DELETE_RECORDS, "--bootstrap-server", self.broker.address,
                                   "--offset-json-file", wanted)
        self.assertIn("low_watermark: 30", text)
        self.assertEqual(self.offsets(topic, "earliest")[0], 30)
        for step in ("at once", "after a restart"):
            with self.subTest(step):
                self.assertEqual(clients.kcat_consume(self.broker, topic).split(),
                                 [b"%d" % n for n in range(30, 50)])
                self.broker.restart()


if __name__ == "__main__":
    testbed.main()
