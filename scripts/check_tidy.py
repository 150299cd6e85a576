#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy 19 over every header, with the checks that .clang-tidy states.

    scripts/check_tidy.py [--build FOLDER]

One unit includes every header; others use them, as what is inside a template is judged best where it is used. Prints
`file:line: what [check]` for each finding. Exit code 77 where clang-tidy 19 is absent and CI=true does not demand it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import check_includes
import compilers

USERS = ("tests/consumer/main.cpp", "examples/own_layer.cpp")
DEFINES = ("WITH_THREADS", "WITH_CPU", "WITH_IO", 'EXPECTED_VERSION="0"')


def find_tidy():
    for name in ("clang-tidy-19", "clang-tidy"):
        path = shutil.which(name)
        if path and re.search(r"version 19\.", subprocess.run([path, "--version"], stdout=subprocess.PIPE,
                                                              text=True).stdout):
            return path
    return None


def findings(tidy, source):
    """The lines about headers, of one unit; an error of the compiler is one of them."""
    command = [tidy, f"--config-file={compilers.ROOT / '.clang-tidy'}", "--quiet", str(source), "--", "-std=c++20",
               *(f"-D{define}" for define in DEFINES),
               *(f"-I{compilers.ROOT / root}" for root in compilers.INCLUDE_ROOTS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    found = re.findall(r"^\S+:\d+:\d+: (?:warning|error): .*\[\S+\]$", done.stdout, re.MULTILINE)
    if done.returncode and not found:
        found = [f"{source}: {compilers.first_error(done.stdout)}"]
    lines = [line.replace(f"{compilers.ROOT}/", "") for line in found]
    return [line for line in lines if line.startswith(compilers.INCLUDE_ROOTS) or " error: " in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=compilers.ROOT / "build" / "tidy", help="for what is made")
    build = parser.parse_args().build.resolve()
    tidy = find_tidy()
    if not tidy:
        required = os.environ.get("CI") == "true"
        print(f"{'FAILED' if required else 'SKIPPED'}: clang-tidy 19 was not found (Debian: clang-tidy-19); "
              "NOTHING WAS CHECKED WITH IT")
        return 1 if required else compilers.SKIPPED
    build.mkdir(parents=True, exist_ok=True)
    names = check_includes.headers(compilers.ROOT)
    every = build / "every_header.cpp"
    every.write_text("".join(f"#include <dovetail/{name}>\n" for name in names if not name.endswith(".cuh")), "utf-8")
    units = [every, *(compilers.ROOT / user for user in USERS)]
    lines = dict.fromkeys(line for found in compilers.in_parallel(lambda unit: findings(tidy, unit), units)
                          for line in found)
    print(*lines, f"clang-tidy of {len(names)} headers in {len(units)} units: {len(lines)} findings", sep="\n")
    return 1 if lines or not names else 0


if __name__ == "__main__":
    sys.exit(main())
