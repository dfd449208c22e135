#!/usr/bin/env python3
"""Checks the house rules that a program can check; docs/style.md has the rest.

Usage: tidy.py [ROOT]. Prints one line per violation and exits with 1 if there is any.
tools/tidy_ratchet.txt holds what is too long today and may only shrink; tools/tidy_fuzzed.txt
names the decoders that a fuzz target reaches without including their header.
"""

import ast
import pathlib
import re
import sys

LINE_COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
SKIPPED_FOLDERS = {".git", "build", "data", "node_modules", "__pycache__"}
FORBIDDEN_WORDS = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "managers"}
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")

# Who may include whom (docs/architecture.md). A module may always include itself. An entry that
# ends in .h is one header, any other a folder.
BASICS = ["base", "bytes"]
INCLUDES = {
    "base": [],
    "bytes": ["base"],
    "fs": BASICS,
    "journal": [*BASICS, "fs"],
    "record": BASICS,
    "format": [*BASICS, "record"],
    "storage/store.h": [*BASICS, "fs", "record"],
    "storage/filelog": [*BASICS, "fs", "record"],
    "storage/rolled": [*BASICS, "fs", "record", "storage/store.h", "storage/filelog"],
    "storage/kafka": [*BASICS, "fs", "record", "storage/store.h", "storage/filelog",
                      "storage/rolled", "format/kafka"],
    "storage/rocketmq": [*BASICS, "fs", "record", "storage/store.h", "storage/filelog",
                         "format/rocketmq"],
    "storage/rocksdb": [*BASICS, "fs", "storage/filelog/ordered_index.h",
                        "storage/filelog/ballast.h"],
    "storage/segment": [*BASICS, "fs", "record", "storage/store.h", "storage/filelog",
                        "storage/rolled", "format/segment"],
    "replication": ["base", "record"],
    "meta": [*BASICS, "fs"],
    "broker": [*BASICS, "fs", "journal", "record", "storage/store.h", "format", "replication",
               "meta"],
    "convert": [*BASICS, "fs", "journal", "record", "format", "storage", "meta", "broker"],
    "protocol/kafka": BASICS,
    "protocol/mqtt": BASICS,
    "protocol/rocketmq": BASICS,
    "server/net": [*BASICS, "broker/async.h", "server/log.h", "server/metrics.h"],
    "server/kafka": [*BASICS, "record", "format", "broker", "storage/store.h", "protocol/kafka",
                     "server/net", "server/log.h", "server/metrics.h"],
    "server/mqtt": [*BASICS, "record", "format", "broker", "storage/store.h", "protocol/mqtt",
                    "server/net", "server/log.h", "server/metrics.h"],
    "server/rocketmq": [*BASICS, "record", "format", "broker", "storage/store.h",
                        "protocol/rocketmq", "server/net", "server/log.h", "server/metrics.h"],
    "server/http": [*BASICS, "record", "format", "broker", "storage/store.h", "server/net",
                    "server/log.h", "server/metrics.h"],
    "server/heap.h": BASICS,
    "server/log.h": BASICS,
    "server/metrics.h": [*BASICS, "server/heap.h"],
}
EVERYTHING = ("cli", "main.cc")
# Tests may include everything; a rig is what several tests of a folder share.
TEST_ENDINGS = ("_test.cc", "_fuzz.cc", "_rig.cc", "_rig.h")


class Tree:
    """The files of one check-out, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.violations = []
        self.texts = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            if not SKIPPED_FOLDERS.isdisjoint(name.parts) or not path.is_file():
                continue
            self.texts[name.as_posix()] = path.read_text(encoding="utf-8", errors="replace")

    def report(self, path, line, what):
        self.violations.append(f"{path}:{line}: {what}")

    def cxx(self):
        return {p: t for p, t in self.texts.items() if p.endswith((".h", ".cc"))}

    def code(self):
        """Files to which the limits of line and file length apply."""
        return {p: t for p, t in self.texts.items()
                if p.endswith((".h", ".cc", ".py", ".cmake", ".js", ".java", ".sh"))
                or p.endswith("CMakeLists.txt") or p in ("dev", ".ci/run")}


def line_of(text, at):
    return text.count("\n", 0, at) + 1


_TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"([^()\\\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*\"|"""
    r"""(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",  # not the ' within 1'000
    re.DOTALL)


def blank_out(text):
    """The text with comments and literals emptied; every line and column stays where it was."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return _TOKENS.sub(blank, text)


