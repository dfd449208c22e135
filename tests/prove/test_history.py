"""The history checker says nothing about a good history, and finds every planted anomaly."""

import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import paths  # noqa: E402,F401
import history  # noqa: E402
import stores  # noqa: E402

PLACE = ("topic", 0)


class Rig(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.history = history.History(clock=lambda: self.now)
        self.writer, self.reader = (self.history.session(n) for n in ("writer", "reader"))
        self.log = []

    def write(self, *values, offset=None, session=None, place=PLACE, log=True, **options):
        """An acknowledged write that is in the log at the end."""
        sent = (session or self.writer).write(place, values, **options)
        at = len(self.log) if offset is None else offset
        sent.ok(at)
        if log:
            self.log += [(at + n, value) for n, value in enumerate(values)]
        return sent

    def rules(self, start=0, end=None, final=True):
        if final:
            end = max([o for o, _ in self.log], default=-1) + 1 if end is None else end
            self.history.final(PLACE, start, end, self.log)
        return sorted({anomaly.rule for anomaly in self.history.check()})


class GoodHistories(Rig):
    def test_writes_and_polls_in_order(self):
        self.write(b"a", b"b")
        self.write(b"c" * 1000)
        self.reader.poll(PLACE, 0, self.log[:2])
        self.reader.poll(PLACE, 2, self.log[2:])
        self.assertEqual(self.rules(), [])
        self.assertEqual(self.history.size(), 3 + 3 + 3)

    def test_unknown_writes_may_be_there_or_not(self):
        self.writer.write(PLACE, [b"not there"])
        self.writer.write(PLACE, [b"there"])
        self.log = [(0, b"there")]
        self.assertEqual(self.rules(), [])

    def test_answers_after_the_power_went_count_for_nothing(self):
        self.history.power(False)
        self.write(b"a", log=False)
        self.reader.poll(PLACE, 0, [(0, b"a")])
        self.history.power(True)
        self.write(b"b")
        self.assertEqual(self.rules(), [])

    def test_deleted_records_are_not_lost(self):
        self.write(b"a", b"b")
        self.log = self.log[1:]
        self.assertEqual(self.rules(start=1), [])

    def test_a_retry_without_idempotence_may_be_there_twice(self):
        self.writer.write(PLACE, [b"a"]).retried()
        self.log = [(0, b"a"), (1, b"a")]
        self.assertEqual(self.rules(), [])

    def test_a_cut_may_take_what_was_not_promised(self):
        self.history.shows_early(PLACE)
        self.write(b"old", may_lose_s=1.0)
        self.now = 5.0
        self.write(b"young", may_lose_s=1.0, log=False)
        self.reader.poll(PLACE, 0, [(0, b"old"), (1, b"young")])
        self.now = 5.5
        self.history.power(False)
        self.history.power(True)
        self.reader.truncated(PLACE, 1)
        self.write(b"new", offset=1, may_lose_s=1.0)
        self.reader.poll(PLACE, 1, [(1, b"new")])
        self.assertEqual(self.rules(), [])
        self.assertEqual(self.history.figures["may lose, lost"], 1)

    def test_damaged_records_may_be_missing(self):
        self.write(b"a", b"b")
        self.log = self.log[1:]
        self.history.damaged(PLACE, [0])
        self.assertEqual(self.rules(), [])

    def test_groups(self):
        self.history.owns("g", 1, "a", [0, 1])
        self.history.owns("g", 2, "a", [0])
        self.history.owns("g", 2, "b", [1])
        for offset in (1, 1, 5):
            self.history.committed("g", PLACE, offset)
        self.history.reset("g", PLACE)
        self.history.committed("g", PLACE, 0)
        self.assertEqual(self.rules(), [])


class PlantedAnomalies(Rig):
    def test_lost(self):
        self.write(b"a")
        self.write(b"b", log=False, offset=1)
        self.write(b"c", offset=2)
        self.assertEqual(self.rules(), ["lost"])

    def test_lost_though_it_was_shown(self):
        self.write(b"a")
        self.writer.write(PLACE, [b"b"])
        self.reader.poll(PLACE, 0, [(0, b"a"), (1, b"b")])
        self.assertEqual(self.rules(), ["lost"])

    def test_lost_without_a_known_offset(self):
        self.write(b"a")
        self.writer.write(PLACE, [b"b"]).ok()
        self.assertEqual(self.rules(), ["lost"])

    def test_lost_before_the_last_interval(self):
        self.write(b"a", may_lose_s=1.0, log=False)
        self.now = 1.5
        self.history.power(False)
        self.history.power(True)
        self.write(b"b", offset=0, session=self.reader)
        self.assertEqual(self.rules(), ["lost"])

    def test_lost_from_the_middle(self):
        self.write(b"a", may_lose_s=1.0, log=False, offset=0)
        self.write(b"b", may_lose_s=1.0, offset=1)
        self.history.power(False)
        self.history.power(True)
        self.assertEqual(self.rules(), ["lost"])

    def test_aborted_read(self):
        self.writer.write(PLACE, [b"refused"]).failed()
        self.log = [(0, b"refused")]
        self.assertEqual(self.rules(), ["aborted-read"])

    def test_aborted_read_by_a_session(self):
        self.writer.write(PLACE, [b"refused"]).failed()
        self.history.shows_early(PLACE)
        self.reader.poll(PLACE, 0, [(0, b"refused")])
        self.assertEqual(self.rules(), ["aborted-read"])

    def test_wrong_bytes(self):
        self.write(b"a" * 100)
        self.log = [(0, b"a" * 99 + b"b")]
        self.assertIn("aborted-read", self.rules())

    def test_wrong_bytes_where_damage_was_done(self):
        self.write(b"a" * 100)
        self.history.damaged(PLACE, [0])
        self.log = [(0, b"a" * 99 + b"b")]
        self.assertIn("aborted-read", self.rules())

    def test_inconsistent_offset(self):
        self.write(b"a", log=False)
        self.write(b"b", offset=0)
        self.assertIn("inconsistent-offset", self.rules())

    def test_inconsistent_offset_across_a_cut(self):
        self.write(b"a", b"b")
        self.reader.poll(PLACE, 0, [(0, b"a")])
        self.history.power(False)
        self.history.power(True)
        self.history.session("another").poll(PLACE, 0, [(0, b"b")])
        self.assertEqual(self.rules(), ["inconsistent-offset"])

    def test_another_offset_than_answered(self):
        self.write(b"a", log=False, offset=0)
        self.log = [(1, b"a")]
        self.assertIn("inconsistent-offset", self.rules())

    def test_duplicate(self):
        self.write(b"a")
        self.log.append((1, b"a"))
        self.assertEqual(self.rules(), ["duplicate"])

    def test_duplicate_of_an_idempotent_retry(self):
        self.write(b"a", idempotent=True).retried()
        self.log.append((1, b"a"))
        self.assertEqual(self.rules(), ["duplicate"])

    def test_non_monotonic_send(self):
        self.write(b"a", offset=1)
        self.write(b"b", offset=0)
        self.assertEqual(self.rules(), ["non-monotonic"])

    def test_non_monotonic_send_without_known_offsets(self):
        self.writer.write(PLACE, [b"a"]).ok()
        self.writer.write(PLACE, [b"b"]).ok()
        self.log = [(0, b"b"), (1, b"a")]
        self.assertEqual(self.rules(), ["non-monotonic"])

    def test_non_monotonic_poll(self):
        self.write(b"a", b"b")
        self.reader.poll(PLACE, 0, self.log)
        self.reader.poll(PLACE, 2, self.log[1:])
        self.assertEqual(self.rules(), ["non-monotonic"])

    def test_skipped_between_polls(self):
        self.write(b"a", b"b", b"c")
        self.reader.poll(PLACE, 0, self.log[:1])
        self.reader.poll(PLACE, 1, self.log[2:])
        self.assertEqual(self.rules(), ["skipped"])

    def test_skipped_within_a_poll(self):
        self.write(b"a", b"b", b"c")
        self.reader.poll(PLACE, 0, self.log[::2])
        self.assertEqual(self.rules(), ["skipped"])

    def test_unseen(self):
        self.write(b"a")
        self.write(b"b", log=False, offset=1)
        self.assertEqual(self.rules(), ["unseen"])

    def test_unseen_as_nobody_looked(self):
        self.write(b"a")
        self.assertEqual(self.rules(final=False), ["unseen"])

    def test_offset_reuse(self):
        self.history.shows_early(PLACE)
        self.write(b"a", may_lose_s=1.0, log=False)
        self.reader.poll(PLACE, 0, [(0, b"a")])
        self.history.power(False)
        self.history.power(True)
        self.write(b"b", offset=0)
        self.reader.seek(PLACE)
        self.reader.poll(PLACE, 0, [(0, b"b")])
        self.assertEqual(self.rules(), ["offset-reuse"])

    def test_two_owners(self):
        self.history.owns("g", 7, "a", [0, 1])
        self.history.owns("g", 7, "b", [1])
        self.assertEqual(self.rules(), ["group"])

    def test_committed_offset_goes_back(self):
        for offset in (1, 5, 4):
            self.history.committed("g", PLACE, offset)
        self.assertEqual(self.rules(), ["group"])

    def test_what_a_scenario_saw(self):
        self.history.note("promise", "an acknowledgement after a failed sync")
        self.assertEqual(self.rules(), ["promise"])


class RocketmqStores(Rig):
    """Rule consume-queue, on a store that RocketMQ itself wrote."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="polylog-history-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        stores.unpack_golden(self.folder)

    def found(self, file=None, change=None):
        if file is not None:
            path = next(iter(sorted(self.folder.glob(file))))
            path.write_bytes(change(bytearray(path.read_bytes())))
        stores.note_rocketmq(self.history, self.folder, stores.GOLDEN_SIZES)
        return sorted({anomaly.rule for anomaly in self.history.check()})

    def test_a_good_store(self):
        self.assertEqual(self.found(), [])

    def test_an_entry_without_a_record(self):
        def change(data):
            data[7] ^= 0x40
            return data
        self.assertEqual(self.found("consumequeue/*/*/*", change), ["consume-queue"])

    def test_a_foreign_tag_hash(self):
        def change(data):
            data[19] ^= 1
            return data
        self.assertEqual(self.found("consumequeue/*/*/*", change), ["consume-queue"])

    def test_a_record_without_an_entry(self):
        def change(data):
            return bytes(len(data))
        self.assertEqual(self.found("consumequeue/*/*/*", change), ["consume-queue"])

    def test_a_key_that_leads_elsewhere(self):
        def change(data):
            slots = stores.GOLDEN_SIZES.index_slots
            data[40 + 4 * slots + 20 + 11] ^= 8
            return data
        self.assertEqual(self.found("index/*", change), ["consume-queue"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
