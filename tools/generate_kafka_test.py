#!/usr/bin/env python3
"""The generator of the Kafka codecs against its golden example, and its refusals.

With --accept, the example's expected output is written anew.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests/golden/kafka_generator"
FILES = ("example.h", "example.cc")


def generate(schema, out):
    """Runs the generator; the process, its output as text."""
    return subprocess.run([sys.executable, ROOT / "tools/generate_kafka.py", "--out", out, schema],
                          text=True, capture_output=True)


class GeneratorTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def refusal(self, **changes):
        """What the generator says about a schema with one int32 field, changed as told."""
        schema = {"type": "data", "name": "Small", "validVersions": "0-2",
                  "flexibleVersions": "2+",
                  "fields": [{"name": "Count", "type": "int32", "versions": "0+"}]}
        schema.update(changes)
        path = self.scratch / "Small.json"
        path.write_text(json.dumps(schema))
        done = generate(path, self.scratch / "out")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.scratch / "out").exists())
        return done.stderr

    def test_the_example_comes_out_as_expected(self):
        done = generate(GOLDEN / "Example.json", self.scratch)
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in FILES:
            self.assertEqual((self.scratch / file).read_text(),
                             (GOLDEN / "protocol/kafka" / file).read_text(), file)

    def test_unchanged_output_keeps_its_time(self):
        generate(GOLDEN / "Example.json", self.scratch)
        before = (self.scratch / "example.h").stat().st_mtime_ns
        generate(GOLDEN / "Example.json", self.scratch)
        self.assertEqual((self.scratch / "example.h").stat().st_mtime_ns, before)

    def test_an_unknown_type_is_refused(self):
        fields = [{"name": "Count", "type": "int24", "versions": "0+"}]
        self.assertIn("int24", self.refusal(fields=fields))

    def test_a_tag_outside_flexible_versions_is_refused(self):
        fields = [{"name": "Count", "type": "int32", "versions": "0+", "taggedVersions": "1+",
                   "tag": 0}]
        self.assertIn("not flexible", self.refusal(fields=fields))

    def test_a_tag_used_twice_is_refused(self):
        field = {"type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0}
        fields = [dict(field, name="One"), dict(field, name="Two")]
        self.assertIn("a tag twice", self.refusal(fields=fields))

    def test_an_array_of_nothing_is_refused(self):
        # Such an element takes no byte, so no number of bytes would bound its count.
        fields = [{"name": "All", "type": "[]Empty", "versions": "0+", "fields": []}]
        self.assertIn("empty", self.refusal(fields=fields))

    def test_a_malformed_range_of_versions_is_refused(self):
        fields = [{"name": "Count", "type": "int32", "versions": "from 3"}]
        self.assertIn("from 3", self.refusal(fields=fields))

    def test_a_request_without_a_response_is_refused(self):
        self.assertIn("response", self.refusal(type="request", apiKey=5))


if __name__ == "__main__":
    if sys.argv[1:] == ["--accept"]:
        expected = GOLDEN / "protocol/kafka"
        expected.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            generate(GOLDEN / "Example.json", folder).check_returncode()
            for name in FILES:
                (expected / name).write_text((pathlib.Path(folder) / name).read_text())
    else:
        unittest.main()