# --- who includes whom -----------------------------------------------------------------------


def module_of(path):
    """The row of the table that a file under src/ belongs to, or None."""
    for name in sorted(INCLUDES, key=len, reverse=True):
        stem = name[:-2] if name.endswith(".h") else None
        if path.startswith(name + "/") or (stem and path in (name, stem + ".cc")):
            return name
    return None


def check_includes(tree):
    for path, text in tree.cxx().items():
        if not path.startswith("src/") or path.endswith(TEST_ENDINGS):
            continue
        for match in re.finditer(r'^#include "([^"]+_rig\.h)"', text, re.MULTILINE):
            tree.report(path, line_of(text, match.start()), f"{match.group(1)} is for tests only")
        inside = path.removeprefix("src/")
        if inside == EVERYTHING[1] or inside.startswith(EVERYTHING[0] + "/"):
            continue
        module = module_of(inside)
        if module is None:
            tree.report(path, 1, "belongs to no module of the include table")
            continue
        allowed = [*INCLUDES[module], module]
        for match in re.finditer(r'^#include "([^"]+)"', text, re.MULTILINE):
            name = match.group(1)
            if not any(name == a or name.startswith(a + "/") for a in allowed):
                tree.report(path, line_of(text, match.start()), f"{module} may not include {name}")


def check_private(tree, header):
    """Asio's headers cost seconds each: a header of ours that includes one may itself be included
    only by .cc files of its own folder."""
    name = header.removeprefix("src/")
    folder = pathlib.PurePosixPath(header).parent
    for path, text in tree.cxx().items():
        beside = path.endswith(".cc") and pathlib.PurePosixPath(path).parent == folder
        if f'#include "{name}"' in text and not beside:
            tree.report(path, 1, f"may not include {name}, which includes Boost.Asio")


def check_include_style(tree):
    for path, text in tree.cxx().items():
        includes = re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.MULTILINE)
        if path.endswith(".h"):
            if not re.search(r"^#pragma once$", text, re.MULTILINE):
                tree.report(path, 1, "has no #pragma once")
            if any(re.match(r"boost/(asio|beast)", name) for name in includes):
                check_private(tree, path)
            continue
        own = re.sub(r"(_test|_fuzz)?\.cc$", ".h", path)
        name = own.removeprefix("src/")
        if own in tree.texts and name in includes and includes[0] != name:
            tree.report(path, 1, f"must include {name} first")


# --- names and lengths -----------------------------------------------------------------------


def check_names(tree):
    seen = set()
    for path in tree.texts:
        parts = pathlib.PurePosixPath(path).parts
        for i, part in enumerate(parts):
            prefix = "/".join(parts[:i + 1])
            if prefix in seen:
                continue
            seen.add(prefix)
            words = set(re.split(r"[_.\-]", part.lower()))
            for word in sorted(words & FORBIDDEN_WORDS):
                tree.report(prefix, 1, f"no file or folder is called {word}")


def check_text(tree):
    for path, text in tree.texts.items():
        for match in UNFINISHED.finditer(text):
            tree.report(path, line_of(text, match.start()), f"unfinished: {match.group(0)}")
    for path, text in tree.code().items():
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LINE_COLUMNS_MAX:
                tree.report(path, number, f"{len(line)} columns, at most {LINE_COLUMNS_MAX}")


_TYPE_HEAD = re.compile(r"\b(class|struct|union|enum)\b")
_INITIALISER_HEAD = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:).*[\w>]\s*$", re.DOTALL)


