#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that headers stand alone and survive their surroundings.

    scripts/check_headers.py --compiler g++|clang++-19|nvcc [--build FOLDER] [--require] [HEADER...]

g++ and clang: every header is a translation unit of its own, included twice; all of them together are one, and one more
after the macros that hostile headers of other projects define; and these two must link. nvcc, which is slow: all
plan-time headers in one .cu file, and each alone only where that fails. One line for each file with errors; what the
compiler printed is kept in FOLDER. Exit code 77 where the compiler is absent and neither CI=true nor --require demands
it.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import check_includes
import compilers

# Macros that common system headers define; ours must work after them (write `(std::min)(a, b)`).
HOSTILE = ("min(a, b) hostile_min", "max(a, b) hostile_max", "I hostile_I", "small hostile_small")


def unit(names, times=1):
    return "".join(f"#include <dovetail/{name}>\n" for name in names for _ in range(times))


def hostile_unit(root, known, names):
    """Everything foreign first, as it may use those names itself; then the macros; then ours."""
    foreign = {included for path in known.values() for _, _, included in check_includes.includes(path)
               if not included.startswith("dovetail/")}
    needed = {included for name in names for included in reach(known, name)} & foreign
    macros = "".join(f"#undef {m.split('(')[0].split()[0]}\n#define {m}\n" for m in HOSTILE)
    return "".join(f"#include <{name}>\n" for name in sorted(needed)) + macros + unit(names)


def reach(known, name):
    """Every header, ours and foreign, that a header includes by way of ours."""
    found, open_names = set(), [name]
    while open_names:
        for _, _, included in check_includes.includes(known[open_names.pop()]):
            short = included.removeprefix("dovetail/")
            if included not in found and short in known:
                open_names.append(short)
            found.add(included)
    return found


class Check:
    def __init__(self, compiler, build, roots):
        self.compiler, self.build, self.roots = compiler, build, roots

    def run(self, label, text):
        """Compiles a unit; returns a line for each file in which it failed."""
        stem = self.stem(label)
        source = stem.with_name(stem.name + self.compiler.suffix)
        if not source.exists() or source.read_text("utf-8") != text:
            source.write_text(text, "utf-8")
        code, output = self.compiler.compile(source, stem.with_name(stem.name + ".o"), roots=self.roots)
        log = stem.with_name(stem.name + ".log")
        log.write_text(output, "utf-8")
        errors = compilers.first_error_of_each_file(output) if code else []
        return [f"{label}: {error} [all of it: {log}]" for error in errors]


    def stem(self, label):
        return self.build / label.replace("/", ".")

    def link(self, *labels):
        """Joins compiled units; a definition that is in two of them is a failure."""
        objects = [f"{self.stem(label)}.o" for label in labels]
        command = [self.compiler.path, "-r", "-nostdlib", *objects, "-o", str(self.build / "linked.o")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        twice = [line for line in done.stdout.splitlines() if "multiple definition" in line]
        faults = twice or ([compilers.first_error(done.stdout)] if done.returncode else [])
        return [f"linked twice: {fault.strip()}" for fault in faults]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=compilers.FLAGS, required=True)
    parser.add_argument("--build", type=Path, default=compilers.ROOT / "build" / "headers", help="for what is made")
    parser.add_argument("--require", action="store_true", help="fail, not skip, where the compiler is absent")
    parser.add_argument("--root", type=Path, default=compilers.ROOT, help="the source tree")
    parser.add_argument("headers", nargs="*", help="as they are included, without dovetail/ (default: all)")
    arguments = parser.parse_args()
    compiler = compilers.find_or_exit(arguments.compiler, "header checks", arguments.require)
    root = arguments.root.resolve()
    known = check_includes.headers(root)
    names = [name for name in known if not arguments.headers or name in arguments.headers]
    unknown = [name for name in arguments.headers if name not in known]
    if unknown or not names:
        print(f"FAILED: no such header: {', '.join(unknown) or 'none at all were found'}")
        return 1
    build = arguments.build.resolve() / compiler.name
    build.mkdir(parents=True, exist_ok=True)
    check = Check(compiler, build, [root / base for base in compilers.INCLUDE_ROOTS])

    if compiler.name == "nvcc":
        names = [name for name in names if check_includes.is_plan_time(name) or name == "version.hpp"]
        failures = check.run("all_plan_time_headers", unit(names))
        jobs = [(name, unit([name])) for name in names] if failures else []
    else:
        jobs = [(name, unit([name], 2)) for name in names]
        jobs += [("all_headers", unit(names)), ("after_hostile_macros", hostile_unit(root, known, names))]
        failures = []
    failures += [line for lines in compilers.in_parallel(lambda job: check.run(*job), jobs) for line in lines]
    if compiler.name != "nvcc" and not failures:
        failures += check.link("all_headers", "after_hostile_macros")
    print(*failures, f"{len(names)} headers with {compiler.name}: {len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
