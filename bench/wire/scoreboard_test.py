#!/usr/bin/env python3
"""What the scoreboard makes of numbers: verdicts, tables, the picture. No broker runs here."""

import signal
import types
import unittest
import xml.etree.ElementTree

import contestants
import scoreboard_checks
import scoreboard_plot
import scoreboard_report

BESIDE_MOCK = "100 B, memory: rate beside mock"
LAYOUTS = ("polylog kafka", "polylog rocketmq", "polylog segment")


def numbers(**changes):
    return {"rate": 100_000.0, "megabytes_per_second": 102.4, "client_cpu_s_per_million": 1.0,
            "broker_cpu_s_per_million": 2.0, "peak_rss_mib": 30.0, "written_per_accepted": 1.1,
            "rounds": 3, "quiet": True, **changes}


def cell(name, mode, of, metric="rate"):
    return {"cell": name, "mode": mode, "metric": metric, "record_bytes": 1024, "of": of,
            "skipped": {}}


def row_of(title, *cells):
    return {"title": title, "noisy_groups": 0, "cells": list(cells)}


def verdicts(row, content):
    return {one["budget"]: one for one in scoreboard_checks.checks({row: content})}


class Verdicts(unittest.TestCase):
    def test_the_worst_layout_decides(self):
        rates = dict(zip(LAYOUTS, (0.9, 0.86, 0.84)))
        of = {name: numbers(x_mock=rate) for name, rate in rates.items()}
        one = verdicts(1, row_of("", cell("100 B", "memory", of)))[BESIDE_MOCK]
        self.assertEqual((one["value"], one["of"], one["met"]), (0.84, "polylog segment", False))
        of["polylog segment"]["x_mock"] = 0.85
        one = verdicts(1, row_of("", cell("100 B", "memory", of)))[BESIDE_MOCK]
        self.assertTrue(one["met"])

    def test_less_is_better_for_time(self):
        of = {name: numbers(p50_us=us) for name, us in zip(LAYOUTS, (9_000, 10_001, 8_000))}
        of["Kafka"] = numbers(p50_us=400_000)
        found = verdicts(4, row_of("", cell("1,000 partitions", "durable", of, "round")))
        self.assertFalse(found["round of 1,000 partitions, ms"]["met"])
        beside = found["rounds beside Kafka, flush.messages=1"]
        self.assertEqual((beside["of"], beside["met"]), ("polylog rocketmq", True))

    def test_rounds_on_a_journal_are_judged_by_themselves(self):
        of = {name: numbers(p50_us=20_000) for name in LAYOUTS}
        of |= {"polylog journal": numbers(p50_us=9_000), "Kafka": numbers(p50_us=400_000)}
        found = verdicts(4, row_of("", cell("1,000 partitions", "durable", of, "round")))
        self.assertEqual({name: one["met"] for name, one in found.items() if "journal" in name},
                         {"round of 1,000 partitions, ms, with the journal": True,
                          "rounds beside Kafka, flush.messages=1, with the journal": True})
        self.assertFalse(found["round of 1,000 partitions, ms"]["met"])

    def test_a_peer_that_is_not_there_is_not_judged(self):
        of = {name: numbers(x_ideal=0.9) for name in LAYOUTS}
        found = verdicts(3, row_of("", cell("16 KiB requests, 1 connection", "durable", of)))
        self.assertEqual(list(found), ["16 KiB requests, 1 connection, durable: rate beside ideal"])

    def test_large_requests_ask_less_of_layouts_behind_the_page_cache(self):
        of = {name: numbers(x_ideal=0.6) for name in LAYOUTS}
        found = verdicts(3, row_of("", cell("1024 KiB requests, 1 connection", "durable", of)))
        self.assertEqual({one["of"]: one["met"] for one in found.values()},
                         {"polylog kafka": True, "polylog rocketmq": False})

    def test_many_partitions_are_judged_by_a_layout_s_own_rate(self):
        few = {name: numbers(rate=100.0) for name in LAYOUTS}
        many = {name: numbers(rate=60.0) for name in LAYOUTS}
        found = verdicts(2, row_of("", cell("1 partitions", "memory", few),
                                   cell("10,000 partitions", "memory", many)))
        self.assertEqual([one["met"] for one in found.values()], [True, False])

    def test_a_start_is_judged_for_each_cache(self):
        of = {name: {"warm": {"ack_s": 0.4}, "cold": {"ack_s": 1.6}} for name in LAYOUTS}
        found = verdicts(8, {"of": of})
        self.assertTrue(found["first acknowledgement, warm, s"]["met"])
        self.assertFalse(found["first acknowledgement, cold, s"]["met"])

    def test_a_start_that_was_measured_with_one_cache_is_judged_for_that(self):
        of = {name: {"cold": {"ack_s": 1.0}} for name in LAYOUTS}
        of["Kafka"] = {"cold": {"ack_s": 20.0}}
        found = verdicts(8, {"of": of})
        self.assertEqual({name: one["met"] for name, one in found.items()},
                         {"first acknowledgement, cold, s": True,
                          "start beside Kafka, cold": True})


