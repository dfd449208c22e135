"""How many lines of the decoders are run by their unit tests and by the fuzz targets' corpora."""

import json
import os
import re
import subprocess

import paths
import scenario

# Decoders are everything in these folders, the codecs generated into them included, and these
# files elsewhere that read what lies on a disk.
FOLDERS = ("src/bytes", "src/format", "src/protocol")
FILES = ("src/journal/entries.cc",
         "src/storage/filelog/block_check.cc", "src/storage/filelog/block_sums.cc",
         "src/storage/filelog/fixed_entries.cc", "src/storage/filelog/producer_note.cc",
         "src/storage/filelog/sidecar_codec.cc", "src/storage/filelog/sidecar_records.cc",
         "src/storage/rocketmq/key_index.cc", "src/storage/rocketmq/queue_states.cc",
         "src/storage/segment/position_index.cc")
# What else uses a reader, or lies in a folder of decoders, and why it does not count.
ELSEWHERE = {
    "src/cli/group_record_text.cc": "the client's side: prints one record for its user",
    "src/cli/group_view.cc": "the client's side: shows what a broker answered",
    "src/format/kafka/fields.h": "runs in the compiler only, in static assertions",
    "src/storage/filelog/memory_index.cc": "stands in for RocksDB in tests; no broker opens it",
    "src/server/kafka/service.cc": "looks at three fields before the header's decoder does",
}
READS = re.compile(r"\bByteReader\b")
NOT_SHIPPED = re.compile(r"_(test|fuzz)\.cc$|_rig\.(cc|h)$|/golden_[^/]*\.h$|/check_values\.h$")

TOTAL_MIN, FILE_MIN = 90.0, 80.0  # percent

TESTS = ("bytes_test", "filelog_test", "format_kafka_test", "format_rocketmq_test",
         "format_segment_test", "format_transcode_test", "journal_test", "protocol_kafka_test",
         "storage_rocketmq_test", "storage_segment_test")
CORPORA = ("group_records_fuzz", "journal_fuzz", "kafka_cluster_metadata_fuzz",
           "kafka_consumer_groups_fuzz", "kafka_decompress_fuzz", "kafka_files_fuzz",
           "kafka_frames_fuzz", "kafka_request_fuzz", "kafka_response_fuzz",
           "kafka_validate_fuzz", "reader_fuzz", "robustmq_fuzz",
           "rocketmq_files_fuzz", "rocketmq_message_fuzz", "segment_record_fuzz",
           "segment_transcode_fuzz", "sidecar_fuzz", "transcode_fuzz")


def counts_as_decoder(path):
    """Whether a source, relative to the tree, is one of the decoders."""
    folder = any(path.startswith(folder + "/") for folder in FOLDERS)
    return (folder or path in FILES) and path not in ELSEWHERE and not NOT_SHIPPED.search(path)


def sources():
    """Every source of the tree, relative to it."""
    for path in sorted((paths.SOURCE_DIR / "src").rglob("*")):
        if path.suffix in (".cc", ".h"):
            yield str(path.relative_to(paths.SOURCE_DIR))


def forgotten():
    """Sources that read bytes and are neither counted nor named with a reason."""
    for path in sources():
        if counts_as_decoder(path) or path in ELSEWHERE or NOT_SHIPPED.search(path):
            continue
        if READS.search((paths.SOURCE_DIR / path).read_text()):
            yield path


class DecoderCoverage(scenario.Scenario):
    name = "decoder-coverage"
    checks = (f"lines of every decoder that unit tests and corpora run: at least {TOTAL_MIN:.0f} % "
              f"of all, {FILE_MIN:.0f} % of each file; no source that reads bytes is forgotten")
    builds = tuple(f"coverage:{program}" for program in (*TESTS, *CORPORA))
    seconds = {"ci": 50, "long": 50}

    def run(self):
        build = paths.BUILD_DIR / "coverage"
        if not (build / "CTestTestfile.cmake").exists():
            raise scenario.Failed("the coverage build is not there")
        for path in forgotten():
            self.problems.append(f"{path} reads bytes and is neither counted nor named with a "
                                 "reason in tests/prove/decoder_coverage.py")
        self.run_programs(build)
        covered = self.covered_lines(build)
        self.judge_lines(covered)

    def run_programs(self, build):
        """ctest knows the corpora."""
        programs = (*TESTS, *CORPORA)
        env = dict(os.environ, LLVM_PROFILE_FILE=str(self.folder / "%p.profraw"))
        done = subprocess.run(["ctest", "--test-dir", build, "-R", f"^({'|'.join(programs)})$",
                               "--output-on-failure", "--no-tests=error"], env=env, text=True,
                              capture_output=True, check=False, errors="replace")
        print(done.stdout, flush=True)
        passed = re.findall(r"^ *\d+/\d+ Test .* Passed ", done.stdout, re.MULTILINE)
        self.count("programs", len(passed))
        self.require(done.returncode == 0 and len(passed) == len(programs),
                     f"{len(passed)} of {len(programs)} programs passed: {done.stdout[-1500:]}")

    def covered_lines(self, build):
        """Per decoder: lines run, lines there are."""
        merged = self.folder / "all.profdata"
        self.tool("llvm-profdata-19", "merge", "-sparse", "-o", merged,
                  *self.folder.glob("*.profraw"))
        objects = [part for program in (*TESTS, *CORPORA) for part in ("-object", build / program)]
        report = json.loads(self.tool("llvm-cov-19", "export", "-summary-only",
                                      f"-instr-profile={merged}", *objects[1:]))
        covered = {}
        for entry in report["data"][0]["files"]:
            path = entry["filename"]
            for root in (build, paths.SOURCE_DIR):
                path = path.removeprefix(f"{root}/")
            lines = entry["summary"]["lines"]
            if counts_as_decoder(path) and lines["count"] > 0:
                covered[path] = (lines["covered"], lines["count"])
        return covered

    def tool(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise scenario.Failed(f"{command[0]} ended with {done.returncode}: "
                                  f"{done.stderr[-500:]}")
        return done.stdout

    def judge_lines(self, covered):
        for path in sources():
            if path.endswith(".cc") and counts_as_decoder(path):
                self.require(path in covered, f"{path}: no program of this scenario has it")
        for path, (run, there) in sorted(covered.items(), key=lambda item: item[1][0] / item[1][1]):
            percent = 100 * run / there
            print(f"{percent:6.1f} % {run:5} of {there:5}  {path}")
            self.require(percent >= FILE_MIN, f"{path}: {run} of {there} lines are run")
        run, there = (sum(column) for column in zip(*covered.values()))
        print(f"{100 * run / there:6.1f} % {run:5} of {there:5}  all", flush=True)
        self.count("decoder files", len(covered))
        self.count("lines", there)
        self.figure("lines run, %", round(100 * run / there, 1))
        self.figure("least of a file, %", round(min(100 * r / t for r, t in covered.values()), 1))
        self.require(100 * run / there >= TOTAL_MIN, f"{run} of {there} lines are run")
