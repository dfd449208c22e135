"""Real text for tests that want some: lines of different length that compress as text does."""

import pathlib
import subprocess


def sample_lines(bytes_wanted):
    """Real text: what apt knows of every package, or the documentation on the machine."""
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=False).stdout
    if len(text) < bytes_wanted:
        for path in sorted(pathlib.Path("/usr/share/doc").rglob("copyright")):
            text += path.read_bytes()
            if len(text) >= bytes_wanted:
                break
    number = 0
    while len(text) < bytes_wanted:
        text += b"".join(b"generated line %d of %d\n" % (n, n * n) for n in
                         range(number, number + 10000))
        number += 10000
    lines = [line for line in text[:bytes_wanted].split(b"\n") if line]
    return b"\n".join(lines) + b"\n"
