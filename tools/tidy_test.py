#!/usr/bin/env python3
"""Plants violations in a scratch tree and expects tidy.py to find each, and nothing else."""

import pathlib
import tempfile
import unittest

import tidy


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def header(self, path, text):
        self.plant(path, "#pragma once\n" + text)

    def expect(self, *parts):
        """Exactly one violation, which contains all of `parts`."""
        found = tidy.run(self.root)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def expect_clean(self):
        self.assertEqual(tidy.run(self.root), [])


class Includes(Planted):
    def test_a_layer_may_not_look_up(self):
        self.plant("src/base/a.cc", '#include "bytes/slice.h"\n')
        self.expect("src/base/a.cc:1", "base may not include bytes/slice.h")

    def test_an_engine_may_not_see_another(self):
        self.plant("src/storage/rocketmq/a.cc", '#include "storage/kafka/log.h"\n')
        self.expect("storage/rocketmq may not include storage/kafka/log.h")

    def test_the_broker_sees_storage_only_through_its_interface(self):
        self.plant("src/broker/a.cc", '#include "storage/store.h"\n#include "fs/file_system.h"\n')
        self.expect_clean()
        self.plant("src/broker/a.cc", '#include "storage/kafka/log.h"\n')
        self.expect("broker may not include storage/kafka/log.h")

    def test_a_protocol_may_not_see_the_broker(self):
        self.plant("src/protocol/kafka/a.cc", '#include "broker/broker.h"\n')
        self.expect("protocol/kafka may not include broker/broker.h")

    def test_the_wiring_and_tests_may_include_everything(self):
        for path in ("src/main.cc", "src/cli/serve.cc"):
            self.plant(path, '#include "storage/kafka/log.h"\n')
        self.plant("src/base/a_test.cc", '#include "storage/kafka/log.h"\n')
        self.plant("src/base/CMakeLists.txt", "polylog_test(a_test SOURCES a_test.cc)\n")
        self.expect_clean()

    def test_a_rig_counts_as_a_test_and_is_only_for_tests(self):
        self.header("src/broker/broker_rig.h", '#include "storage/kafka/log.h"\n')
        self.expect_clean()
        self.plant("src/broker/a.cc", '#include "broker/broker_rig.h"\n')
        self.expect("src/broker/a.cc:1", "for tests only")

    def test_every_folder_of_src_is_in_the_table(self):
        self.plant("src/extra/a.cc", "")
        self.expect("src/extra/a.cc:1", "no module")

    def test_the_own_header_comes_first(self):
        self.header("src/base/a.h", "")
        self.plant("src/base/a.cc", '#include <vector>\n\n#include "base/a.h"\n')
        self.expect("src/base/a.cc", "must include base/a.h first")

    def test_headers_need_a_guard(self):
        self.plant("src/base/a.h", "int a();\n")
        self.expect("#pragma once")

    def test_asio_stays_in_the_sources_of_one_folder(self):
        self.header("src/server/net/a.h", "#include <boost/asio/io_context.hpp>\n")
        self.plant("src/server/net/b.cc", '#include "server/net/a.h"\n')
        self.expect_clean()
        self.header("src/server/net/c.h", '#include "server/net/a.h"\n')
        self.expect("src/server/net/c.h", "Boost.Asio")


class NamesAndLengths(Planted):
    def test_forbidden_names_of_folders_and_files(self):
        for path in ("src/base/util.cc", "src/base/topic_manager.cc", "tests/common/a.txt",
                     "tools/helpers.py", "docs/misc.md"):
            with self.subTest(path):
                self.setUp()
                self.plant(path, "")
                self.expect("no file or folder is called")

    def test_words_that_only_contain_a_forbidden_one_are_fine(self):
        self.plant("src/base/utility.cc", "")
        self.plant("src/base/commons.cc", "")
        self.expect_clean()

    def test_long_lines(self):
        self.plant("src/base/a.cc", "// " + "x" * 97 + "\n")
        self.expect_clean()
        self.plant("src/base/a.cc", "\n// " + "x" * 98 + "\n")
        self.expect("src/base/a.cc:2", "101 columns")

    def test_unfinished_marks(self):
        for mark in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            with self.subTest(mark):
                self.setUp()
                self.plant("docs/a.md", f"text\n{mark}: later\n")
                self.expect("docs/a.md:2", mark)

    def body(self, lines):
        return "".join(f"  call({i});\n" for i in range(lines))

    def test_long_functions(self):
        heads = {
            "free": "void free_one(int a) {\n",
            "member": "struct Outer {\n  int x = 0;\n  Result<int> get(int a) const override {\n",
            "constructor": "Thing::Thing(int a) : a_{a}, b_(2) {\n",
            "template": "namespace n {\ntemplate <class T>\nvoid f(T t) {\n",
            "test": "TEST(Thing, works) {\n",
            "operator": "bool operator()(int a) {\n",
        }
        for name, head in heads.items():
            with self.subTest(name):
                self.setUp()
                closing = "}\n" + "};\n" * ("struct" in head) + "}\n" * ("namespace" in head)
                self.plant("src/base/a.cc", head + self.body(66) + closing)
                self.expect_clean()
                self.plant("src/base/a.cc", head + self.body(70) + closing)
                self.expect("lines, at most 70")

    def test_long_types_and_namespaces_are_no_functions(self):
        members = "".join(f"  int get{i}() {{ return {i}; }}\n" for i in range(80))
        self.header("src/base/a.h", "namespace n {\nstruct Big final : Base<int> {\n" + members +
                    "};\nenum class E {\n" + "a,\n" * 80 + "};\n}\n")
        self.expect_clean()

    def test_braces_in_literals_and_comments_do_not_count(self):
        self.plant("src/base/a.cc", "void f() {\n  g(\"{\", '{');  // {\n  n = 1'000;\n}\n" * 40)
        self.expect_clean()

    def test_long_python_functions(self):
        self.plant("tools/a.py", "def f():\n" + "    f()\n" * 70)
        self.expect("tools/a.py:1", "f has 71 lines")

    def test_long_files(self):
        self.plant("src/base/a.cc", "int a;\n" * 801)
        self.expect("the file has 801 lines")

    def test_the_ratchet_holds_and_only_tightens(self):
        self.plant("src/base/a.cc", "int a;\n" * 850)
        self.plant("tools/tidy_ratchet.txt", "# so far\nsrc/base/a.cc 850\n")
        self.expect_clean()
        self.plant("src/base/a.cc", "int a;\n" * 851)
        self.expect("grew to 851 lines from 850")
        self.plant("src/base/a.cc", "int a;\n" * 840)
        self.expect("lower its ratchet")
        self.plant("src/base/a.cc", "int a;\n" * 700)
        self.expect("drop its line")