class OneAtATime(unittest.TestCase):
    def test_the_others_stand_still_for_one_s_turn_whatever_comes_of_it(self):
        sent = []

        def contestant(name, *pids):
            process = {pid: types.SimpleNamespace(
                send_signal=lambda number, pid=pid: sent.append((pid, number))) for pid in pids}
            brokers = [types.SimpleNamespace(process=process[pid]) for pid in pids]
            brokers.append(types.SimpleNamespace(process=None))  # not running now
            return types.SimpleNamespace(name=name, processes=lambda: brokers)
        running = {"a": contestant("a", 1), "b": contestant("b", 2, 3)}
        with self.assertRaises(ValueError), contestants.alone(running, "a"):
            self.assertEqual(sent, [(2, signal.SIGSTOP), (3, signal.SIGSTOP)])
            raise ValueError
        self.assertEqual(sent[2:], [(2, signal.SIGCONT), (3, signal.SIGCONT)])


class Shown(unittest.TestCase):
    def result(self):
        of = {"polylog kafka": numbers(x_Kafka=2.0, quiet=False), "Kafka": numbers(x_Kafka=1.0)}
        one = cell("100 B", "memory", of)
        one["skipped"]["RocketMQ"] = "it <is> not there"
        rows = {"1": row_of("Produce", one)}
        return {"rows": rows, "checks": scoreboard_checks.checks(rows), "absent": {},
                "versions": {"Kafka": "4"}, "seconds": 60.0,
                "machine": {"cpu": "A & B", "kernel": "6", "time": "now"}}

    def test_a_table_names_who_was_skipped_and_what_was_noisy(self):
        text = "\n".join(scoreboard_report.markdown(self.result()))
        self.assertIn("| RocketMQ | skipped: it <is> not there |", text)
        self.assertIn("3 ~ |", text)
        self.assertIn("| 2.00 |", text)

    def test_a_start_with_one_cache_leaves_the_other_open(self):
        result = self.result()
        result["rows"] = {"8": {"title": "Start", "skipped": {}, "gib": 1,
                                "of": {"Kafka": {"cold": {"ack_s": 2.5}}}}}
        text = "\n".join(scoreboard_report.markdown(result))
        self.assertIn("| Kafka | - | - | - | 2.50 | - | - | - |", text)

    def test_the_picture_is_well_formed_and_has_a_bar_for_each(self):
        tree = xml.etree.ElementTree.fromstring(scoreboard_plot.draw(self.result()))
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(tree.findall(f"{space}rect")), 1 + 2)
        self.assertIn("A & B", " ".join(text.text for text in tree.findall(f"{space}text")))


if __name__ == "__main__":
    unittest.main()
