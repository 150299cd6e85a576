#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the checks themselves: small trees with known faults must be reported, and clean ones must pass."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dovetail-checks-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, *lines):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(("#pragma once", *lines, "")), "utf-8")

    def run_script(self, name, *arguments, **environment):
        command = [sys.executable, "-B", str(ROOT / "scripts" / name), "--root", str(self.root), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=os.environ | environment)
        return done.returncode, done.stdout


class Includes(Tree):
    def faults(self):
        code, said = self.run_script("check_includes.py")
        lines = said.splitlines()[:-1]
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def clean(self):
        self.write("include/dovetail/meta/text.hpp", "#include <cstddef>")
        self.write("include/dovetail/tensor/dim.hpp", "#include <dovetail/meta/text.hpp>")
        self.write("include/dovetail/mesh/axis.hpp", "#include <dovetail/tensor/dim.hpp>")
        self.write("include/dovetail/plan/step.hpp", "#include <dovetail/mesh/axis.hpp>")
        self.write("include/dovetail/plan/plan.hpp", "#include <dovetail/plan/step.hpp>")
        self.write("include/dovetail/io/file.hpp", "#include <sys/mman.h>", "#include <nlohmann/json.hpp>")
        self.write("include/dovetail/comm/communicator.hpp", "#include <dovetail/plan/step.hpp>", "#include <thread>")
        self.write("include/dovetail/comm/mpi.hpp", "#include <mpi.h>", "#include <dovetail/comm/communicator.hpp>")
        self.write("include/dovetail/device/device.hpp", "#include <dovetail/tensor/dim.hpp>")
        self.write("include/dovetail/device/cpu.hpp", "#include <dnnl.hpp>", "#include <dovetail/kernels/cpu/norm.hpp>")
        self.write("kernels/dovetail/kernels/cpu/norm.hpp", "#include <dovetail/device/device.hpp>")
        self.write("include/dovetail/run/executor.hpp", "#include <dovetail/comm/communicator.hpp>",
                   "#include <dovetail/device/device.hpp>", "#include <dovetail/io/file.hpp>",
                   "#include <dovetail/plan/plan.hpp>", "#include <functional>")
        self.write("include/dovetail/version.hpp")
        self.write("include/dovetail/dovetail.hpp", "#include <dovetail/plan/plan.hpp>",
                   "#include <dovetail/version.hpp>")

    def test_a_clean_tree_passes(self):
        self.clean()
        self.assertEqual(self.faults(), [])

    def test_each_violation_is_reported_once_with_its_place(self):
        for name, line, words in (
            ("include/dovetail/meta/bad.hpp", "#include <dovetail/tensor/dim.hpp>", "meta may include: meta"),
            ("include/dovetail/tensor/bad.hpp", "#include <dovetail/mesh/axis.hpp>", "tensor, meta"),
            ("include/dovetail/io/bad.hpp", "#include <dovetail/mesh/axis.hpp>", "io may include"),
            ("include/dovetail/comm/bad.hpp", "#include <dovetail/plan/plan.hpp>", "plan/step.hpp"),
            ("include/dovetail/device/bad.hpp", "#include <dovetail/comm/communicator.hpp>", "device may include"),
            ("include/dovetail/run/bad.hpp", "#include <dovetail/comm/mpi.hpp>", "comm/communicator.hpp"),
            ("include/dovetail/run/bad.hpp", "#include <dovetail/device/cpu.hpp>", "device/device.hpp"),
            ("include/dovetail/run/bad.hpp", "#include <mpi.h>", "only comm/mpi*"),
            ("include/dovetail/comm/threads.hpp", "#include <mpi.h>", "only comm/mpi*"),
            ("include/dovetail/run/bad.hpp", "#include <nlohmann/json.hpp>", "only io/*"),
            ("include/dovetail/run/bad.hpp", "#include <CLI/CLI.hpp>", "OUTSIDE"),
            ("include/dovetail/plan/bad.hpp", "#include <iostream>", "plan-time headers include none of"),
            ("include/dovetail/plan/bad.hpp", "#  include <ranges>", "plan-time headers include none of"),
            ("include/dovetail/plan/bad.hpp", "#include <unistd.h>", "standard library only"),
            ("include/dovetail/plan/bad.hpp", "#include <dovetail/dovetail.hpp>", "the umbrella is for users"),
            ("include/dovetail/plan/bad.hpp", "#include <dovetail/plan/none.hpp>", "no such header"),
            ("include/dovetail/plan/bad.hpp", '#include "plan.hpp"', "write <dovetail/...>"),
            ("kernels/dovetail/kernels/cpu/bad.hpp", "#include <dovetail/run/executor.hpp>", "kernels may include"),
            ("include/dovetail/misc/bad.hpp", "", "add its folder"),
        ):
            with self.subTest(name=name, line=line):
                self.clean()
                self.write(name, line)
                faults = self.faults()
                (self.root / name).unlink()
                self.assertEqual(len(faults), 1, faults)
                place = f"{name}:{2 if line else 1}: "
                self.assertTrue(faults[0].startswith(place) and words in faults[0], faults[0])

    def test_a_circle_is_reported(self):
        self.write("include/dovetail/plan/a.hpp", "#include <dovetail/plan/b.hpp>")
        self.write("include/dovetail/plan/b.hpp", "#include <dovetail/plan/a.hpp>")
        circle = "plan/a.hpp -> plan/b.hpp -> plan/a.hpp: headers include each other in a circle"
        self.assertEqual(self.faults(), [circle])

    def test_comments_are_not_includes(self):
        self.write("include/dovetail/meta/a.hpp", "// #include <thread>", "/*", "#include <iostream>", "*/")
        self.assertEqual(self.faults(), [])

    def test_an_empty_tree_is_a_fault(self):
        self.assertEqual(len(self.faults()), 1)