class Registration(Planted):
    def test_a_test_that_no_target_builds(self):
        for path in ("src/base/a_test.cc", "src/base/a_fuzz.cc", "tests/interop/test_a.py"):
            with self.subTest(path):
                self.setUp()
                self.plant(path, "")
                self.plant("src/base/CMakeLists.txt", "polylog_test(x SOURCES aa_test.cc)\n")
                self.expect(path, "is in no CMakeLists.txt")

    def test_a_decoder_that_no_fuzz_target_includes(self):
        decoders = ("Result<int> parse_header(ByteView bytes);", "Info decode_info(ByteView in);",
                    "class Reader {\n public:\n  explicit Reader(ByteView bytes);\n};",
                    "Result<Stream> open(ByteView batch, int n);")
        for text in decoders:
            with self.subTest(text):
                self.setUp()
                self.header("src/format/kafka/a.h", text + "\n")
                self.expect("src/format/kafka/a.h", "no fuzz target")
                self.plant("tests/fuzz/a_fuzz.cc", '#include "format/kafka/a.h"\n')
                self.plant("tests/fuzz/CMakeLists.txt", "polylog_fuzz(a SOURCES a_fuzz.cc)\n")
                self.expect_clean()

    def test_the_table_of_decoders_reached_in_another_way(self):
        self.header("src/protocol/kafka/a.h", "int parse_a(ByteView bytes);\n")
        self.plant("tools/tidy_fuzzed.txt", "protocol/kafka/a.h tests/fuzz/b_fuzz.cc\n")
        self.expect("tidy_fuzzed.txt:1", "does not exist")
        self.plant("tests/fuzz/b_fuzz.cc", "")
        self.plant("tests/fuzz/CMakeLists.txt", "polylog_fuzz(b SOURCES b_fuzz.cc)\n")
        self.expect_clean()

    def test_encoders_and_other_folders_need_none(self):
        self.header("src/format/kafka/a.h", "void write_header(ByteView body);\n")
        self.header("src/storage/kafka/a.h", "int parse_a(ByteView bytes);\n")
        self.expect_clean()


class Coroutines(Planted):
    def expect_statement(self, statement, *parts):
        self.setUp()
        self.plant("src/broker/a.cc", "awaitable<void> f() {\n  int n = 0;\n  if (n) { n = 1; }\n  "
                   + statement + "\n  n = {};\n}\n")
        if parts:
            self.expect("src/broker/a.cc:4", *parts)
        else:
            self.expect_clean()

    def test_braces(self):
        self.expect_statement("co_await send(Frame{1, 2});", "braces")
        self.expect_statement("co_await send(a, {});", "braces")
        self.expect_statement("use(Frame{1}, co_await read());", "braces")
        self.expect_statement("const auto x = co_await send(Frame{1}, b);", "braces")

    def test_capturing_lambdas(self):
        self.expect_statement("co_await run([this] { go(); });", "capturing lambda")
        self.expect_statement("co_await run(a, [&n, m = 1](int x) { go(x); });",
                              "capturing lambda")

    def test_conditional_operator(self):
        self.expect_statement("co_await send(n ? a : b);", "?:")
        self.expect_statement("auto x = n ? co_await read() : b;", "?:")

    def test_what_is_allowed(self):
        self.expect_statement("const auto x = co_await read(a[n], b);")
        self.expect_statement("if (!(co_await read(a))) { n = Frame{1}.x; }")
        self.expect_statement("while (co_await read(a)) { n = m ? 1 : 2; }")
        self.expect_statement("POLYLOG_ASSIGN(x, co_await read(a));")
        self.expect_statement("co_await run([](int x) { return x; });", "braces")
        self.expect_statement("co_await wait();  // why? [this] {}")

    def test_a_capturing_lambda_as_coroutine(self):
        self.expect_statement("spawn([this]() -> asio::awaitable<void> { co_return; });",
                              "capturing lambda as coroutine")


if __name__ == "__main__":
    unittest.main()
