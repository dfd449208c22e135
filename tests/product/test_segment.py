"""Topics in the segment layout under a running broker: what it does to them by itself."""

import time
import unittest

from program import PATIENCE_SECONDS, ProductTest, run


class SegmentTest(ProductTest):
    def wait_for(self, holds, what):
        until = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.05)

    def files(self, broker, topic):
        folder = broker.data / "segment" / f"{topic}-0"
        return {int(path.stem): path.stat().st_size for path in folder.glob("*.msg")}

    def produced(self, broker, topic, lines):
        done = run("produce", "-t", topic, "-b", broker.address, stdin="".join(lines))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_topic_that_nobody_writes_to_any_more_expires(self):
        broker = self.serve(settings={"polylog.layout": "segment",
                                      "log.retention.check.interval.ms": 200})
        for topic, setting in (("by-time", "retention.ms=1500"), ("by-size", "retention.bytes=0"),
                               ("kept", "retention.ms=-1")):
            done = run("topic", "create", topic, "-c", setting, "-c", "segment.ms=1000",
                       "-b", broker.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.produced(broker, topic, ["one\n", "two\n"])
        for topic in ("by-time", "by-size"):
            self.wait_for(lambda name=topic: list(self.files(broker, name).values()) == [0], topic)
            self.assertNotIn(0, self.files(broker, topic))
            consumed = run("consume", "-t", topic, "-e", "-b", broker.address)
            self.assertEqual((consumed.returncode, consumed.stdout), (0, ""))
        # One that may keep everything is sealed by age all the same.
        self.wait_for(lambda: sorted(self.files(broker, "kept")) == [0, 1], "kept")
        consumed = run("consume", "-t", "kept", "-e", "-b", broker.address)
        self.assertEqual(consumed.stdout, "one\ntwo\n")
        # Offsets go on after a kill, too.
        broker.close()
        broker.start()
        for topic in ("by-time", "by-size", "kept"):
            self.produced(broker, topic, ["three\n"])
            consumed = run("consume", "-t", topic, "-e", "--json", "-b", broker.address)
            self.assertIn('"offset":2', consumed.stdout.replace(" ", ""))
        self.assertEqual(broker.end(), 0)


if __name__ == "__main__":
    unittest.main()
