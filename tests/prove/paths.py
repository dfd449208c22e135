"""Where things are; importing it lets a scenario import the modules that other tests share."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE_DIR = HERE.parent.parent
BUILD_DIR = SOURCE_DIR / "build"
for folder in ("interop", "crash"):
    sys.path.insert(0, str(SOURCE_DIR / "tests" / folder))


def built(preset, program):
    """A program of a preset, or None if it was not built. POLYLOG_BUILD_DIR is the release one."""
    folder = BUILD_DIR / preset
    if preset == "release":
        folder = pathlib.Path(os.environ.get("POLYLOG_BUILD_DIR") or folder)
    path = folder / program
    return path if path.exists() else None
