"""Lets the crash tests import the modules they share with the interoperability tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
