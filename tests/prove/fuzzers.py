"""Every fuzz target for some seconds, from its small corpus: no crash, no leak, no endless loop, no
allocation from an unchecked length."""

import os
import re
import subprocess

import paths
import scenario


class Fuzzers(scenario.Scenario):
    name = "fuzz"
    checks = "libFuzzer with address and undefined-behaviour sanitizers over every decoder"
    builds = ("fuzz:fuzz_targets",)
    seconds = {"ci": 75, "long": 1200}

    def run(self):
        """ctest knows the targets, their corpora and their limits."""
        build = paths.BUILD_DIR / "fuzz"
        if not (build / "CTestTestfile.cmake").exists():
            raise scenario.Failed("the fuzz targets are not built")
        # `./dev prove` configured the time a target runs.
        done = subprocess.run(["ctest", "--test-dir", build, "-L", "^fuzz$", "-V",
                               "--no-tests=error"], env=dict(os.environ), text=True,
                              capture_output=True, check=False, errors="replace")
        print(done.stdout, flush=True)
        for runs in re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stdout):
            self.count("targets")
            self.count("inputs", int(runs))
        failed = re.findall(r"^\s*\d+ - (\S+) \(", done.stdout, re.MULTILINE)
        self.require(done.returncode == 0, f"failed: {failed or done.stdout[-1500:]}")
        self.require(self.counts.get("targets", 0) > 10, "hardly a target ran")
