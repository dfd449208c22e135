"""Crash states and failed calls on the simulated disk, by the programs of tests/crash."""

import os
import re
import subprocess

import paths
import scenario


class CrashStates(scenario.Scenario):
    """Every legal state of a disk after a power cut, at each I/O step of random workloads; each
    I/O call failed once with EIO, ENOSPC and a short write."""

    layout = ""
    checks = ("after every crash state and every failed call: nothing acknowledged lost, no shown "
              "offset changed, no acknowledgement after a failed sync")
    seconds = {"ci": 60, "long": 2400}

    def run(self):
        program = paths.built("release", f"{self.layout}_crash_states_test")
        if program is None:
            raise scenario.Failed(f"{self.layout}_crash_states_test is not built")
        env = dict(os.environ, POLYLOG_CRASH_STATES=str(self.size(20_000, 700_000)),
                   POLYLOG_CRASH_SEED=str(self.seed))
        done = subprocess.run([program, "--gtest_brief=1"], env=env, text=True,
                              capture_output=True, check=False)
        print(done.stdout, done.stderr, flush=True)
        self.require(done.returncode == 0,
                     f"ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
        for states in re.findall(r"^(\d+) crash states", done.stdout, re.MULTILINE):
            self.count("crash states", int(states))
        for calls in re.findall(r"^(\d+) failed calls", done.stdout, re.MULTILINE):
            self.count("failed calls", int(calls))
        self.require(self.counts.get("crash states", 0) >= 20_000 and
                     self.counts.get("failed calls", 0) > 0, "it did not count what was asked for")


class KafkaStates(CrashStates):
    name, layout = "states-kafka", "kafka"
    builds = ("release:kafka_crash_states_test",)


class RocketmqStates(CrashStates):
    name, layout = "states-rocketmq", "rocketmq"
    builds = ("release:rocketmq_crash_states_test",)


class SegmentStates(CrashStates):
    name, layout = "states-segment", "segment"
    builds = ("release:segment_crash_states_test",)


class FlippedBits(scenario.Scenario):
    """One flipped bit in one file of a store, by the program of tests/crash."""

    name = "flipped-bits"
    checks = "each layout, closed and killed, through the engine: no wrong byte is served"
    builds = ("release:flipped_bit_test",)
    seconds = {"ci": 30, "long": 1200}

    def run(self):
        program = paths.built("release", "flipped_bit_test")
        if program is None:
            raise scenario.Failed("flipped_bit_test is not built")
        env = dict(os.environ, POLYLOG_FLIPS=str(self.size(200, 8000)))
        done = subprocess.run([program, "--gtest_brief=1"], env=env, text=True,
                              capture_output=True, check=False)
        print(done.stdout, done.stderr, flush=True)
        self.require(done.returncode == 0, f"ended with {done.returncode}: {done.stdout[-1500:]}")
        for flips in re.findall(r"^(\d+) flips", done.stdout, re.MULTILINE):
            self.count("flips", int(flips))
        self.require(self.counts.get("flips", 0) >= 1000, "too few flips")
