"""What every benchmark says, prints and writes."""

import json
import pathlib
import subprocess
import sys
import time

import paths  # noqa: F401
import dependencies

OUT = dependencies.SOURCE_DIR / "build" / "bench"


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_json(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(value, indent=2) + "\n")
    say(f"wrote {path}")


def machine():
    model = next((line.split(":")[1].strip() for line in
                  pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "?")
    kernel = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout
    return {"cpu": model, "kernel": kernel.strip(), "kafka": dependencies.kafka_version(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def cell(value, width, digits=2):
    """A number of a table, or a dash."""
    return " " * (width - 1) + "-" if value is None else f"{value:{width}.{digits}f}"
