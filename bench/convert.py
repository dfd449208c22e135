"""How fast `polylog convert` is, for each pair of layouts.

  bench/run convert [--mib N] [--value BYTES] [--batch BYTES] [--partitions N] [--folder DIR]
                    [--pair FROM:TO]...

A broker is filled with N MiB of values, stopped, and its directory converted. The rate counts what
the source's stores hold on disk, copied and compared once: two reads of the source, a write and a
read of the result.
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("POLYLOG_BINARY") or str(HERE.parent / "build/release/polylog")
LAYOUTS = ("kafka", "rocketmq", "segment")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lines(count, size):
    """Text that does not compress to nothing, and no two lines of it alike."""
    noise = (b"%x" % int.from_bytes(os.urandom(4096), "big"))[:size]
    for number in range(count):
        yield (b"%012d " % number + noise)[:size] + b"\n"


def fill(data, arguments):
    port = free_port()
    output = data.with_suffix(".out")
    with open(output, "wb") as sink:
        broker = subprocess.Popen([BINARY, "serve", "--data", data, "--kafka",
                                   f"127.0.0.1:{port}", "--http", f"127.0.0.1:{free_port()}",
                                   "--set", "polylog.flush=never"], stdout=sink, stderr=sink)
    try:
        while b"polylog ready" not in output.read_bytes():
            if broker.poll() is not None:
                raise SystemExit(output.read_text())
            time.sleep(0.02)
        address = f"127.0.0.1:{port}"
        subprocess.run([BINARY, "topic", "create", "t", "-p", str(arguments.partitions), "-b",
                        address], check=True, stdout=subprocess.DEVNULL)
        producer = subprocess.Popen([BINARY, "produce", "-t", "t", "-b", address, "--batch-bytes",
                                     str(arguments.batch)], stdin=subprocess.PIPE)
        records = (arguments.mib << 20) // arguments.value
        for line in lines(records, arguments.value):
            producer.stdin.write(line)
        producer.stdin.close()
        if producer.wait() != 0:
            raise SystemExit("producing failed")
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.wait()
    return records


def bytes_below(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def convert(source, target, layout):
    started = time.monotonic()
    process = subprocess.Popen([BINARY, "convert", source, target, "--layout", layout, "--quiet"])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{source.name} to {layout} failed")
    return time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--value", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=131072)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--pair", action="append", default=[])
    arguments = parser.parse_args()
    pairs = [tuple(pair.split(":")) for pair in arguments.pair] or [
        (source, target) for source in LAYOUTS for target in LAYOUTS]
    with tempfile.TemporaryDirectory(prefix="polylog-convert-", dir=arguments.folder) as folder:
        made = {"kafka": pathlib.Path(folder) / "kafka"}
        records = fill(made["kafka"], arguments)
        print(f"{records} records of {arguments.value} bytes, batches of {arguments.batch}, "
              f"{arguments.partitions} partitions")
        print("| from | to | s | MiB/s | k records/s | CPU s | peak MiB |")
        print("|---|---|---|---|---|---|---|")
        for source, target in pairs:
            if source not in made:
                made[source] = pathlib.Path(folder) / source
                convert(made["kafka"], made[source], source)
            size = bytes_below(made[source] / source) / (1 << 20)
            result = pathlib.Path(folder) / "result"
            seconds, cpu, peak = convert(made[source], result, target)
            shutil.rmtree(result)
            print(f"| {source} | {target} | {seconds:.1f} | {size / seconds:.0f} | "
                  f"{records / seconds / 1000:.0f} | {cpu:.1f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