def _block_kind(head, outer):
    """What a `{` after `head` opens inside a block of kind `outer`."""
    if outer not in ("namespace", "type"):
        return "inner"
    if re.search(r"\bnamespace\b", head) or re.fullmatch(r'\s*extern\s*"[^"]*"\s*', head):
        return "namespace"
    words = re.search(r"(\w+)\s*$", head)
    if _INITIALISER_HEAD.search(head) and words and words.group(1) not in (
            "const", "noexcept", "override", "final", "try"):
        return "initialiser"
    before_parameters = head.split("(")[0]
    if _TYPE_HEAD.search(before_parameters) and ")" not in head.split("template")[-1]:
        return "type"
    if ")" in head and "=" not in re.sub(r"operator\s*\S+", "", before_parameters):
        return "function"
    return "inner"


def _function_name(head):
    test = re.search(r"\b(?:TEST|TEST_F|TEST_P|BENCHMARK_F)\s*\(([^)]*)\)", head)
    if test:
        return re.sub(r"\s*,\s*", ".", test.group(1).strip())
    match = re.search(r"([~\w:]+|operator\s*\S+?)\s*\(", head)
    return match.group(1).replace(" ", "") if match else "?"


def functions(text):
    """(name, first line, number of lines) of each function body in C++ source."""
    code = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  blank_out(text), flags=re.MULTILINE)
    found = []
    stack = [("namespace", 0, "", 0)]
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        head = code[head_start:at]
        if match.group(0) == "{":
            kind = _block_kind(head, stack[-1][0])
            first = head_start + len(head) - len(head.lstrip())
            stack.append((kind, first, head, head_start))
        elif match.group(0) == "}" and len(stack) > 1:
            kind, first, head, start = stack.pop()
            if kind == "initialiser":
                head_start = start
                continue
            if kind == "function":
                line = line_of(code, first)
                found.append((_function_name(head), line, line_of(code, at) - line + 1))
        head_start = at + 1
    return found


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def read_ratchet(tree):
    """What may be longer than the limit: {"path" or "path function": lines}."""
    ratchet = {}
    for line in tree.texts.get("tools/tidy_ratchet.txt", "").splitlines():
        if line.strip() and not line.startswith("#"):
            name, lines = line.rsplit(maxsplit=1)
            ratchet[name] = int(lines)
    return ratchet


def check_lengths(tree):
    ratchet = read_ratchet(tree)
    used = set()

    def check(path, line, key, what, size, size_max):
        if size <= size_max:
            return
        used.add(key)
        if key not in ratchet:
            tree.report(path, line, f"{what} has {size} lines, at most {size_max}")
        elif size > ratchet[key]:
            tree.report(path, line, f"{what} grew to {size} lines from {ratchet[key]}")
        elif size < ratchet[key]:
            tree.report(path, line, f"{what} has {size} lines now: lower its ratchet")

    for path, text in tree.code().items():
        check(path, 1, path, "the file", len(text.splitlines()), FILE_LINES_MAX)
        found = []
        if path.endswith((".h", ".cc")):
            found = functions(text)
        elif path.endswith(".py"):
            found = python_functions(text)
        for name, line, size in found:
            check(path, line, f"{path} {name}", name, size, FUNCTION_LINES_MAX)
    for key in ratchet:
        if key not in used:
            tree.report("tools/tidy_ratchet.txt", 1, f"{key} is within the limits: drop its line")


# --- tests and fuzz targets ------------------------------------------------------------------


def check_registered(tree):
    """A test's file must be named in some CMakeLists.txt; `test_x.py` may be just `x` in the one
    beside it."""
    words = {path: set(re.findall(r"[\w.\-]+", text)) for path, text in tree.texts.items()
             if path.endswith(("CMakeLists.txt", ".cmake"))}
    everywhere = set().union(*words.values())
    for path in map(pathlib.PurePosixPath, tree.texts):
        if not re.search(r"_(test|fuzz)\.(cc|py)$|^test_\w+\.py$", path.name):
            continue
        beside = words.get((path.parent / "CMakeLists.txt").as_posix(), set())
        if everywhere.isdisjoint({path.name, path.stem}) and \
                path.stem.removeprefix("test_") not in beside:
            tree.report(path, 1, "is in no CMakeLists.txt: it would never run")


