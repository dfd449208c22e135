"""What every interop and crash test starts from: unittest, a scratch folder, one broker.

Sizes: QUICK by default; POLYLOG_TEST_FULL=1 for the long form. POLYLOG_TEST_KEEP=1 keeps the
scratch folder of a run.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import brokers

FULL = os.environ.get("POLYLOG_TEST_FULL") == "1"


def size(quick, full):
    return full if FULL else quick


def scratch_folder(name):
    return pathlib.Path(tempfile.mkdtemp(prefix=f"polylog-{name}-"))


class BrokerTest(unittest.TestCase):
    """One broker for all tests of a class, in a scratch folder of its own."""

    settings = {}
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = scratch_folder(cls.__name__)
        cls.addClassCleanup(cls._clean)
        cls.broker = brokers.broker_under_test(cls.folder / "data", cls.settings)
        cls.prepare()
        cls.broker.start()

    @classmethod
    def prepare(cls):
        """Before the broker starts."""

    @classmethod
    def _clean(cls):
        if hasattr(cls, "broker"):
            cls.broker.close()
        if os.environ.get("POLYLOG_TEST_KEEP") == "1":
            print(f"kept {cls.folder}", file=sys.stderr)
        else:
            shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self):
        if not self.broker.alive():
            self.fail(f"the broker is gone:\n{self.broker.tail()}")

    def connect(self, **options):
        connection = self.broker.connect(**options)
        self.addCleanup(connection.close)
        return connection

    def topic(self, name, partitions=1, configs=None):
        """Creates a topic; the name is made unique by the test's own."""
        with self.broker.connect() as connection:
            error, message = connection.create_topic(name, partitions, configs)
        self.assertEqual(error, 0, f"creating {name}: {message}")
        return name


def main():
    unittest.main(module="__main__", verbosity=2, failfast=False)
