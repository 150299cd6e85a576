#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the tests notice when a rule of the library is switched off, one rule at a time.

    scripts/check_mutations.py [--compiler g++] [--python PYTHON] [--build FOLDER] [NAME...]

Each file of tests/mutations says what it switches off, and replaces one exact piece of text of a source in a scratch
copy of the tree; the test that it names is built there and must fail. Unchanged, the same tests must pass. A piece that
is not found, or a mutant that does not compile, is an error: the mutation then has to follow the source. The mutants of
the converter need a Python with scripts/requirements.txt; without it they are skipped with a line that says so.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compilers

FOLDER = compilers.ROOT / "tests" / "mutations"
COPIED = ("include", "kernels", "tests", "scripts")
LIMIT = 240  # seconds for one test: a mutant may also hang


class Mutation:
    """One file of tests/mutations."""

    def __init__(self, path):
        self.name = path.stem
        text = path.read_text("utf-8")
        try:
            head, rest = text.split("<<<<\n", 1)
            old, rest = rest.split("\n====\n", 1)
            self.new, rest = rest.split("\n>>>>\n", 1)
            self.what, self.file, self.test = head.strip().splitlines()
        except ValueError:
            sys.exit(f"{path}: expected three lines (what, file: ..., test: ...), then <<<< ==== >>>> around two texts")
        self.old = old
        self.file, self.test = self.file.removeprefix("file: "), self.test.removeprefix("test: ")

    def apply(self, tree):
        """Changes the source in `tree`; returns what is wrong, or nothing."""
        source = tree / self.file
        text = source.read_text("utf-8")
        if text.count(self.old) != 1:
            return f"{self.file} has the text {text.count(self.old)} times instead of once:\n{self.old}"
        source.write_text(text.replace(self.old, self.new), "utf-8")
        return None


def copy_tree(target):
    target.mkdir(parents=True)
    for name in COPIED:
        shutil.copytree(compilers.ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "fixtures"))


def run(command, tree, environment=None):
    """Exit code and output; a command that takes too long counts as one that failed."""
    try:
        done = subprocess.run(command, cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return 124, f"no end within {LIMIT} s"
    return done.returncode, done.stdout


class Checker:
    def __init__(self, compiler, python, build):
        self.compiler, self.python, self.build = compiler, python, build
        self.main = build / "main.o"
        self.cases = (FOLDER / "cases.txt").read_text("utf-8")

    def build_main(self):
        code, said = self.compiler.compile(compilers.ROOT / "tests" / "main.cpp", self.main)
        if code:
            sys.exit(f"tests/main.cpp does not compile:\n{said}")

    def outcome(self, test, tree):
        """"passed", "failed", or what kept the test from running; and its output."""
        if test.endswith(".py"):
            code, said = run([self.python, "-B", tree / "tests" / test], tree)
            return ("failed" if code else "passed"), said
        program = tree / test
        flags = [flag for flag in compilers.FLAGS[self.compiler.name] if flag != "-Werror"]
        code, said = run([self.compiler.path, *flags, "-O0", "-Iinclude", "-Ikernels", "-Itests", f"tests/{test}.cpp",
                          self.main, "-o", program, "-lpthread"], tree)
        if code:
            return "does not compile", said
        code, said = run([program], tree, {"DOVETAIL_EXACT_CASES": self.cases})
        program.unlink()
        return ("failed" if code else "passed"), said

    def check(self, job):
        """(name, line, is right) of one mutation, or of the unchanged tree where the job is the name of a test."""
        started = time.monotonic()
        changed = isinstance(job, Mutation)
        name = job.name if changed else f"unchanged {job}"
        tree = self.build / name.replace(" ", "_")
        copy_tree(tree)
        wrong = job.apply(tree) if changed else None
        wanted = "failed" if changed else "passed"
        ended, said = (wrong, "") if wrong else self.outcome(job.test if changed else job, tree)
        shutil.rmtree(tree)
        right = ended == wanted
        told = "" if right else f"\n{said[-3000:]}"
        about = f" ({job.what})" if changed else ""
        seconds = time.monotonic() - started
        print(f"{'ok' if right else 'FAILED'}: {name}: {ended}{about}, {seconds:.0f} s{told}", flush=True)
        return right


def has_converter_packages(python):
    done = subprocess.run([python, "-c", "import gguf, numpy, safetensors, tokenizers"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++", choices=("g++", "clang++-19"))
    parser.add_argument("--python", help="for the converter's test; default: that of build/venv, else this one")
    parser.add_argument("--build", type=Path, help="folder for the mutants; default: a temporary one")
    parser.add_argument("names", nargs="*", help="mutations; default: all")
    arguments = parser.parse_args()
    mutations = [Mutation(path) for path in sorted(FOLDER.glob("*.txt")) if path.name != "cases.txt"]
    unknown = set(arguments.names) - {m.name for m in mutations}
    if unknown:
        sys.exit(f"there is no mutation {', '.join(sorted(unknown))}; there are {', '.join(m.name for m in mutations)}")
    if arguments.names:
        mutations = [m for m in mutations if m.name in arguments.names]
    python = arguments.python or compilers.ROOT / "build" / "venv" / "bin" / "python"
    python = str(python if shutil.which(str(python)) else sys.executable)
    skipped = [m.name for m in mutations if m.test.endswith(".py")] if not has_converter_packages(python) else []
    if skipped:
        required = os.environ.get("CI") == "true"
        print(f"{'FAILED' if required else 'SKIPPED'}: {', '.join(skipped)}: {python} lacks scripts/requirements.txt")
        if required:
            sys.exit(1)
        mutations = [m for m in mutations if m.name not in skipped]
    compiler = compilers.find_or_exit(arguments.compiler, "mutations", False)
    with tempfile.TemporaryDirectory(dir=arguments.build) as folder:
        checker = Checker(compiler, python, Path(folder))
        checker.build_main()
        jobs = [*sorted({m.test for m in mutations}), *mutations]
        right = compilers.in_parallel(checker.check, jobs)
    print(f"mutations: {len(mutations)}, {len(right) - sum(right)} not as they should be")
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
