#!/usr/bin/env python3
"""Wire benchmarks: polylog beside librdkafka's mock broker, a real Kafka 4.x and others.

    run.py scoreboard  every layout beside all peers, budgets judged (--quick, --plot)
    run.py produce     rate and broker CPU, one partition, 100 B and 1 KiB
    run.py scaling     rate over 1 to 10,000 partitions, every layout, durable and not
    run.py start-up    start after kill -9 with some GiB on disk
    run.py memory      resident memory idle and with many partitions
    run.py clients-memory  resident memory of idle connections and of groups
    run.py all         each of the last five with its defaults

run.py NAME --help lists what can be chosen. One table on standard output, the numbers as JSON in
build/bench/. Peers take turns within a round; figures are medians over the rounds that the noise
guard let through, ratios the medians of the rounds' own ratios.
"""

import argparse
import signal
import sys
import tempfile

import clients_memory
import memory
import paths  # noqa: F401
import produce
import scaling
import scoreboard
import start_up
import dependencies

BENCHMARKS = {"produce": produce, "scaling": scaling, "start-up": start_up, "memory": memory,
              "clients-memory": clients_memory}
NAMES = {"scoreboard": scoreboard, **BENCHMARKS}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = parser.add_subparsers(dest="what", required=True, metavar="NAME")
    every = names.add_parser("all")
    every.add_argument("--folder")
    for name, benchmark in NAMES.items():
        one = names.add_parser(name, description=benchmark.__doc__,
                               formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        one.add_argument("--folder", help="where data goes; default: a scratch folder")
        benchmark.add_options(one)
    return parser, parser.parse_args(arguments)


def main(arguments):
    parser, options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the brokers are ended, too
    if options.what != "scoreboard":  # which does without what it cannot get
        dependencies.resolve_all()
        dependencies.rdkafka_performance()
    chosen = list(BENCHMARKS) if options.what == "all" else [options.what]
    failed = 0
    for name in chosen:
        wanted = parser.parse_args([name]) if options.what == "all" else options
        with tempfile.TemporaryDirectory(prefix="polylog-bench-", dir=options.folder) as folder:
            failed |= NAMES[name].run(wanted, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
