"""`polylog convert` as a user has it: from a served directory to another that is served."""

import base64
import fcntl
import hashlib
import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest
import uuid

from program import BINARY, ProductTest, free_port, run, tree

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"


def contents(folder):
    """Names, times of modification and contents of everything below a folder."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        found[str(path)] = (path.stat().st_mtime_ns, data)
    return found


class ConvertTest(ProductTest):
    def filled(self, name="data", records=2000):
        """A stopped directory with a topic of so many records, and what a consumer saw of it."""
        broker = self.serve(name=name)
        self.assertEqual(run("topic", "create", "orders", "-p", "3", "-c", "retention.ms=3600000",
                             "-b", broker.address).returncode, 0)
        lines = "".join(f"key-{i % 17}:value {i}\n" for i in range(records))
        done = run("produce", "-t", "orders", "-K", ":", "-b", broker.address, stdin=lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = self.consumed(broker)
        self.assertEqual(len(seen), records)
        self.assertEqual(broker.end(), 0)
        return broker.data, seen

    def consumed(self, broker):
        done = run("consume", "-t", "orders", "-e", "--json", "-b", broker.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return sorted(records, key=lambda record: (record["partition"], record["offset"]))

    def convert(self, source, target, layout, *options):
        done = run("convert", source, target, "--layout", layout, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_there_and_back_again(self):
        source, seen = self.filled()
        before = contents(source)
        said = self.convert(source, self.folder / "rocketmq", "rocketmq")
        self.assertIn("1 topic, 3 partitions, 2000 records", said)
        self.assertIn("each compared with its source", said)
        self.assertEqual(contents(source), before)
        broker = self.serve(name="rocketmq")
        self.assertEqual(self.consumed(broker), seen)
        shown = run("topic", "describe", "orders", "-b", broker.address)
        self.assertIn("rocketmq", shown.stdout)
        self.assertEqual(broker.end(), 0)
        self.convert(self.folder / "rocketmq", self.folder / "kafka", "kafka", "--quiet")
        broker = self.serve(name="kafka")
        self.assertEqual(self.consumed(broker), seen)
        # And it goes on from there.
        self.assertEqual(run("produce", "-t", "orders", "-b", broker.address,
                             stdin="one more\n").returncode, 0)
        self.assertEqual(len(self.consumed(broker)), len(seen) + 1)
        self.assertEqual(broker.end(), 0)

    def test_through_every_layout_and_back(self):
        source, seen = self.filled()
        before = source
        for layout in ("rocketmq", "segment", "kafka", "segment", "rocketmq", "kafka"):
            with self.subTest(before=before.name, layout=layout):
                target = self.folder / f"{before.name}-{layout[0]}"
                untouched = contents(before)
                said = self.convert(before, target, layout)
                self.assertIn(f"1 topic, 3 partitions, 2000 records in the {layout} layout", said)
                self.assertEqual(contents(before), untouched)
                broker = self.serve(name=target.name)
                self.assertEqual(self.consumed(broker), seen)
                shown = run("topic", "describe", "orders", "-b", broker.address)
                self.assertIn(layout, shown.stdout)
                self.assertIn("3600000", shown.stdout)
                self.assertEqual(broker.end(), 0)
                before = target
        # Each of them takes records behind what was converted.
        for target in ("data-r-s", "data-r-s-k-s-r-k"):
            broker = self.serve(name=target)
            self.assertEqual(run("produce", "-t", "orders", "-b", broker.address,
                                 stdin="one more\n").returncode, 0)
            self.assertEqual(len(self.consumed(broker)), len(seen) + 1)
            self.assertEqual(broker.end(), 0)

    def robustmq_files(self):
        """A folder of segment files as RobustMQ leaves them, and how many records are in it."""
        shard = self.folder / "robustmq/cq1h2k3l4m5n6p7q8r9s-0"
        shard.mkdir(parents=True)
        whole = (GOLDEN / "robustmq/records.msg").read_bytes()
        (shard / "0.msg").write_bytes(whole)
        records = len((GOLDEN / "robustmq/records.tsv").read_text().splitlines())
        return shard / "0.msg", records

    def test_segment_files_of_robustmqs_own(self):
        file, records = self.robustmq_files()
        source = file.parent.parent
        before = contents(source)
        for layout in ("kafka", "rocketmq", "segment"):
            with self.subTest(layout=layout):
                said = self.convert(source, self.folder / layout, layout,
                                    "--topic", "cq1h2k3l4m5n6p7q8r9s=orders")
                self.assertIn(f"1 topic, 1 partition, {records} records", said)
                self.assertIn('a part "nats"', said)
                self.assertEqual(contents(source), before)
                broker = self.serve(name=layout)
                self.assertEqual(len(self.consumed(broker)), records)
                self.assertEqual(broker.end(), 0)
        file.write_bytes(file.read_bytes()[:-3])
        said = self.convert(source, self.folder / "cut", "kafka")
        self.assertIn(f"note: {file}, position ", said)
        self.assertIn(f"{records - 1} records", said)
        damaged = bytearray(file.read_bytes())
        damaged[8] ^= 0x40
        file.write_bytes(damaged)
        self.check_refused(run("convert", source, self.folder / "none", "--layout", "kafka"), 1,
                           f"{file}, position 0")
        self.check_refused(run("convert", source, self.folder / "none", "--layout", "kafka",
                               "--topic", "x"), 2, "--topic x")

    def test_a_killed_run_is_refused_by_the_broker_and_gone_on_with(self):
        source, seen = self.filled(records=30_000)
        target = self.folder / "rocketmq"
        process = subprocess.Popen([BINARY, "convert", source, target, "--layout", "rocketmq"],
                                   stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while not (target / "conversion.unfinished").exists() and time.monotonic() < until:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        killed = process.wait() != 0
        if killed:  # a quick machine may have finished
            done = run("serve", "--data", target, "--kafka", f"127.0.0.1:{free_port()}",
                       "--http", f"127.0.0.1:{free_port()}")
            self.check_refused(done, 1, "unfinished conversion", str(source), "--layout rocketmq")
            self.convert(source, target, "rocketmq")
        self.assertFalse((target / "conversion.unfinished").exists())
        broker = self.serve(name="rocketmq")
        self.assertEqual(self.consumed(broker), seen)
        self.assertEqual(broker.end(), 0)

    def test_refusals_are_one_line_and_change_nothing(self):
        broker = self.serve()
        self.assertEqual(run("topic", "create", "t", "-b", broker.address).returncode, 0)
        target = self.folder / "new"
        done = run("convert", broker.data, target, "--layout", "rocketmq")
        self.check_refused(done, 1, str(broker.data), "in use", str(broker.process.pid))
        self.assertFalse(target.exists())
        self.assertEqual(broker.end(), 0)
        before = tree(self.folder)
        for arguments, code, words in [
                (("convert", broker.data, target), 2, ("--layout",)),
                (("convert", broker.data, target, "--layout", "tape"), 2, ("--layout",)),
                (("convert", broker.data, target, "--layout", "kafka", "--set", "x"), 2,
                 ("--set",)),
                (("convert", broker.data, self.folder, "--layout", "kafka"), 1, ("in each other",)),
                (("convert", self.folder / "none", target, "--layout", "kafka"), 1, ("none",)),
                (("convert", broker.data, target, "--layout", "kafka", "--exclude", "x"), 1,
                 ("--exclude x",))]:
            with self.subTest(arguments=arguments):
                self.check_refused(run(*arguments), code, *words)
                self.assertEqual(tree(self.folder), before)

    def described(self, broker, topic):
        done = run("topic", "describe", topic, "--json", "-b", broker.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["topics"][0]

    def committed(self, broker, group):
        done = run("group", "describe", group, "--json", "-b", broker.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for offset in json.loads(done.stdout)["groups"][0]["offsets"]:
            if offset["committed"] is not None:
                at = found.setdefault(offset["topic"], {})
                at[str(offset["partition"])] = offset["committed"]
        return found

    def test_a_kafka_directory_with_its_settings_and_groups(self):
        source = self.folder / "source"
        shutil.copytree(GOLDEN / "kafka_directory/written", source)
        wanted = json.loads((GOLDEN / "kafka_directory/described.json").read_text())
        for layout in ("kafka", "rocketmq", "segment"):
            # Only Kafka's layout takes compacted topics; RocketMQ's keeps nothing for ever.
            left_out = {"kafka": [], "rocketmq": ["compacted", "forever"],
                        "segment": ["compacted"]}[layout]
            options = [word for topic in left_out for word in ("--exclude", topic)]
            with self.subTest(layout=layout):
                said = self.convert(source, self.folder / layout, layout,
                                    "--set", "fileReservedTime=1000000", *options)
                self.assertNotIn("server.properties", said)
                broker = self.serve(name=layout, settings={"fileReservedTime": 1000000})
                for topic, before in wanted["topics"].items():
                    if topic in left_out:
                        continue
                    found = self.described(broker, topic)
                    id_bytes = uuid.UUID(before["id"]).bytes
                    self.assertEqual(found["id"],
                                     base64.urlsafe_b64encode(id_bytes).decode().rstrip("="))
                    self.assertEqual(len(found["partitions"]), before["partitions"])
                    own = {config["name"]: config["value"] for config in found["configs"]
                           if config["source"] == "topic"}
                    self.assertEqual(own.pop("polylog.layout"), layout)
                    self.assertEqual(own, before["configs"], topic)
                cluster = run("config", "list", "cluster", "-b", broker.address)
                self.assertIn("86400000", cluster.stdout)
                for group, topics in wanted["groups"].items():
                    kept = {topic: offsets for topic, offsets in topics.items()
                            if topic not in left_out}
                    found = self.committed(broker, group)
                    self.assertEqual({topic: found[topic] for topic in kept}, kept)
                # A group goes on from there, and a second conversion keeps what it commits.
                done = run("group", "reset", "billing", "-t", "orders:0", "--to-offset", "4",
                           "--execute", "-b", broker.address)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(broker.end(), 0)
                self.convert(self.folder / layout, self.folder / f"{layout}-again", "kafka",
                             "--set", "fileReservedTime=1000000")
                broker = self.serve(name=f"{layout}-again")
                self.assertEqual(self.committed(broker, "billing")["orders"], {"0": 4, "1": 1})
                self.assertEqual(broker.end(), 0)

    def test_a_directory_of_kafkas_own(self):
        source = self.folder / "source"
        shutil.copytree(GOLDEN / "kafka_log/clean", source)
        with open(source / ".lock", "w", encoding="utf-8") as held:
            fcntl.lockf(held, fcntl.LOCK_EX)
            self.check_refused(run("convert", source, self.folder / "data", "--layout", "kafka"), 1,
                               "in use")
        before = contents(source)
        said = self.convert(source, self.folder / "data", "kafka")
        self.assertIn("6 topics", said)
        self.assertEqual(contents(source), before)
        broker = self.serve(name="data")
        listed = run("topic", "list", "-b", broker.address)
        for topic in ("compacted", "plain", "transactions", "trimmed"):
            self.assertIn(topic, listed.stdout)
        self.assertEqual(broker.end(), 0)


if __name__ == "__main__":
    unittest.main()