_DECODER = re.compile(
    r"\b(?:parse|decode)_\w+\s*\(|"  # a function that says so
    r"\b[A-Z]\w*\((?:[^();]*\b)?(?:ByteView|ByteReader)\b[^;]*\)\s*[:;{]|"  # a constructor
    r"\b(?:open|next|read)\w*\((?:const\s+)?(?:ByteView|ByteReader)\b")


def check_fuzzed(tree):
    """A header of format/ or protocol/ that declares a decoder must be included by a fuzz target,
    or tidy_fuzzed.txt must say which target reaches it: `HEADER FUZZ-SOURCE` a line."""
    reached = set()
    for path, text in tree.cxx().items():
        if path.endswith("_fuzz.cc"):
            reached.update(re.findall(r'^#include "([^"]+)"', text, re.MULTILINE))
    table = "tools/tidy_fuzzed.txt"
    for number, line in enumerate(tree.texts.get(table, "").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        header, source = line.split()
        if f"src/{header}" not in tree.texts or source not in tree.texts:
            tree.report(table, number, f"{header} or {source} does not exist")
        reached.add(header)
    for path, text in tree.cxx().items():
        name = path.removeprefix("src/")
        if not path.endswith(".h") or not name.startswith(("format/", "protocol/")):
            continue
        if _DECODER.search(blank_out(text)) and name not in reached:
            tree.report(path, 1, "declares a decoder that no fuzz target includes")


# --- coroutines under g++ 12 -----------------------------------------------------------------

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = {")": "(", "]": "[", "}": "{"}


def _statement_start(code, at):
    """Where the statement around `at` begins: behind the last `;`, `{` or block-ending `}`."""
    depth = 0
    i = at - 1
    while i >= 0:
        c = code[i]
        if c == "}" and depth == 0:
            after = code[i + 1:].lstrip()[:1]
            if after not in (",", ")", ".", ";", "]"):
                return i + 1
        if c in _CLOSE:
            depth += 1
        elif c in _OPEN:
            if c == "{" and depth == 0:
                return i + 1
            depth = max(depth - 1, 0)
        elif c == ";" and depth == 0:
            return i + 1
        i -= 1
    return 0


def _statement_end(code, start):
    """Where the statement that begins at `start` ends: its `;`, or the block it controls."""
    depth = 0
    for i in range(start, len(code)):
        c = code[i]
        if depth == 0 and (c == ";" or (c == "{" and code[:i].rstrip()[-1:] == ")")):
            return i
        if c in _OPEN:
            depth += 1
        elif c in _CLOSE:
            depth -= 1
            if depth < 0:
                return i
    return len(code)


_CAPTURE = re.compile(r"(?:^|[^\w)\]\s\[])\s*\[(?!\[)\s*[^\]\s][^\]]*\]\s*(?:\(|\{|<|mutable)")
_COROUTINE_LAMBDA = re.compile(
    r"\[\s*[^\]\s][^\]]*\]\s*\([^)]*\)\s*(?:mutable\s*)?(?:noexcept\s*)?->\s*[\w:]*awaitable\b")


def check_coroutines(tree):
    for path, text in tree.cxx().items():
        code = blank_out(text)
        for match in re.finditer(r"\bco_await\b", code):
            start = _statement_start(code, match.start())
            statement = code[start:_statement_end(code, start)]
            line = line_of(code, match.start())
            if "?" in statement:
                tree.report(path, line, "?: in a co_await expression")
            if _CAPTURE.search(statement):
                tree.report(path, line, "a capturing lambda in a co_await expression")
            elif "{" in statement:
                tree.report(path, line, "a value built with braces in a co_await expression")
        for match in _COROUTINE_LAMBDA.finditer(code):
            tree.report(path, line_of(code, match.start()), "a capturing lambda as coroutine")


CHECKS = (check_includes, check_include_style, check_names, check_text, check_lengths,
          check_registered, check_fuzzed, check_coroutines)


def run(root):
    tree = Tree(root)
    for check in CHECKS:
        check(tree)
    return tree.violations


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    violations = run(root)
    for violation in violations:
        print(violation)
    if violations:
        print(f"{len(violations)} violations", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