class Headers(Tree):
    def failures(self, *arguments):
        build = str(self.root / "build")
        code, said = self.run_script("check_headers.py", "--compiler", "g++", "--build", build, *arguments)
        lines = said.splitlines()[:-1]
        self.assertEqual(code, 1 if lines else 0, said)
        return lines

    def test_headers_that_stand_alone_pass(self):
        self.write("include/dovetail/meta/a.hpp", "#include <algorithm>",
                   "constexpr int least(int a, int b) { return (std::min)(a, b); }")
        self.write("kernels/dovetail/kernels/cpu/b.hpp", "#include <dovetail/meta/a.hpp>",
                   "inline int b() { return 0; }")
        self.assertEqual(self.failures(), [])

    def test_a_header_that_lacks_an_include_is_named(self):
        self.write("include/dovetail/meta/a.hpp", "struct A {};")
        self.write("include/dovetail/meta/b.hpp", "struct B { A a; };")
        lines = self.failures()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("meta/b.hpp: ") and "error:" in lines[0], lines)

    def test_a_warning_is_a_failure(self):
        self.write("include/dovetail/meta/a.hpp", "inline int f(int unused) { return 0; }")
        self.assertEqual(len(self.failures("meta/a.hpp")), 3)  # alone, with all, and after the macros

    def test_a_function_that_is_not_inline_is_reported(self):
        self.write("include/dovetail/meta/a.hpp", "int f() { return 0; }")
        lines = self.failures()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("multiple definition of `f()'", lines[0])

    def test_hostile_macros_are_survived_or_reported(self):
        self.write("include/dovetail/meta/a.hpp", "#include <algorithm>",
                   "constexpr int least(int a, int b) { return std::min(a, b); }")
        lines = self.failures()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("after_hostile_macros: "), lines)

    def test_an_absent_compiler_is_skipped_loudly_and_required_in_ci(self):
        self.write("include/dovetail/meta/a.hpp")
        absent = {"PATH": str(self.root), "CUDA_HOME": "", "CUDA_PATH": ""}
        arguments = ("check_headers.py", "--compiler", "clang++-19")
        code, said = self.run_script(*arguments, CI="", **absent)
        self.assertEqual((code, said.startswith("SKIPPED: ")), (77, True), said)
        for more, variable in (((), "true"), (("--require",), "")):
            code, said = self.run_script(*arguments, *more, CI=variable, **absent)
            self.assertEqual((code, said.startswith("FAILED: ")), (1, True), said)


class Words(Tree):
    def findings(self):
        code, said = self.run_script("check_words.py")
        lines = said.splitlines()[:-1]
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def test_what_is_looked_for_is_found(self):
        for line, words in (
            ("see " + "/wo" + "rk/here", "a path of one machine"),
            ('include("' + "/ho" + 'me/me/x")', "a path of one machine"),
            ("// TO" + "DO: later", "unfinished work"),
            ("# FIX" + "ME", "unfinished work"),
            ("https://py" + "pi.org/x", "a package registry"),
            ("x" * 121, "121 characters"),
        ):
            with self.subTest(line=line):
                self.write("a.cpp", line)
                found = self.findings()
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith("a.cpp:2: ") and words in found[0], found)

    def test_ordinary_text_passes(self):
        self.write("a.cpp", "x" * 120, "// expect: " + "y" * 200, "mktemp -t name.XXXXXX; lib/work/x; and/or a/home/b")
        self.write("notes.md", "x" * 300)
        self.write("build/a.cpp", "x" * 300)
        self.assertEqual(self.findings(), [])


