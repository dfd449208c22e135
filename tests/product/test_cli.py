"""Topics, produce, consume and dump of the built binary, against its own broker."""

import json
import pathlib
import shutil
import subprocess
import time
import unittest
import unittest.mock

from program import BINARY, PATIENCE_SECONDS, ProductTest, free_port, run

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LINES = 10_000


def murmur2(data):
    """Kafka's hash of keys, kept to 31 bits as its partitioner does."""
    m, mask = 0x5bd1e995, 0xffffffff
    h = 0x9747b28c ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7fffffff


class CliTest(ProductTest):
    def setUp(self):
        super().setUp()
        self.broker = self.serve()

    def polylog(self, *arguments, stdin="", code=0):
        """Runs a subcommand against the broker; its stdout."""
        done = run(*arguments, "-b", self.broker.address, stdin=stdin)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        if code == 0:
            self.assertEqual(done.stderr, "", f"{arguments}")
        return done.stdout

    def described(self, topic):
        (found,) = json.loads(self.polylog("topic", "describe", topic, "--json"))["topics"]
        return found

    def dumped(self, path, *options, code=0):
        done = run("dump", path, "--json", *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_the_whole_way_with_every_codec(self):
        for codec in CODECS:
            with self.subTest(codec=codec):
                self.walk(codec)
        names = [t["name"] for t in json.loads(self.polylog("topic", "list", "--json"))["topics"]]
        self.assertEqual(names, [f"all-{codec}" for codec in sorted(CODECS)])
        self.assertEqual(self.polylog("topic", "delete", *names),
                         "".join(f"deleted {name}\n" for name in names))
        self.assertEqual(self.polylog("topic", "list"), "")

    def walk(self, codec):
        topic = f"all-{codec}"
        self.assertEqual(self.polylog("topic", "create", topic, "--partitions", 3),
                         f"created {topic} with 3 partitions\n")
        lines = [f"line {i} of {codec} " + "x" * (i % 50) for i in range(LINES)]
        text = "".join(line + "\n" for line in lines)
        wrote = json.loads(self.polylog("produce", "-t", topic, "-z", codec, "--json", stdin=text))
        self.assertEqual(wrote["records"], LINES)
        self.assertEqual(wrote["bytes"], len(text) - LINES)
        for partition in range(3):
            got = self.polylog("consume", "-t", topic, "-p", partition, "-e")
            self.assertEqual(got.splitlines(), lines[partition::3])
        partitions = self.described(topic)["partitions"]
        ends = [LINES // 3 + (1 if p < LINES % 3 else 0) for p in range(3)]
        self.assertEqual([p["end_offset"] for p in partitions], ends)
        self.assertEqual([p["start_offset"] for p in partitions], [0, 0, 0])
        for partition in range(3):
            items = self.dumped(self.broker.data / f"kafka/{topic}-{partition}", "--records")
            batches = [item for item in items if item["type"] == "batch"]
            self.assertEqual({batch["codec"] for batch in batches}, {codec})
            self.assertTrue(all(batch["crc_ok"] for batch in batches))
            self.assertEqual(sum(batch["records"] for batch in batches), ends[partition])
            values = [item["value"] for item in items if item["type"] == "record"]
            self.assertEqual(values, lines[partition::3])

    def test_settings_are_altered_and_described_with_their_source(self):
        self.polylog("topic", "create", "settings", "-c", "retention.ms=1000",
                     "-c", "cleanup.policy=compact")
        text = self.polylog("topic", "describe", "settings")
        self.assertIn("not compacted yet", text)
        self.assertRegex(text, r"retention\.ms +1000 +topic\n")
        self.assertTrue(self.described("settings")["not_compacted_yet"])
        self.polylog("topic", "alter", "settings", "-c", "retention.ms=2000",
                     "--unset", "cleanup.policy")
        found = self.described("settings")
        configs = {c["name"]: (c["value"], c["source"]) for c in found["configs"]}
        self.assertEqual(configs["retention.ms"], ("2000", "topic"))
        self.assertEqual(configs["cleanup.policy"], ("delete", "default"))
        self.assertFalse(found["not_compacted_yet"])
        self.polylog("topic", "alter", "settings", "-c", "retention.ms=3000", "--dry-run")
        self.assertIn("2000", self.polylog("topic", "describe", "settings"))
        self.polylog("topic", "create", "dry", "--dry-run")
        self.assertNotIn("dry", self.polylog("topic", "list"))
        self.polylog("topic", "create", "settings", "--if-not-exists")

    def test_keys_go_where_javas_clients_send_them(self):
        self.polylog("topic", "create", "keyed", "-p", 4)
        text = "".join(f"key-{i % 20}:value {i}: with more\n" for i in range(200))
        self.polylog("produce", "-t", "keyed", "-K", ":", "--idempotent", "-z", "lz4", stdin=text)
        got = self.polylog("consume", "-t", "keyed", "-e", "-f", "%p %k|%s\\n").splitlines()
        expected = []
        for line in text.splitlines():
            key, value = line.split(":", 1)
            expected.append(f"{murmur2(key.encode()) % 4} {key}|{value}")
        self.assertEqual(sorted(got), sorted(expected))
        items = self.dumped(self.broker.data / "kafka" / f"keyed-{murmur2(b'key-0') % 4}")
        batch = next(item for item in items if item["type"] == "batch")
        self.assertGreaterEqual(batch["producer_id"], 0)
        self.assertEqual(batch["first_sequence"], 0)

    def test_records_without_value_or_key_are_told_apart(self):
        self.polylog("produce", "-t", "nulls", "-K", "=", "-Z", stdin="a=\n=b\nc\n\n")
        got = [json.loads(line) for line in
               self.polylog("consume", "-t", "nulls", "-e", "--json").splitlines()]
        self.assertEqual([(r["key"], r["value"]) for r in got],
                         [("a", None), ("", "b"), (None, "c"), (None, None)])
        self.assertEqual(
            self.polylog("consume", "-t", "nulls", "-e", "-f", "%o %K %S,").split(","),
            ["0 1 -1", "1 0 1", "2 -1 1", "3 -1 -1", ""])

    def test_every_place_to_begin(self):
        before = int(time.time() * 1000)
        self.polylog("topic", "create", "places", "-p", 1)
        self.polylog("produce", "-t", "places", stdin="".join(f"{i}\n" for i in range(50)))
        time.sleep(0.02)
        between = int(time.time() * 1000)
        time.sleep(0.02)
        self.polylog("produce", "-t", "places", stdin="".join(f"{i}\n" for i in range(50, 100)))

        def consumed(*arguments):
            return self.polylog("consume", "-t", "places", *arguments).split()

        def numbers(*bounds):
            return [str(i) for i in range(*bounds)]

        self.assertEqual(consumed("-e"), numbers(100))
        self.assertEqual(consumed("-o", "beginning", "-c", 3), numbers(3))
        self.assertEqual(consumed("-o", "42", "-c", 2), numbers(42, 44))
        self.assertEqual(consumed("-o", "-5", "-e"), numbers(95, 100))
        self.assertEqual(consumed("-o", "-1000", "-e"), numbers(100))
        self.assertEqual(consumed("-o", f"@{before - 10}", "-e"), numbers(100))
        self.assertEqual(consumed("-o", f"@{between}", "-e"), numbers(50, 100))
        self.assertEqual(consumed("-o", f"@{between + 10_000_000}", "-e"), [])
        self.assertEqual(consumed("-o", "end", "-e"), [])
        self.assertEqual(consumed("-o", "100", "-e"), [])
        self.assertEqual(consumed("-e", "--isolation", "read_committed"), numbers(100))
        done = run("consume", "-t", "places", "-o", 101, "-e", "-b", self.broker.address)
        self.check_refused(done, 1, "places-0", "0 to 100")

    def test_a_reader_that_follows_gets_what_comes_and_stops_when_told(self):
        self.polylog("topic", "create", "followed")
        with subprocess.Popen([BINARY, "consume", "-t", "followed", "-b", self.broker.address],
                              stdout=subprocess.PIPE, text=True) as reader:
            try:
                for word in ("first", "second"):
                    self.polylog("produce", "-t", "followed", stdin=word + "\n")
                    self.assertEqual(reader.stdout.readline(), word + "\n")
                reader.terminate()
                self.assertEqual(reader.wait(PATIENCE_SECONDS), 0)
            finally:
                reader.kill()

    def test_acks_decide_what_is_told(self):
        for acks in ("all", "1", "0"):
            done = json.loads(self.polylog("produce", "-t", "acked", "--acks", acks, "--json",
                                           stdin="x\ny\n"))
            self.assertEqual(done["records"], 2)
            self.assertEqual("last_offset" in done["partitions"][0], acks != "0")
        # What was not waited for is shown once it is on the disk.
        until = time.monotonic() + PATIENCE_SECONDS
        shown = []
        while len(shown) < 6 and time.monotonic() < until:
            shown = self.polylog("consume", "-t", "acked", "-e").split()
        self.assertEqual(shown, ["x", "y"] * 3)

    def test_an_idempotent_producer_outlives_kills_of_the_broker(self):
        self.polylog("topic", "create", "kept", "-p", 2)
        lines = [f"{i}" for i in range(60_000)]
        with subprocess.Popen([BINARY, "produce", "-t", "kept", "--idempotent", "--batch-bytes",
                               "2000", "-b", self.broker.address], stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as producer:
            try:
                for start in range(0, len(lines), 20_000):
                    producer.stdin.write("".join(f"{line}\n" for line in
                                                 lines[start:start + 20_000]))
                    producer.stdin.flush()
                    self.broker.end(9)
                    self.broker.start()
                producer.stdin.close()
                code = producer.wait(PATIENCE_SECONDS)
                self.assertEqual(code, 0, producer.stderr.read())
            finally:
                producer.kill()
        for partition in range(2):
            got = self.polylog("consume", "-t", "kept", "-p", partition, "-e").split()
            self.assertEqual(got, lines[partition::2])

    def test_a_refused_batch_is_one_line_and_code_1(self):
        self.polylog("topic", "create", "small", "-c", "max.message.bytes=1000")
        done = run("produce", "-t", "small", "-b", self.broker.address, stdin="x" * 5000 + "\n")
        self.check_refused(done, 1, "small-0", "MESSAGE_TOO_LARGE", "0 records")

    def test_dump_shows_damage_and_ends_with_1(self):
        self.polylog("produce", "-t", "broken", "-p", 0, stdin="hello\nworld\n")
        self.assertEqual(self.broker.end(), 0)
        log = self.broker.data / "kafka/broken-0/00000000000000000000.log"
        content = bytearray(log.read_bytes())
        content[-2] ^= 0xff
        log.write_bytes(content)
        items = self.dumped(log.parent, code=1)
        self.assertEqual([i["position"] for i in items if i["type"] == "damage"], [0])
        done = run("dump", log, "--records")
        self.assertEqual(done.returncode, 1)
        self.assertIn("DAMAGED", done.stdout)

    def test_dump_reads_every_file_of_a_data_directory(self):
        self.polylog("topic", "create", "whole", "-c", "segment.bytes=1048576",
                     "-c", "index.interval.bytes=10000")
        self.polylog("produce", "-t", "whole", "--idempotent", "--batch-bytes", 5000,
                     stdin="".join(f"number {i} {'x' * 1000}\n" for i in range(3000)))
        self.assertEqual(self.broker.end(), 0)
        kinds = set()
        for folder in ("kafka", "kafka/whole-0", "sidecar"):
            items = self.dumped(self.broker.data / folder, "--deep", "--records")
            kinds |= {item["kind"] for item in items if item["type"] == "file"}
            self.assertEqual([i for i in items if i["type"] == "damage"], [])
            if folder == "kafka/whole-0":
                self.assertEqual(sum(i["type"] == "record" for i in items), 3000)
                self.assertGreater(sum(i["type"] == "entry" for i in items), 20)
        self.assertEqual(kinds, {"log", "offset_index", "time_index", "producer_snapshot",
                                 "leader_epoch_checkpoint", "partition_metadata",
                                 "meta_properties", "offset_checkpoint", "clean_shutdown",
                                 "sidecar"})

    def test_what_fails_is_one_line_and_code_1(self):
        self.polylog("topic", "create", "there")
        there = ("-b", self.broker.address)
        cases = [
            (["topic", "describe", "nowhere", *there], "nowhere", "topic list"),
            (["topic", "delete", "nowhere", *there], "nowhere", "UNKNOWN_TOPIC_OR_PARTITION"),
            (["topic", "alter", "nowhere", "-c", "retention.ms=1", *there], "nowhere"),
            (["topic", "create", "there", *there], "there", "TOPIC_ALREADY_EXISTS"),
            (["topic", "create", "a/b", *there], "a/b", "INVALID_TOPIC_EXCEPTION"),
            (["topic", "create", "x", "-c", "retention.mss=1", *there], "retention.mss"),
            (["topic", "create", "x", "-r", "3", *there], "INVALID_REPLICATION_FACTOR"),
            (["topic", "alter", "there", "-c", "retention.ms=soon", *there], "retention.ms"),
            (["consume", "-t", "nowhere", "-e", *there], "nowhere", "topic list"),
            (["consume", "-t", "there", "-p", "9", "-e", *there], "numbered from 0"),
            (["produce", "-t", "there", "-p", "9", *there], "numbered from 0"),
            (["topic", "list", "-b", f"127.0.0.1:{free_port()}"], "cannot connect", "serve"),
            (["topic", "list", "-b", f"127.0.0.1:{self.broker.http_port}"], "port"),
            (["topic", "list", "-b", "localhost:x"], "not a port number"),
            (["dump", self.folder / "missing.log"], "missing.log"),
        ]
        for arguments, *words in cases:
            with self.subTest(arguments=arguments):
                self.check_refused(run(*arguments), 1, *words)
        self.assertEqual(self.polylog("topic", "list").split()[3:], ["there", "1", "1"])


class KafkasOwnFilesTest(ProductTest):
    """Directories that a real Kafka wrote, and what kcat printed of them then."""

    golden = pathlib.Path(__file__).resolve().parents[1] / "golden/kafka_log"

    def test_dump_finds_no_damage(self):
        folders = sorted(path for stop in ("clean", "killed")
                         for path in (self.golden / stop, *(self.golden / stop).glob("*-0")))
        self.assertGreater(len(folders), 10)
        done = run("dump", "--deep", "--records", *folders)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_consume_prints_what_kcat_printed(self):
        shutil.copytree(self.golden / "clean", self.folder / "data/kafka")
        broker = self.serve({"log.retention.ms": -1})
        for path in sorted((self.golden / "served").iterdir()):
            topic, isolation = path.name.split(".")
            with self.subTest(topic=topic, isolation=isolation):
                done = run("consume", "-t", topic, "-e", "--isolation", isolation, "-b",
                           broker.address, "-f", r"%o %T %K %k %S %s %h\n")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, path.read_text())


class UsageTest(ProductTest):
    def test_wrong_usage_is_one_line_and_code_2(self):
        notes = self.folder / "notes.txt"
        notes.write_text("x")
        short = self.folder / "42.log"
        short.write_text("x")
        cases = [
            ([], "--help"),
            (["fly"], "--help"),
            (["topic"], "topic --help"),
            (["topic", "fly"], "topic --help"),
            (["topic", "create"], "TOPIC", "topic create --help"),
            (["topic", "create", "x", "-p", "0"], "partitions"),
            (["topic", "create", "x", "-p", "many"], "partitions"),
            (["topic", "create", "x", "-c", "retention.ms"], "key=value"),
            (["topic", "alter", "x"], "--config"),
            (["topic", "list", "--jsn"], "--jsn"),
            (["produce"], "--topic"),
            (["produce", "-t", "x", "-z", "brotli"], "brotli"),
            (["produce", "-t", "x", "--acks", "2"], "acks"),
            (["produce", "-t", "x", "--acks", "1", "--idempotent"], "--acks all"),
            (["consume", "-t", "x", "-o", "middle"], "middle", "beginning"),
            (["consume", "-t", "x", "-f", "%q"], "%q"),
            (["consume", "-t", "x", "--isolation", "some"], "isolation"),
            (["consume", "-t", "x", "-f", "%s", "--json"], "json"),
            (["dump"], "PATH"),
            (["dump", notes], "notes.txt", "dump --help"),
            (["dump", short], "42.log"),
            (["dump", self.folder], "topic-0"),
            (["serve", "--port", "9092"], "--port"),
            (["group", "describe"], "GROUP", "group describe --help"),
            (["group", "reset", "g", "--to-latest"], "--topic"),
            (["group", "reset", "g", "-t", "x"], "group reset --help"),
            (["group", "reset", "g", "-t", "x", "--to-latest", "--to-earliest"], "--help"),
            (["group", "reset", "g", "-t", "x", "--to-datetime", "noon"], "noon"),
            (["group", "reset", "g", "-t", "x", "--by-duration", "5m"], "5m"),
            (["config", "list", "planet", "x"], "planet"),
            (["config", "get", "topic", "x"], "settings"),
            (["config", "set", "broker", "one", "a=b"], "one"),
            (["quota", "set", "producer_byte_rate=1"], "--user"),
            (["quota", "set", "--user", "a", "producer_byte_rate"], "number"),
            (["links"], "DIR"),
        ]
        for arguments, *words in cases:
            with self.subTest(arguments=arguments):
                self.check_refused(run(*arguments), 2, *words)

    def test_every_help_is_a_screen_with_examples_and_exit_codes(self):
        commands = ["", "serve", "topic", "topic create", "topic list", "topic describe",
                    "topic alter", "topic delete", "produce", "consume", "dump",
                    "group", "group list", "group describe", "group reset", "group delete",
                    "config", "config list", "config get", "config set", "config unset",
                    "quota", "quota list", "quota set", "quota remove", "links"]
        for command in commands:
            with self.subTest(command=command):
                done = run(*command.split(), "--help")
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr, "")
                lines = done.stdout.splitlines()
                self.assertLessEqual(len(lines), 50)
                self.assertLessEqual(max(map(len, lines)), 110)
                examples = [line for line in lines if line.startswith("  ")
                            and f"polylog {command}".rstrip() in line]
                self.assertGreaterEqual(len(examples), 3 if command else 2)
                self.assertIn("Exit codes: 0 ", done.stdout)

    def test_kafkas_tools_have_help_and_refuse_as_the_originals(self):
        for tool in ("topics", "consumer-groups", "configs", "console-producer",
                     "console-consumer", "dump-log", "get-offsets", "delete-records"):
            with self.subTest(tool=tool):
                done = run(f"kafka-{tool}", "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 110)
                done = run(f"kafka-{tool}.sh", "--frobnicate")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("frobnicate is not a recognized option", done.stderr)
        secured = self.folder / "client.properties"
        secured.write_text("# how to log in\nsecurity.protocol=SASL_SSL\n")
        done = run("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--list",
                   "--command-config", secured)
        self.assertEqual(done.returncode, 1)
        self.assertIn("security.protocol is not supported", done.stdout)

    def test_version_is_a_number(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+\n$")


class GroupCliTest(ProductTest):
    """group, config, quota, and the names of Kafka's tools, against polylog's own broker."""

    def setUp(self):
        super().setUp()
        self.broker = self.serve()
        self.bin = self.folder / "bin"
        done = run("links", self.bin)
        self.assertEqual(done.returncode, 0, done.stderr)

    def polylog(self, *arguments, stdin="", code=0):
        done = run(*arguments, "-b", self.broker.address, stdin=stdin)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def tool(self, name, *arguments, stdin="", code=0):
        done = subprocess.run([self.bin / name, "--bootstrap-server", self.broker.address,
                               *map(str, arguments)], input=stdin, text=True, capture_output=True,
                              timeout=PATIENCE_SECONDS, check=False)
        self.assertEqual(done.returncode, code, f"{name} {arguments}: {done.stderr}")
        return done.stdout

    def read_in_group(self, group, topic, count):
        return self.tool("kafka-console-consumer.sh", "--topic", topic, "--group", group,
                         "--from-beginning", "--max-messages", count).splitlines()

    def described(self, group):
        (found,) = json.loads(self.polylog("group", "describe", group, "--json"))["groups"]
        return found

    def test_links_are_made_once_and_replace_nothing(self):
        names = sorted(p.name for p in self.bin.iterdir())
        self.assertEqual(len(names), 16)
        self.assertIn("kafka-topics.sh", names)
        self.assertIn("kafka-topics", names)
        self.assertEqual(run("links", self.bin).returncode, 0)
        (self.bin / "kafka-topics").unlink()
        (self.bin / "kafka-topics").write_text("mine")
        self.assertEqual(run("links", self.bin).returncode, 1)
        self.assertEqual((self.bin / "kafka-topics").read_text(), "mine")

    def test_a_group_is_read_described_moved_and_deleted(self):
        self.polylog("topic", "create", "orders", "-p", 2)
        self.polylog("produce", "-t", "orders", stdin="".join(f"{i}\n" for i in range(20)))
        self.assertEqual(len(self.read_in_group("billing", "orders", 12)), 12)
        group = self.described("billing")
        self.assertEqual((group["type"], group["state"]), ("Classic", "Empty"))
        self.assertEqual(sum(p["committed"] for p in group["offsets"]), 12)
        self.assertEqual(sum(p["lag"] for p in group["offsets"]), 8)
        for place in group["offsets"]:
            if place["lag"]:
                self.assertGreater(place["lag_ms"], 0)
                self.assertLess(place["lag_ms"], 60_000)
        names = [g["name"] for g in json.loads(self.polylog("group", "list", "--json"))["groups"]]
        self.assertEqual(names, ["billing"])
        before = {p["partition"]: p["committed"] for p in group["offsets"]}

        preview = self.polylog("group", "reset", "billing", "-t", "orders", "--to-earliest")
        self.assertIn("nothing has changed", preview)
        self.assertEqual(self.described("billing")["offsets"], self.same_but_age(group["offsets"]))
        undo = self.polylog("group", "reset", "billing", "-t", "orders", "--to-earliest",
                            "--execute")
        moved = {p["partition"]: p["committed"] for p in self.described("billing")["offsets"]}
        self.assertEqual(moved, {0: 0, 1: 0})
        (self.folder / "undo.csv").write_text(undo)
        self.polylog("group", "reset", "billing", "--from-file", self.folder / "undo.csv",
                     "--execute")
        back = {p["partition"]: p["committed"] for p in self.described("billing")["offsets"]}
        self.assertEqual(back, before)
        self.assertIn("deleted billing", self.polylog("group", "delete", "billing"))
        self.assertIn("there is no group", self.polylog("group", "describe", "billing", code=1))

    def same_but_age(self, offsets):
        now = {(p["topic"], p["partition"]): p["lag_ms"] for p in
               self.described("billing")["offsets"]}
        for place in offsets:
            self.assertLessEqual(place["lag_ms"], now[place["topic"], place["partition"]])
        return [{**p, "lag_ms": unittest.mock.ANY} for p in offsets]

    def test_a_group_with_members_is_not_moved(self):
        self.polylog("topic", "create", "busy", "-p", 1)
        member = subprocess.Popen([self.bin / "kafka-console-consumer.sh", "--bootstrap-server",
                                   self.broker.address, "--topic", "busy", "--group", "g"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < until:
                done = run("group", "describe", "g", "--json", "-b", self.broker.address)
                if done.returncode == 0 and "Stable" in done.stdout:
                    break
                time.sleep(0.1)
            refused = self.polylog("group", "reset", "g", "-t", "busy", "--to-latest", "--execute",
                                   code=1)
            self.assertIn("1 active member", refused)
            self.assertIn("NON_EMPTY_GROUP", self.polylog("group", "delete", "g", code=1))
        finally:
            member.terminate()
            self.assertEqual(member.wait(PATIENCE_SECONDS), 0)
        self.assertEqual(self.described("g")["state"], "Empty")

    def test_settings_come_and_go(self):
        self.polylog("topic", "create", "t")
        self.assertEqual(self.polylog("config", "list", "topic", "t"), "")
        self.polylog("config", "set", "topic", "t", "retention.ms=1234", "--dry-run")
        self.assertEqual(self.polylog("config", "list", "topic", "t"), "")
        self.polylog("config", "set", "topic", "t", "retention.ms=1234")
        self.assertRegex(self.polylog("config", "list", "topic", "t"),
                         r"retention\.ms +1234 +topic\n")
        found = json.loads(self.polylog("config", "get", "topic", "t", "retention.ms", "--json"))
        self.assertEqual(found["configs"], [{"name": "retention.ms", "value": "1234",
                                             "source": "topic", "sensitive": False}])
        self.polylog("config", "unset", "topic", "t", "retention.ms")
        self.assertEqual(self.polylog("config", "list", "topic", "t"), "")
        self.assertIn("was not altered",
                      self.polylog("config", "set", "topic", "t", "nonsense=1", code=1))
        self.polylog("config", "set", "planet", "t", "a=1", code=2)
        self.polylog("config", "set", "topic", "t", "a", code=2)

    def test_quotas_come_and_go(self):
        self.assertEqual(self.polylog("quota", "list"), "")
        self.polylog("quota", "set", "--client-id", "a", "consumer_byte_rate=1000", "--dry-run")
        self.assertEqual(self.polylog("quota", "list"), "")
        self.polylog("quota", "set", "--client-id", "a", "consumer_byte_rate=1000",
                     "request_percentage=12.5")
        self.polylog("quota", "set", "--default-user", "request_percentage=50")
        self.polylog("quota", "set", "--user", "u", "--client-id", "a", "producer_byte_rate=3")
        self.assertRegex(self.polylog("quota", "list", "--client-id", "a"),
                         r"client-id a +consumer_byte_rate +1000\n")
        found = json.loads(self.polylog("quota", "list", "--json"))["quotas"]
        self.assertEqual(
            sorted((sorted(q["entity"].items()), q["limits"]) for q in found),
            [([("client-id", "a")], {"consumer_byte_rate": 1000, "request_percentage": 12.5}),
             ([("client-id", "a"), ("user", "u")], {"producer_byte_rate": 3}),
             ([("user", None)], {"request_percentage": 50})])
        self.assertEqual(self.broker.end(), 0)
        self.broker.start()
        self.polylog("quota", "remove", "--client-id", "a", "request_percentage")
        self.polylog("quota", "remove", "--default-user")
        self.assertNotIn("12.5", self.polylog("quota", "list"))
        self.assertIn("has no quotas", self.polylog("quota", "remove", "--default-user", code=1))
        self.assertIn("not altered", self.polylog("quota", "set", "--user", "u", "no_such=1",
                                                  code=1))
        self.polylog("quota", "set", "producer_byte_rate=1", code=2)
        self.polylog("quota", "set", "--user", "u", "producer_byte_rate", code=2)

    def test_the_log_of_groups_is_dumped_in_words(self):
        self.polylog("topic", "create", "orders")
        self.polylog("produce", "-t", "orders", stdin="1\n2\n3\n")
        self.read_in_group("billing", "orders", 2)
        self.assertEqual(self.broker.end(), 0)
        logs = [log for log in (self.broker.data / "kafka").glob("__consumer_offsets-*/*.log")
                if log.stat().st_size]
        self.assertEqual(len(logs), 1)
        plain = run("dump", logs[0], "--records")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertIn('key {"type":"2","data":{"group":"billing"}} value {"version":', plain.stdout)
        lines = run("dump", logs[0], "--records", "--json").stdout.splitlines()
        records = [told for told in map(json.loads, lines) if told["type"] == "group_record"]
        commits = [told for told in records if told["key"]["type"] == "1"]
        self.assertEqual(commits[-1]["key"]["data"],
                         {"group": "billing", "topic": "orders", "partition": 0})
        self.assertEqual(commits[-1]["value"]["data"]["offset"], 2)
        groups = [told["value"]["data"] for told in records if told["key"]["type"] == "2"]
        self.assertEqual([member["subscription"]["topics"] for group in groups
                          for member in group["members"]], [["orders"]])
        self.assertEqual(groups[-1]["members"], [])

    def test_kafkas_tools_do_their_work(self):
        self.assertEqual(self.tool("kafka-topics.sh", "--create", "--topic", "t", "--partitions",
                                   3), "Created topic t.\n")
        self.assertIn("\tPartitionCount: 3\t",
                      self.tool("kafka-topics", "--describe", "--topic", "t"))
        self.tool("kafka-console-producer.sh", "--topic", "t", "--reader-property",
                  "parse.key=true", "--reader-property", "key.separator=:",
                  stdin="".join(f"k{i}:v{i}\n" for i in range(30)))
        read = self.tool("kafka-console-consumer.sh", "--topic", "t", "--from-beginning",
                         "--max-messages", 30, "--formatter-property", "print.key=true")
        self.assertEqual(sorted(read.splitlines()), sorted(f"k{i}\tv{i}" for i in range(30)))
        ends = [line.split(":") for line in
                self.tool("kafka-get-offsets.sh", "--topic", "t").splitlines()]
        self.assertEqual(sum(int(end[2]) for end in ends), 30)
        self.assertEqual(self.tool("kafka-topics.sh", "--delete", "--topic", "t"), "")
        self.assertEqual(self.tool("kafka-topics.sh", "--frob", code=1), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
