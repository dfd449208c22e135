"""The built `polylog`, run as a user runs it: on free ports, in a scratch folder."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

BINARY = pathlib.Path(os.environ.get("POLYLOG_BINARY") or
                      pathlib.Path(__file__).resolve().parents[2] / "build/release/polylog")
PATIENCE_SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(*arguments, stdin="", **options):
    """A finished process with text in stdout and stderr."""
    return subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, timeout=PATIENCE_SECONDS, check=False, **options)


class Served:
    """`polylog serve` in a folder of its own; ended by its own pid."""

    def __init__(self, data, settings=None):
        self.data = pathlib.Path(data)
        self.settings = dict(settings or {})
        self.port, self.http_port = free_port(), free_port()
        self.output = self.data.parent / f"{self.data.name}.out"
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def arguments(self):
        arguments = ["serve", "--data", self.data, "--kafka", self.address,
                     "--http", f"127.0.0.1:{self.http_port}"]
        for key, value in self.settings.items():
            arguments += ["--set", f"{key}={value}"]
        return [str(a) for a in arguments]

    def start(self):
        with open(self.output, "wb") as sink:
            self.process = subprocess.Popen([str(BINARY), *self.arguments()], stdout=sink,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_SECONDS
        while not any(line.startswith("polylog ready") for line in self.text().splitlines()):
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"the broker did not start:\n{self.text()}")
            time.sleep(0.01)
        return self

    def text(self):
        return self.output.read_text(errors="replace")

    def end(self, how=signal.SIGTERM):
        """The exit code."""
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            return process.wait(PATIENCE_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def close(self):
        if self.process is not None:
            self.end(signal.SIGKILL)


class ProductTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="polylog-product-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, settings=None, name="data"):
        broker = Served(self.folder / name, settings)
        self.addCleanup(broker.close)
        return broker.start()

    def check_refused(self, done, code, *words):
        """It ended with `code`, having said why in one line, and nothing else."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = [line for line in done.stderr.splitlines() if line.startswith("polylog: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        return lines[0]


def tree(folder):
    """Names and sizes of everything below a folder."""
    return {str(path.relative_to(folder)): path.stat().st_size if path.is_file() else None
            for path in pathlib.Path(folder).rglob("*")}
