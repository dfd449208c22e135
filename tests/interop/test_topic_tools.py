"""Kafka's own Java tools that look at topics and partitions, on topics of each layout."""

import json
import re

import clients
import testbed

TOPICS = "org.apache.kafka.tools.TopicCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LAYOUTS = ("kafka", "rocketmq", "segment")


class TopicTools(testbed.BrokerTest):
    def tool(self, main_class, *arguments, **options):
        return clients.java(main_class, "--bootstrap-server", self.broker.address, *arguments,
                            **options)

    def text(self, main_class, *arguments):
        return self.tool(main_class, *arguments).stdout.decode()

    def offsets(self, topic, time):
        return sorted(self.text(OFFSETS, "--topic", topic, "--time", time).split())

    def test_topics_are_made_grown_looked_at_and_deleted(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                topic = f"tools-{layout}"
                if layout == "kafka":
                    self.tool(TOPICS, "--create", "--topic", topic, "--partitions", 1)
                else:  # the tool refuses settings that Kafka does not have
                    self.topic(topic, 1, {"polylog.layout": layout})
                clients.kcat(self.broker, "-P", "-t", topic, "-p", 0, given=b"one\ntwo\n")
                self.tool(TOPICS, "--alter", "--topic", topic, "--partitions", 3)
                clients.kcat(self.broker, "-P", "-t", topic, "-p", 2, given=b"three\n")
                shown = self.text(TOPICS, "--describe", "--topic", topic)
                self.assertIn("PartitionCount: 3", shown)
                self.assertEqual(len(re.findall(r"Leader: 1\s+Replicas: 1\s+Isr: 1", shown)), 3)
                less = self.tool(TOPICS, "--alter", "--topic", topic, "--partitions", 2,
                                 check=False)
                self.assertNotEqual(less.returncode, 0)
                self.assertIn(b"would not be an increase", less.stdout + less.stderr)
                self.assertEqual(self.offsets(topic, "latest"),
                                 [f"{topic}:0:2", f"{topic}:1:0", f"{topic}:2:1"])
                self.broker.kill9()
                self.broker.start()
                self.assertEqual(self.offsets(topic, "latest"),
                                 [f"{topic}:0:2", f"{topic}:1:0", f"{topic}:2:1"])
                self.assertEqual(self.offsets(topic, "earliest"),
                                 [f"{topic}:0:0", f"{topic}:1:0", f"{topic}:2:0"])
                self.assertIn(f"{topic}:0:", self.text(OFFSETS, "--topic", topic, "--time", -3))
                self.tool(TOPICS, "--delete", "--topic", topic)
                self.assertNotIn(topic, self.text(TOPICS, "--list").split())

    def test_log_directories(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                topic = self.topic(f"dirs-{layout}", 2, {"polylog.layout": layout})
                clients.kcat(self.broker, "-P", "-t", topic, "-p", 1, given=b"x" * 50000 + b"\n")
                for step in ("at once", "after a restart"):
                    shown = self.text(LOG_DIRS, "--describe", "--topic-list", topic)
                    found = json.loads(shown.splitlines()[-1])
                    directory, = [each for each in found["brokers"][0]["logDirs"]
                                  if each["partitions"]]
                    self.assertEqual(directory["logDir"], str(self.broker.data_dir / layout))
                    self.assertIsNone(directory["error"])
                    sizes = {each["partition"]: each["size"] for each in directory["partitions"]}
                    self.assertEqual(sizes[f"{topic}-0"], 0, step)
                    self.assertGreater(sizes[f"{topic}-1"], 50000, step)
                    self.assertLess(sizes[f"{topic}-1"], 60000, step)
                    if step == "at once":
                        self.broker.restart()

    def test_producers(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                topic = self.topic(f"producers-{layout}", 1, {"polylog.layout": layout})
                clients.kcat(self.broker, "-P", "-t", topic, "-X", "enable.idempotence=true",
                             given=b"a\nb\nc\n")
                shown = self.text(TRANSACTIONS, "describe-producers", "--topic", topic,
                                  "--partition", 0)
                head, row = [line.split("\t") for line in shown.strip().splitlines()[:2]]
                values = dict(zip([each.strip() for each in head], [each.strip() for each in row]))
                self.assertEqual(values["ProducerEpoch"], "0", shown)
                self.assertEqual(values["LastSequence"], "2", shown)
                self.assertEqual(values["CurrentTransactionStartOffset"], "None", shown)

    def test_elections_and_reassignments(self):
        topic = self.topic("led", 2)
        done = self.text(ELECTION, "--election-type", "preferred", "--topic", topic,
                         "--partition", 0)
        self.assertIn("Valid replica already elected", done)
        everything = self.text(ELECTION, "--election-type", "preferred", "--all-topic-partitions")
        self.assertNotIn("Error", everything)
        plan = self.folder / "plan.json"

        def execute(replicas, **options):
            plan.write_text(json.dumps({"version": 1, "partitions": [
                {"topic": topic, "partition": 0, "replicas": replicas}]}))
            return self.tool(REASSIGN, "--reassignment-json-file", plan, "--execute", **options)

        self.assertIn(b"Successfully started", execute([1]).stdout)
        self.assertNotEqual(execute([2], check=False).returncode, 0)
        listed = self.text(REASSIGN, "--list")
        self.assertIn("No partition reassignments found", listed)


if __name__ == "__main__":
    testbed.main()
