# SPDX-License-Identifier: MIT
"""The compilers that the source checks run: where each is found, how it is called, and what its absence means.

A compiler that is not there is skipped with a line that says so (exit code 77); where CI=true, or --require is given,
its absence is a failure. Called by check_headers.py and tests/compile_fail/run.py.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE_ROOTS = ("include", "kernels")
SKIPPED = 77
JOBS = 2  # a compiler of constexpr-heavy headers takes a gigabyte at times

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
FLAGS = {
    "g++": ["-std=c++20", *WARNINGS, "-fdiagnostics-color=never", "-fmessage-length=0", "-ftrack-macro-expansion=0"],
    "clang++-19": ["-std=c++20", *WARNINGS, "-fno-color-diagnostics", "-fconstexpr-steps=500000"],
    "nvcc": ["-std=c++20", "-Werror", "all-warnings"],
}
PACKAGES = {"g++": "Debian: g++", "clang++-19": "Debian: clang-19", "nvcc": "CUDA toolkit 13"}


class Compiler:
    """One compiler: `compile` returns the exit code and all that it printed."""

    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.suffix = ".cu" if name == "nvcc" else ".cpp"
        self.ccache = shutil.which("ccache")

    def command(self, source, output, defines=(), roots=None):
        roots = roots or [ROOT / root for root in INCLUDE_ROOTS]
        language = ["-x", "cu"] if self.name == "nvcc" and source.suffix != ".cu" else []
        return [
            *([self.ccache] if self.ccache else []),
            self.path,
            *FLAGS[self.name],
            *(f"-D{define}" for define in defines),
            *(part for root in roots for part in ("-I", str(root))),
            *language,
            "-c",
            str(source),
            "-o",
            str(output),
        ]

    def compile(self, source, output, defines=(), roots=None):
        done = subprocess.run(
            self.command(source, output, defines, roots),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return done.returncode, done.stdout


def find(name):
    path = shutil.which(name)
    if name == "nvcc" and not path:
        for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
            path = path or (home and shutil.which("nvcc", path=f"{home}/bin"))
    return Compiler(name, path) if path else None


def find_or_exit(name, what, require):
    """The compiler; without it the program ends, as skipped or as failed."""
    compiler = find(name)
    if compiler:
        return compiler
    if require or os.environ.get("CI") == "true":
        print(f"FAILED: {what}: {name} was not found ({PACKAGES[name]}) and is required here")
        sys.exit(1)
    print(f"SKIPPED: {what}: {name} was not found ({PACKAGES[name]}); NOTHING WAS CHECKED WITH IT")
    sys.exit(SKIPPED)


def in_parallel(function, items):
    """Results in the order of the items, with at most JOBS at a time."""
    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(function, items))


def first_error(output):
    """The line of a compiler's output that tells most: its first error, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no output")


def first_error_of_each_file(output):
    """The first error in each source file, in the order of the output."""
    first = {}
    for line in output.splitlines():
        match = re.match(r"\s*([^\s:(]+)[:(]\d+.*\berror\b", line)
        if match:
            first.setdefault(match[1], line.strip())
    return list(first.values()) or [first_error(output)]
