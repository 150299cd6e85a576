#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the files that must not compile, and judges what the compiler says.

    tests/compile_fail/run.py --compiler g++|clang++-19|nvcc [--require] [--verbose] [FILE...]
    tests/compile_fail/run.py --compiler g++ --self-test

Each file states what the whole output must match, one regular expression a line: `// expect: placement/split`; where
compilers spell a thing differently, `// expect(nvcc): ...` holds for that one only. Built with -DFAIL it must be
refused with exactly one line that has `error:`; built without it must compile: the error then comes from the one
changed line. One line a file is printed, and all of the output where a file is judged wrong.

The self-test judges self/*.cpp, each of which states the verdict it must get: `// verdict: ok`, or words of it.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
import compilers  # noqa: E402  (it lies beside the other checks)

EXPECT = re.compile(r"^// expect(?:\((?P<compiler>[^)]+)\))?: (?P<pattern>.+)$", re.MULTILINE)
VERDICT = re.compile(r"^// verdict: (.+)$", re.MULTILINE)


def expectations(text, compiler):
    return [m["pattern"].strip() for m in EXPECT.finditer(text) if m["compiler"] in (None, compiler)]


def judge(compiler, source, build):
    """(verdict, output): "ok", or what the file or the compiler did wrong."""
    patterns = expectations(source.read_text("utf-8"), compiler.name)
    if not patterns:
        return "the file states no `// expect: REGEX` line", ""
    code, output = compiler.compile(source, build / f"{source.stem}.twin.o")
    if code != 0:
        return "the twin does not compile (without -DFAIL)", output
    code, output = compiler.compile(source, build / f"{source.stem}.fail.o", defines=["FAIL"])
    if code == 0:
        return "it compiles, but must not (with -DFAIL)", output
    errors = [line for line in output.splitlines() if "error:" in line]
    if len(errors) != 1:
        return f"{len(errors)} lines with `error:`, not one", output
    missing = [pattern for pattern in patterns if not re.search(pattern, output)]
    if missing:
        return "the output lacks: " + ", ".join(missing), output
    return "ok", output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=compilers.FLAGS, required=True)
    parser.add_argument("--require", action="store_true", help="fail, not skip, where the compiler is absent")
    parser.add_argument("--self-test", action="store_true", help="judge self/*.cpp, whose verdicts are known")
    parser.add_argument("--verbose", action="store_true", help="print what the compiler says of every file")
    parser.add_argument("files", nargs="*", type=Path, help="default: every .cpp file of this folder")
    arguments = parser.parse_args()
    compiler = compilers.find_or_exit(arguments.compiler, "compile-fail tests", arguments.require)
    sources = arguments.files or sorted((HERE / "self" if arguments.self_test else HERE).glob("*.cpp"))
    if not sources:
        print(f"FAILED: no files in {HERE}")
        return 1

    wrong = 0
    with tempfile.TemporaryDirectory(prefix="dovetail-compile-fail-") as build:
        judged = compilers.in_parallel(lambda source: judge(compiler, source, Path(build)), sources)
    for source, (verdict, output) in zip(sources, judged):
        wanted = VERDICT.search(source.read_text("utf-8")) if arguments.self_test else None
        fault = wanted[1] not in verdict if wanted else verdict != "ok"
        wrong += fault
        instead = f" (wanted: {wanted[1]})" if fault and wanted else ""
        print(f"{source.name}: {'WRONG: ' if fault else ''}{verdict}{instead}")
        if fault or arguments.verbose:
            print(*("    " + line for line in output.splitlines()), sep="\n")
    print(f"{len(sources)} files with {compiler.name}: {wrong} judged wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