class Documents(Tree):
    def page(self, *lines, name="docs/page.md"):
        self.write("examples/own.cpp", "struct Own {", "  int a = 1;", "};")
        self.write("tests/other.cpp", "int other();")
        self.write(name, *lines)
        code, said = self.run_script("check_docs.py")
        lines = said.splitlines()[:-1]
        self.assertEqual(code, 1 if lines else 0, said)
        return lines

    def test_code_of_an_example_or_a_test_passes(self):
        self.assertEqual(self.page("```cpp", "struct Own {", "int a = 1; };", "```", "```", "not looked at", "```"), [])
        self.assertEqual(self.page("<!-- from tests/other.cpp -->", "```cpp", "int other();", "```"), [])
        self.assertEqual(self.page("See [it](../examples/own.cpp#L1), [this](https://example.org/x).", "```text",
                                   "[no](link)", "```"), [])

    def test_code_of_its_own_is_reported_with_its_place(self):
        for lines, words in (
            (("```cpp", "struct Own { int a = 2; };", "```"), "2: this code is not in any file"),
            (("<!-- from tests/other.cpp -->", "```cpp", "int a = 1;", "```"), "3: this code is not in tests/other"),
            (("<!-- from tests/none.cpp -->", "```cpp", "int a = 1;", "```"), "3: there is no tests/none.cpp"),
            (("", "```cpp", "int never_closed;"), "3: this code is not in any file"),
            (("```cpp", "", "```"), "2: the block is empty"),
            (("[a page](none.md)",), "2: the link none.md leads nowhere"),
        ):
            with self.subTest(words=words):
                found = self.page(*lines)
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith("docs/page.md:" + words), found)
        self.page()
        self.assertEqual(len(self.page("[no](none.md)", name="docs/design/0001-a.md")), 1)

    def test_no_page_is_a_fault(self):
        code, said = self.run_script("check_docs.py")
        self.assertEqual((code, said), (1, "0 code blocks of 0 pages: 0 findings\n"))


class Rules(Tree):
    HEADER = ("enum class Rule : std::uint8_t {", "  ok,", "  size_range,  ///< sizes", "};",
              "inline constexpr int rule_count = 2;", 'constexpr char const* ids[] = {"ok", "size/range"};')
    ASSERT = 'static_assert(no<T>, "size/range: a size; " "see docs/errors/size-range.md");'
    FILES = {
        "include/dovetail/meta/verdict.hpp": HEADER,
        "include/dovetail/plan/refuse.hpp": (ASSERT,),
        "tests/compile_fail/zero.cpp": ("// expect: size/range", r"// expect: docs/errors/size-range\.md"),
        "tests/sentence_test.cpp": ("CHECK(rule == Rule::size_range);",),
    }
    PAGE = "# size/range: sizes\n\n[a file](../../tests/compile_fail/zero.cpp)\n"

    def findings(self, page=PAGE, **changed):
        for name, lines in self.FILES.items():
            self.write(name, *changed.get(name.rsplit("/", 1)[1].split(".")[0], lines))
        (self.root / "docs/errors").mkdir(parents=True, exist_ok=True)
        (self.root / "docs/errors/size-range.md").write_text(page, "utf-8")
        code, said = self.run_script("check_rules.py")
        lines = said.splitlines()[:-1]
        self.assertEqual(code, 1 if lines else 0, said)
        return lines

    def test_a_rule_that_has_everything_passes(self):
        self.assertEqual(self.findings(), [])

    def test_what_a_rule_lacks_is_named(self):
        for changed, words in (
            ({"page": "# size: sizes\n(../../tests/compile_fail/zero.cpp)"}, "there is no docs/errors/size-range"),
            ({"page": "# size/range: sizes\n"}, "links to none of: zero.cpp"),
            ({"zero": ("// expect: size/range",)}, "no file in tests/compile_fail expects both"),
            ({"refuse": ('static_assert(no<T>, "size/range: a size");',)}, "no static_assert states the rule"),
            ({"sentence_test": ("CHECK(rule == Rule::size_ranges);",)}, "does not test Rule::size_range"),
            ({"verdict": (*self.HEADER[:2], "  size_ranges,", *self.HEADER[3:])}, "are not the same"),
            ({"verdict": (*self.HEADER[:4], "int rule_count = 3;", self.HEADER[5])}, "rule_count is not"),
        ):
            with self.subTest(words=words):
                found = self.findings(**changed)
                self.assertEqual(len(found), 1, found)
                self.assertIn(words, found[0])

    def test_rules_that_only_one_side_knows_are_named(self):
        (self.root / "docs/errors").mkdir(parents=True)
        (self.root / "docs/errors/old-rule.md").write_text("# old/rule: gone\n", "utf-8")
        self.assertEqual(self.findings(), ["docs/errors/old-rule.md: there is no rule old/rule"])
        (self.root / "docs/errors/old-rule.md").unlink()
        found = self.findings(refuse=(self.ASSERT, 'static_assert(no<T>, "new/rule: see docs/errors/new-rule.md");'))
        self.assertEqual(len(found), 3, found)
        self.assertIn("new/rule: it is not in include/dovetail/meta/verdict.hpp", found)


if __name__ == "__main__":
    unittest.main()
