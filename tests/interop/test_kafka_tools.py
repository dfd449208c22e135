"""polylog under the names of Kafka's tools, beside the tools themselves, on one real Kafka.

Each command runs twice: once as Kafka's own Java class and once as polylog, on topics and groups
of their own that are called alike. What both print must agree line by line, but for what the tools'
log configuration adds, stack traces, and the help behind a refusal.
"""

import base64
import json
import re
import subprocess
import time
import unittest

import brokers
import dependencies
import testbed

TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-configs": ("org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"),
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
}
LOG_LINE = re.compile(r"^\[\d{4}-\d\d-\d\d ")
TRACE_LINE = re.compile(r"^\s+at |^Caused by: |^\s+\.\.\. \d+ more")
NOISE = re.compile(r"^The consumer rebalance protocol|is deprecated and will be removed"
                   r"|^WARN(ING)? |^org\.apache\.kafka\.common\.errors\.TimeoutException$"
                   r"|^ \(org\.apache|^java\.|^org\.apache\.kafka\.tools\.\S+Exception: "
                   r"|^org\.apache\.kafka\.common\.errors\.\S+Exception: "
                   r"|^org\.apache\.kafka\.\S+Exception$")


class JavaTools:
    """Kafka's tools in one JVM."""

    def __init__(self):
        jars = dependencies.kafka()
        classes = dependencies._compiled(jars, dependencies.HERE / "java" / "tools",
                                         dependencies.DEPS / "classes-tools")
        self.classes = {name: dependencies.kafka_class(*([c] if isinstance(c, str) else c))
                        for name, c in TOOLS.items()}
        log4j = dependencies.PINS / "log4j2.properties"
        self.process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1",
             f"-Dlog4j2.configurationFile={log4j}", "-cp", f"{classes}:{jars}/*", "ToolDriver"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, tool, *arguments, given=""):
        words = [self.classes[tool], *map(str, arguments), given]
        self.process.stdin.write(
            " ".join(base64.b64encode(word.encode()).decode() for word in words) + "\n")
        self.process.stdin.flush()
        code, out, err = self.process.stdout.readline().rstrip("\n").split(" ")
        return int(code), base64.b64decode(out).decode(), base64.b64decode(err).decode()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class OurTools:
    """polylog, called through links by the tools' names."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([brokers.polylog_binary(), "links", folder], check=True,
                       stdout=subprocess.DEVNULL)

    def run(self, tool, *arguments, given=""):
        done = subprocess.run([self.folder / f"{tool}.sh", *map(str, arguments)], input=given,
                              text=True, capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def close(self):
        pass


def plain(text):
    """What is to agree: without logs, traces, and help, and with one name for both runs."""
    lines, state = [], "text"
    for line in text.splitlines():
        if LOG_LINE.match(line) or TRACE_LINE.match(line) or NOISE.search(line):
            continue
        if re.match(r"^Option +Description", line) or line.startswith("  --"):
            state = "help"
        if state == "text":
            line = re.sub(r"\bjoptsimple\.\w+: |java\.util\.concurrent\.ExecutionException: |"
                          r"org\.apache\.kafka\.common\.KafkaException: |"
                          r"org\.apache\.kafka\.common\.config\.ConfigException: ", "", line)
            # Sets of options come in no order.
            line = re.sub(r"\[[\w-]+\](, \[[\w-]+\])+",
                          lambda found: ", ".join(sorted(found[0].split(", "))), line)
            line = re.sub(r"TopicId: \S+", "TopicId: ID", line)
            line = re.sub(r"(CreateTime:)\s?\d+", r"\1 TIME", line)
            line = re.sub(r"\b(jv|pl)(?=[-.])", "X", line).rstrip()
            # A trace begins with the words that were just said.
            if not lines or line != lines[-1] or "option" not in line.lower():
                lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return lines


class KafkaToolsTest(testbed.BrokerTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = testbed.scratch_folder(cls.__name__)
        cls.addClassCleanup(cls._clean)
        cls.broker = brokers.KafkaBroker(cls.folder / "data")
        cls.broker.start()
        cls.java, cls.ours = JavaTools(), OurTools(cls.folder / "bin")
        cls.addClassCleanup(cls.java.close)

    def both(self, tool, *arguments, given="", order=True, codes=True, errors=True, server=True):
        """Runs a command of both; X in it stands for the run's own prefix."""
        results = []
        for tools, prefix in ((self.java, "jv"), (self.ours, "pl")):
            words = [re.sub(r"\bX(?=[-.])", prefix, str(a)) for a in arguments]
            where = ["--bootstrap-server", self.broker.address] if server else []
            code, out, err = tools.run(tool, *where, *words, given=given)
            lines = plain(out)
            if not order:
                lines.sort()
            results.append([lines, plain(err) if errors else [], code if codes else 0])
        with self.subTest(tool=tool, arguments=arguments):
            self.assertEqual(results[1], results[0])
        return results[1][0]

    def topics(self, *arguments, **options):
        return self.both("kafka-topics", *arguments, **options)

    def groups(self, *arguments, **options):
        return self.both("kafka-consumer-groups", *arguments, **options)

    def make(self, name, partitions=3):
        self.topics("--create", "--topic", f"X-{name}", "--partitions", partitions)

    def fill(self, name, lines, *options):
        # Not to be left to a shutdown hook, which one JVM for all tools never runs.
        self.both("kafka-console-producer", "--topic", f"X-{name}", "--sync", "--timeout", 0,
                  "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
                  *options, given="".join(line + "\n" for line in lines))

    def test_topics(self):
        self.make("topics")
        self.topics("--create", "--topic", "X-topics")
        self.topics("--create", "--topic", "X-topics", "--if-not-exists")
        self.topics("--create", "--topic", "X-dot.under_score")
        self.topics("--create", "--topic", "X-bad name")
        self.topics("--create", "--topic", "X-bad", "--config", "nonsense=1")
        self.topics("--create", "--topic", "X-bad", "--config", "retention.ms")
        self.topics("--create", "--topic", "X-bad", "--partitions", "0")
        self.topics("--create", "--topic", "X-bad", "--partitions", "abc")
        self.topics("--create", "--topic", "X-bad", "--replication-factor", "5")
        self.topics("--create", "--topic", "X-manual", "--replica-assignment", "1,1")
        self.topics("--create", "--topic", "X-config", "--config", "retention.ms=1000000",
                    "--config", "cleanup.policy=compact")
        self.assertIn("X-topics", self.topics("--list", "--topic", "X-.*"))
        self.topics("--list", "--topic", "X-topics,X-config")
        for name in ("topics", "manual", "config"):
            found = self.topics("--describe", "--topic", f"X-{name}")
            self.assertIn(f"Topic: X-{name}", found[0])
        self.topics("--describe", "--topic", "X-config", "--topics-with-overrides")
        self.topics("--describe", "--topic", "X-nope")
        self.topics("--describe", "--topic", "X-nope", "--if-exists")
        self.topics("--describe", "--topic", "X-topics", "--under-replicated-partitions")
        self.topics("--describe", "--topic", "X-topics", "--unavailable-partitions")
        self.topics("--describe", "--topic", "X-topics", "--at-min-isr-partitions")
        self.topics("--alter", "--topic", "X-topics", "--partitions", 4)
        self.topics("--alter", "--topic", "X-topics", "--partitions", 2)
        self.topics("--alter", "--topic", "X-nope", "--partitions", 2)
        self.topics("--alter", "--topic", "X-nope", "--partitions", 2, "--if-exists")
        self.topics("--delete", "--topic", "X-nope")
        self.topics("--delete", "--topic", "X-topics")
        for wrong in (["--frobnicate"], ["--list", "--create"], ["--create"], [],
                      ["--create", "--topic"], ["--list", "--partitions", 3],
                      ["--alter", "--topic", "X-topics"]):
            self.topics(*wrong)
        self.topics("--list", server=False)

    def test_produced_lines_are_printed_alike(self):
        self.make("lines", 1)
        produce = ["kafka-console-producer", "--topic", "X-lines", "--sync", "--timeout", 0]
        self.both(*produce, given="a\nb\n\nc")
        self.both(*produce, "--property", "parse.key=true", given="k\tv\n")
        self.both(*produce, "--reader-property", "parse.headers=true", "--reader-property",
                  "parse.key=true", "--reader-property", "null.marker=NUL",
                  given="h1:v1,h2:NUL\tkey\tvalue\nNUL\tNUL\tNUL\n")
        self.both(*produce, "--reader-property", "parse.key=true", given="good\tone\nbad\n")
        self.both(*produce, "--reader-property", "parse.headers=true", given="x\n")
        self.both(*produce, "--reader-property", "parse.headers=true", given="a:b,c\tx\n")
        self.both(*produce, "--reader-property", "parse.key=true", "--reader-property",
                  "ignore.error=true", given="plain\n")
        for codec in (["--compression-codec"], ["--compression-codec", "zstd"],
                      ["--compression-codec", "lz4"], ["--compression-codec", "snappy"],
                      ["--compression-codec", "foo"]):
            self.both(*produce, *codec, given="packed\n")
        self.both(*produce, "--request-required-acks", "1", "--producer-property", "linger.ms=0",
                  given="one\ntwo\n")
        count = 14
        read = ["kafka-console-consumer", "--topic", "X-lines", "--partition", 0, "--offset",
                "earliest", "--max-messages", count]
        self.assertEqual(len(self.both(*read)), count)
        for name in ("key", "timestamp", "offset", "partition", "headers"):
            self.both(*read, "--formatter-property", f"print.{name}=true")
        everything = [f"print.{p}=true" for p in
                      ("key", "timestamp", "offset", "partition", "headers", "epoch")]
        everything += ["key.separator=|", "null.literal=NIL", "headers.separator=;"]
        self.both(*read, *[w for p in everything for w in ("--formatter-property", p)])
        self.both(*read[:3], "--partition", 0, "--offset", 3, "--max-messages", 2)
        self.both(*read[:3], "--from-beginning", "--max-messages", count)
        self.both("kafka-console-consumer", "--include", "X-lin.*", "--from-beginning",
                  "--max-messages", count)
        self.both(*read[:3], "--from-beginning", "--timeout-ms", 4000)
        for wrong in (["--offset", 1], ["--partition", 0, "--offset", "junk"],
                      ["--partition", 0, "--offset", "-5"], ["--partition", 0, "--group", "x"],
                      ["--include", "x"], ["--frob"],
                      ["--from-beginning", "--consumer-property", "auto.offset.reset=latest"],
                      ["--from-beginning", "--partition", 0, "--offset", 2]):
            self.both(*read[:3], *wrong)
        self.both("kafka-console-consumer", "--from-beginning")
        self.both("kafka-console-producer", "--topic", "X-lines", "--frob")
        self.both("kafka-console-producer")

    def test_groups_without_members(self):
        self.make("grp")
        self.fill("grp", [f"k{i}:{i}" for i in range(30)])
        consume = ["kafka-console-consumer", "--topic", "X-grp", "--from-beginning"]
        self.both(*consume, "--group", "X-all", "--timeout-ms", 8000, order=False)
        self.both(*consume, "--group", "X-none", "--max-messages", 0)
        for verb in ([], ["--verbose"], ["--offsets"], ["--members"], ["--members", "--verbose"],
                     ["--state"], ["--state", "--verbose"]):
            self.groups("--describe", "--group", "X-all", *verb)
        self.groups("--describe", "--group", "X-nope")
        for wanted in ([], ["--state"], ["--type"], ["--state", "--type"], ["--state", "Empty"],
                       ["--state", "empty,Stable"], ["--state", "Foo"], ["--type", "classic"]):
            self.own_groups_listed(wanted)
        reset = ["--reset-offsets", "--group", "X-all", "--topic"]
        for scenario in (["--to-earliest"], ["--to-latest"], ["--to-current"], ["--to-offset", 4],
                         ["--shift-by", -2], ["--by-duration", "PT1H"],
                         ["--to-datetime", "2020-01-01T00:00:00.000"],
                         ["--to-datetime", "2100-01-01T00:00:00.000"],
                         ["--to-datetime", "junk"]):
            # The original's partitions come in no order.
            self.groups(*reset, "X-grp", *scenario, order=False)
            self.groups(*reset, "X-grp:0,2", *scenario, "--dry-run", order=False)
            self.groups(*reset, "X-grp", *scenario, "--export", order=False)
        self.groups(*reset, "X-grp:0,1", "--to-offset", 1000, "--execute", order=False)
        self.groups(*reset, "X-grp", "--shift-by", -3, "--execute", order=False)
        self.groups("--describe", "--group", "X-all")
        self.groups(*reset, "X-nope", "--to-current")
        self.groups("--reset-offsets", "--group", "X-new", "--topic", "X-grp", "--to-latest",
                    "--execute", order=False)
        self.groups("--reset-offsets", "--group", "X-new", "--all-topics", "--to-earliest",
                    order=False)
        plan = self.folder / "plan.csv"
        for prefix in ("jv", "pl"):
            (self.folder / f"{prefix}-plan.csv").write_text(f"{prefix}-grp,0,2\n{prefix}-grp,1,1\n")
        self.groups("--reset-offsets", "--group", "X-new", "--from-file",
                    self.folder / "X-plan.csv", "--execute", order=False)
        self.groups("--reset-offsets", "--group", "X-new", "--from-file", plan, "--execute")
        for wrong in (["--group", "X-all"], ["--group", "X-all", "--topic", "X-grp"],
                      ["--topic", "X-grp", "--to-latest"],
                      ["--group", "X-all", "--topic", "X-grp", "--to-latest", "--to-earliest"],
                      ["--group", "X-all", "--topic", "X-grp", "--to-latest", "--dry-run",
                       "--execute"]):
            # Some exits are caught in the original, and the scenarios come in no order.
            self.groups("--reset-offsets", *wrong, codes=False, errors="--to-latest" in wrong)
        self.groups("--delete-offsets", "--group", "X-all", "--topic", "X-grp:0")
        self.groups("--delete-offsets", "--group", "X-all", "--topic", "X-nope")
        self.groups("--delete-offsets", "--group", "X-nope", "--topic", "X-grp")
        self.groups("--delete-offsets", "--group", "X-all")
        self.groups("--delete", "--group", "X-new", "--group", "X-nope")
        self.groups("--delete", "--group", "X-all")
        for wrong in (["--delete"], ["--describe"], [], ["--frob"], ["--list", "--describe"],
                      ["--describe", "--group", "X-all", "--members", "--state"],
                      ["--list", "--topic", "x"], ["--members"]):
            self.groups(*wrong)

    def own_groups_listed(self, wanted):
        """Lists have the groups of both runs, in no order: all lines of ours must be there."""
        java = self.java.run("kafka-consumer-groups", "--bootstrap-server", self.broker.address,
                             "--list", *wanted)
        ours = self.ours.run("kafka-consumer-groups", "--bootstrap-server", self.broker.address,
                             "--list", *wanted)
        self.assertEqual(sorted(ours[1].splitlines()), sorted(java[1].splitlines()))
        ours_said, java_said = plain(ours[2]), plain(java[2])
        # The original names what it knows in no order.
        self.assertEqual([sorted(re.findall(r"\w+", line)) for line in ours_said],
                         [sorted(re.findall(r"\w+", line)) for line in java_said])
        self.assertEqual(ours[0], java[0])

    def test_groups_with_members(self):
        self.make("live", 2)
        self.make("other", 1)
        self.fill("live", [f"k{i}:{i}" for i in range(20)])
        members = [self.member("live-classic"),
                   self.member("live-new", "--consumer-property", "group.protocol=consumer",
                               "--consumer-property", "group.instance.id=one")]
        try:
            for group in ("live-classic", "live-new"):
                self.wait_stable(group)
                for verb in ([], ["--verbose"], ["--members"], ["--members", "--verbose"],
                             ["--state"], ["--state", "--verbose"]):
                    self.groups("--describe", "--group", group, *verb)
                self.groups("--reset-offsets", "--group", group, "--topic", "jv-live",
                            "--to-earliest", "--execute")
                self.groups("--delete", "--group", group)
                self.groups("--delete-offsets", "--group", group, "--topic", "jv-live")
        finally:
            for member in members:
                member.terminate()
                member.wait(30)

    def member(self, group, *options):
        jars = dependencies.kafka()
        log4j = dependencies.PINS / "log4j2.properties"
        return subprocess.Popen(
            ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={log4j}",
             "-cp", f"{jars}/*", TOOLS["kafka-console-consumer"], "--bootstrap-server",
             self.broker.address, "--include", "jv-live|jv-other", "--group", group,
             "--from-beginning", *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_stable(self, group):
        """Until it is stable and has committed all it read."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            _, out, _ = self.ours.run("kafka-consumer-groups", "--bootstrap-server",
                                      self.broker.address, "--describe", "--group", group)
            rows = [line.split() for line in out.splitlines()[2:] if line]
            if len(rows) == 3 and all(row[5] == "0" for row in rows):
                return
            time.sleep(0.5)
        self.fail(f"{group} did not come to rest:\n{out}")

    def test_a_group_of_ours_and_java_share_the_partitions(self):
        self.make("shared", 4)
        lines = [f"k{i}:{i}" for i in range(400)]
        self.fill("shared", lines)
        common = ["--bootstrap-server", self.broker.address, "--topic", "pl-shared", "--group",
                  "pl-mixed", "--from-beginning"]
        outputs = [self.folder / f"mixed-{i}" for i in range(3)]
        jars = dependencies.kafka()
        commands = [[self.folder / "bin/kafka-console-consumer.sh", *common],
                    [self.folder / "bin/kafka-console-consumer", *common],
                    ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*",
                     TOOLS["kafka-console-consumer"], *common]]
        members = []
        try:
            for command, output in zip(commands, outputs):
                with open(output, "wb") as sink:
                    members.append(subprocess.Popen(command, stdout=sink,
                                                    stderr=subprocess.DEVNULL))
                time.sleep(1)
            until = time.monotonic() + 60
            shares = []
            while time.monotonic() < until:
                _, out, _ = self.ours.run("kafka-consumer-groups", "--bootstrap-server",
                                          self.broker.address, "--describe", "--members", "--group",
                                          "pl-mixed")
                shares = sorted(line.split()[-1] for line in out.splitlines()[2:] if line)
                read = set()
                for output in outputs:
                    read.update(output.read_text().split())
                if shares == ["1", "1", "2"] and len(read) == 400:
                    break
                time.sleep(0.5)
            self.assertEqual(shares, ["1", "1", "2"])
            self.assertEqual(len(read), 400)
        finally:
            for member in members:
                member.terminate()
            for member in members:
                member.wait(30)
        self.assertEqual([m.returncode for m in members[:2]], [0, 0])
        _, out, _ = self.ours.run("kafka-consumer-groups", "--bootstrap-server",
                                  self.broker.address, "--describe", "--group", "pl-mixed")
        rows = [line.split() for line in out.splitlines()[2:] if line]
        self.assertEqual(sum(int(row[3]) for row in rows), 400, out)

    def test_configs(self):
        self.make("conf")

        def configs(*arguments, **options):
            return self.both("kafka-configs", *arguments, **options)

        topic = ["--entity-type", "topics", "--entity-name", "X-conf"]
        configs("--describe", *topic)
        configs("--alter", *topic, "--add-config",
                "retention.ms=5000,cleanup.policy=[compact,delete]")
        configs("--describe", *topic)
        configs("--describe", "--topic", "X-conf", "--all")
        configs("--alter", *topic, "--delete-config", "retention.ms,notset")
        configs("--describe", *topic)
        configs("--describe", "--topic", "X-nope")
        configs("--alter", *topic, "--add-config", "nonsense=1", errors=False)
        configs("--alter", "--topic", "X-nope", "--add-config", "retention.ms=5", errors=False)
        configs("--alter", "--entity-type", "topics", "--add-config", "retention.ms=5")
        configs("--alter", *topic)
        brokers_default = ["--entity-type", "brokers", "--entity-default"]
        configs("--alter", "--broker", 1, "--add-config", "log.cleaner.threads=2")
        configs("--alter", *brokers_default, "--add-config", "log.retention.ms=1000000000")
        configs("--describe", "--entity-type", "brokers")
        configs("--describe", "--broker", 1, "--all")
        configs("--describe", "--broker-defaults")
        configs("--alter", *brokers_default, "--delete-config", "log.retention.ms")
        configs("--alter", "--broker", 1, "--delete-config", "log.cleaner.threads")
        group = ["--entity-type", "groups", "--entity-name", "X-g"]
        configs("--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
        configs("--describe", *group)
        configs("--describe", "--group", "X-g", "--all")
        configs("--alter", "--group", "X-g", "--delete-config", "consumer.session.timeout.ms")
        user, client = ["--entity-type", "users"], ["--entity-type", "clients"]
        configs("--alter", *user, "--entity-name", "X-alice", "--add-config",
                "producer_byte_rate=1024,consumer_byte_rate=20971520")
        configs("--alter", *client, "--entity-name", "X-app", "--add-config",
                "request_percentage=200")
        configs("--alter", *user, "--entity-name", "X-alice", *client, "--entity-name", "X-app",
                "--add-config", "producer_byte_rate=1")
        configs("--describe", *user, "--entity-name", "X-alice")
        configs("--describe", *user, "--entity-name", "X-alice", *client, "--entity-name", "X-app")
        configs("--describe", "--client", "X-app")
        configs("--alter", "--user-defaults", "--add-config", "producer_byte_rate=4096")
        configs("--describe", *user, "--entity-default")
        configs("--alter", "--ip", "127.0.0.9", "--add-config", "connection_creation_rate=10")
        configs("--describe", "--entity-type", "ips")
        configs("--alter", "--user", "X-alice", "--delete-config", "request_percentage")
        configs("--alter", "--user", "X-alice", "--delete-config", "producer_byte_rate")
        configs("--describe", "--user", "X-alice")
        configs("--alter", "--user", "X-alice", "--add-config", "nonsense=1")
        configs("--alter", "--user", "X-alice", "--add-config", "producer_byte_rate=abc")
        for wrong in (["--describe", "--entity-type", "frobs"], ["--describe"], ["--alter"], [],
                      ["--frob"]):
            configs(*wrong)

    def test_offsets_and_deleted_records(self):
        self.make("off")
        self.fill("off", [f"k{i}:{i}" for i in range(30)])

        def offsets(*arguments, **options):
            return self.both("kafka-get-offsets", *arguments, **options)

        for time_given in ([], ["--time", "earliest"], ["--time", -1], ["--time", -2],
                           ["--time", -4], ["--time", 9999999999999],
                           ["--time", 0], ["--time", "junk"]):
            offsets("--topic", "X-off", *time_given)
        for time_given in ("max-timestamp", -3):
            offsets("--topic", "jv-off", "--time", time_given)
        offsets("--topic", "X-o.*", "--partitions", "0,1")
        offsets("--topic-partitions", "X-off:0-2,X-off:2")
        offsets("--topic-partitions", "X-off:1-")
        offsets("--topic-partitions", "X-off:-1")
        offsets("--topic-partitions", "X-off:9")
        offsets("--topic", "X-nope")
        offsets("--topic", "X-off", "--partitions", "x")
        offsets("--topic", "X-off", "--topic-partitions", "X-off:1")
        offsets("--frob")

        def delete(document, **options):
            for prefix in ("jv", "pl"):
                text = document if isinstance(document, str) else json.dumps(document)
                (self.folder / f"{prefix}-delete.json").write_text(
                    re.sub(r"\bX(?=-)", prefix, text))
            return self.both("kafka-delete-records", "--offset-json-file",
                             self.folder / "X-delete.json", **options)

        one = {"topic": "X-off", "partition": 0, "offset": 3}
        delete({"partitions": [one], "version": 1})
        delete({"partitions": [{**one, "offset": -1}, {**one, "partition": 1, "offset": 0}]},
               order=False)
        delete({"partitions": [{**one, "offset": 100000}]})
        delete({"partitions": [one, {**one, "offset": 4}]})
        delete({"partitions": [one], "version": 2})
        delete("junk")
        delete({"partitions": []})
        offsets("--topic", "X-off", "--time", "earliest")
        self.both("kafka-delete-records")

    def test_dumped_files(self):
        self.make("dump", 1)
        for codec in ("none", "gzip", "zstd"):
            self.fill("dump", [f"k{i}:{i}" for i in range(200)], "--compression-codec", codec)
        self.both("kafka-console-consumer", "--topic", "X-dump", "--from-beginning", "--group",
                  "X-dumped", "--max-messages", 5)
        names = ["log", "index", "timeindex"]
        folder = self.broker.log_dir / "jv-dump-0"
        for name in names:
            file = folder / f"00000000000000000000.{name}"
            for option in ([], ["--deep-iteration"], ["--print-data-log"],
                           ["--print-data-log", "--skip-record-metadata"],
                           ["--verify-index-only"], ["--index-sanity-check"]):
                self.both("kafka-dump-log", "--files", file, *option, server=False)
        groups = self.broker.log_dir / "__consumer_offsets-0/00000000000000000000.log"
        self.assertTrue(any('"type":"2"' in line for line in
                            self.both("kafka-dump-log", "--files", groups, "--offsets-decoder",
                                      server=False)))
        self.both("kafka-dump-log", "--files", folder / "leader-epoch-checkpoint", server=False)
        self.both("kafka-dump-log", "--frob", server=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
