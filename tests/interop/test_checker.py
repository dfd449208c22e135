"""The independent checker accepts what Kafka wrote and complains about every kind of damage."""

import shutil
import struct
import unittest

import dependencies
import kafka_log
import testbed

GOLDEN = dependencies.SOURCE_DIR / "tests" / "golden" / "kafka_log"


class Checker(unittest.TestCase):
    def setUp(self):
        self.folder = testbed.scratch_folder("Checker")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def complaints(self, clean=True):
        return kafka_log.check_log_dir(self.folder / "logs", clean, compacted=("compacted",))

    def fresh(self, kind="clean"):
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        shutil.copytree(GOLDEN / kind, self.folder / "logs")
        return self.folder / "logs"

    def test_what_kafka_wrote_is_fine(self):
        for kind in ("clean", "killed"):
            self.fresh(kind)
            self.assertEqual(self.complaints(kind == "clean"), [])

    def damage(self, name, change, expected):
        path = self.fresh() / "plain-0" / name
        path.write_bytes(change(path.read_bytes()))
        with self.subTest(name=name, expected=expected):
            self.assertTrue(any(expected in complaint for complaint in self.complaints()),
                            self.complaints())

    def test_damage_is_seen(self):
        log, index = "00000000000000000053.log", "00000000000000000053.index"
        times = "00000000000000000053.timeindex"
        self.damage(log, lambda d: d[:-3], "bytes remaining")
        self.damage(log, lambda d: d[:100] + bytes([d[100] ^ 1]) + d[101:], "isvalid: false")
        self.damage(log, lambda d: struct.pack(">q", 54) + d[8:], "Non-consecutive")
        self.damage(index, lambda d: d[:-8] + struct.pack(">ii", 30, 17), "no batch starts")
        self.damage(index, lambda d: d + b"\x00", "no multiple")
        self.damage(index, lambda d: d + d[-8:], "does not rise")
        self.damage(times, lambda d: d[:-12], "largest timestamp")
        self.damage(times, lambda d: struct.pack(">q", 5) + d[8:], "timestamp mismatch")
        self.damage("00000000000000000094.snapshot", lambda d: d[:-1] + b"\x07", "snapshot CRC")
        self.damage("leader-epoch-checkpoint", lambda d: b"0\n1\n3 0\n", "the file says 3")
        self.damage("partition.metadata", lambda d: d + b"\n", "not as Kafka writes it")

    def test_missing_files_are_seen(self):
        for name, expected in (("plain-0/00000000000000000094.snapshot", "no 000"),
                               ("plain-0/00000000000000000000.index", "no .index"),
                               (".kafka_cleanshutdown", "missing"),
                               ("recovery-point-offset-checkpoint", "after a clean stop")):
            (self.fresh() / name).unlink()
            with self.subTest(name):
                self.assertTrue(any(expected in complaint for complaint in self.complaints()))

    def test_a_foreign_folder_is_seen(self):
        (self.fresh() / "polylog").mkdir()
        self.assertTrue(any("refuse to start" in complaint for complaint in self.complaints()))


if __name__ == "__main__":
    testbed.main()
