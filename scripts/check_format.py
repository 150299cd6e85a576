#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the C++ sources are formatted as .clang-format says, with clang-format 14: other versions differ.

    scripts/check_format.py [--fix] [FILE...]

Prints `file:line` of the first difference in each file that differs; --fix formats them in place. Exit code 77 where
clang-format 14 is absent and CI=true does not demand it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import compilers

FOLDERS = ("include", "kernels", "tests", "examples", "benchmarks")
SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh", ".h")


def find_formatter():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True).stdout
            if re.search(r"version 14\.", said):
                return path
    return None


def first_difference(formatter, path):
    """Line number of the first difference, or None."""
    told = subprocess.run([formatter, "--style=file", str(path)], stdout=subprocess.PIPE, check=True).stdout.decode()
    wanted, is_now = told.splitlines(), path.read_text("utf-8").splitlines()
    if told == path.read_text("utf-8"):
        return None
    return next((i + 1 for i, (a, b) in enumerate(zip(wanted, is_now)) if a != b), min(len(wanted), len(is_now)) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="format in place instead of reporting")
    parser.add_argument("files", nargs="*", type=Path, help="default: every C++ source")
    arguments = parser.parse_args()
    formatter = find_formatter()
    if not formatter:
        required = os.environ.get("CI") == "true"
        print(f"{'FAILED' if required else 'SKIPPED'}: clang-format 14 was not found (Debian 12: clang-format)")
        return 1 if required else compilers.SKIPPED
    files = arguments.files or sorted(
        path for folder in FOLDERS for path in (compilers.ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    if arguments.fix:
        subprocess.run([formatter, "--style=file", "-i", *map(str, files)], check=True)
        return 0
    lines = compilers.in_parallel(lambda path: first_difference(formatter, path), files)
    names = [os.path.relpath(path, compilers.ROOT) for path in files]
    wrong = [f"{name}:{line}: not formatted" for name, line in zip(names, lines) if line]
    print(*wrong, f"format of {len(files)} files: {len(wrong)} differ" + (", see --fix" if wrong else ""), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
