#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds and runs tests/consumer, a project outside the tree, in every way that users depend on the library.

    scripts/check_consumers.py --compiler g++|clang++-19 [--build FOLDER]

The ways: an installed CMake package, add_subdirectory, FetchContent of a local folder, pkg-config, and include paths
alone (C++20 and C++23). The plan-time core is built where CMake finds no dependency; the installation is moved before
it is used and must hold every header; what cannot work must say why. One line for each failure, with a log of all that
was printed. Exit code 77 where the compiler or pkg-config is absent and CI=true does not demand it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import check_includes
import compilers

ALL = ("threads", "cpu", "io")
# As on a machine that has a compiler and nothing else.
NO_DEPENDENCIES = ["-DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON",
                   "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON", "-DDOVETAIL_DNNL_INCLUDE=OFF", "-DDOVETAIL_DNNL_LIBRARY=OFF"]
FOREIGN = r"dnnl|nlohmann|pthread"  # in a command that builds the core, a sign of a dependency


class Failure(Exception):
    """One line about what went wrong; `of` is what the command printed, if there was one."""

    def __init__(self, line, of=""):
        super().__init__(line)
        self.of = of


def told(output):
    """What of an output says most; CMake's errors are the paragraph after their head."""
    cmake = re.search(r"^CMake Error[^\n]*:\n\n?(.+?)\n\n", output, re.MULTILINE | re.DOTALL)
    return " ".join(cmake[1].split()) if cmake else compilers.first_error(output)


def output_of(command, folder=None, fails=False, **environment):
    """Runs a command and returns what it printed; its failure (with `fails`: its success) is ours."""
    done = subprocess.run([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | environment)
    if (done.returncode != 0) != fails:
        what = "succeeded" if fails else told(done.stdout)
        raise Failure(f"{Path(str(command[0])).name}: {what}", f"{shlex.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def names_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


class Consumers:
    def __init__(self, compiler, build, root):
        self.compiler, self.build, self.root = compiler.path, build, root
        self.consumer = root / "tests/consumer"
        self.sources = [self.consumer / "main.cpp", self.consumer / "other.cpp"]
        self.installed = build / "moved here"  # a blank, as users have them
        text = (root / "include/dovetail/version.hpp").read_text("utf-8")
        self.version = re.search(r'DOVETAIL_VERSION "([\d.]+)"', text)[1]
        self.generator = ["-G", "Ninja"] if shutil.which("ninja") else []

    # ---- the steps

    def configure(self, source, name, *options, fails=False):
        folder = self.build / name
        shutil.rmtree(folder, ignore_errors=True)
        command = ["cmake", "-S", source, "-B", folder, *self.generator, f"-DCMAKE_CXX_COMPILER={self.compiler}"]
        return output_of([*command, *options], fails=fails)

    def with_cmake(self, name, way, components, *options):
        """Configures, builds and runs the consumer."""
        self.configure(self.consumer, name, f"-DWAY={way}", f"-DCOMPONENTS={' '.join(components)}",
                       f"-DEXPECTED_VERSION={self.version}", *options)
        output_of(["cmake", "--build", self.build / name])
        output_of([self.build / name / "consumer"], self.build / name)
        commands = json.loads((self.build / name / "compile_commands.json").read_text("utf-8"))
        for command in (entry["command"] for entry in commands):
            self.refuse_foreign_options(command, components)

    def refuse_foreign_options(self, command, components):
        """Dovetail may add include paths, a standard, and -pthread with threads: nothing that changes a user's code."""
        for option in shlex.split(command)[1:]:
            own = re.fullmatch(r"-D(?!WITH_|EXPECTED_VERSION).*", option)
            if own or option.startswith(("-W", "-O", "-f", "-m", "-g")):
                raise Failure(f"Dovetail adds {option} to a user's compiler")
        if not components and re.search(FOREIGN, command.replace(str(self.root), "").replace(str(self.build), "")):
            raise Failure(f"the core is not built alone: {command}")

    def with_compiler(self, name, options, components, libraries=()):
        """Compiles and runs the consumer without a build system."""
        folder = self.build / name
        folder.mkdir(parents=True, exist_ok=True)
        defines = [f'-DEXPECTED_VERSION="{self.version}"', *(f"-DWITH_{component.upper()}" for component in components)]
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        program = folder / "consumer"
        output_of([self.compiler, *warnings, *options, *defines, *self.sources, "-o", program, *libraries])
        output_of([program], folder)

    def refused(self, name, expected, *options):
        """The package must be refused, with these words in the message."""
        said = " ".join(self.configure(self.consumer, name, "-DWAY=package", f"-DCMAKE_PREFIX_PATH={self.installed}",
                                       f"-DEXPECTED_VERSION={self.version}", *options, fails=True).split())
        if not re.search(expected, said):
            raise Failure(f"the error does not say {expected!r}", said)

    # ---- the ways

    def install(self):
        """Without any dependency; then the folder moves, as nothing in it may name where it was."""
        first = self.build / "installed first"
        for folder in (first, self.installed):
            shutil.rmtree(folder, ignore_errors=True)
        parts = [f"-DDOVETAIL_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCHMARKS")]
        self.configure(self.root, "library", *parts, *NO_DEPENDENCIES)
        output_of(["cmake", "--install", self.build / "library", "--prefix", first])
        first.rename(self.installed)
        wanted = {f"dovetail/{name}" for name in check_includes.headers(self.root)}
        found = names_below(self.installed / "include")
        if wanted != found or not found:
            raise Failure(f"headers that are not installed, or not ours: {' '.join(sorted(wanted ^ found))}")
        named = {f"docs/{name}" for name in names_below(self.root / "docs") if name.endswith(".md")}
        missing = (named | {"LICENSE", "README.md"}) - names_below(self.installed / "share/doc/dovetail")
        if missing:
            raise Failure(f"documents that are not installed: {' '.join(sorted(missing))}")

    def package(self):
        prefix = f"-DCMAKE_PREFIX_PATH={self.installed}"
        self.with_cmake("package core", "package", (), prefix, "-DVERSION=0.1", *NO_DEPENDENCIES)
        self.with_cmake("package", "package", ALL, prefix)

    def package_refusals(self):
        self.refused("unknown component", 'dovetail has no component "thread"; it has: threads, cpu, io',
                     "-DCOMPONENTS=thread")
        for component, needs in (("threads", "a threads library"), ("cpu", "oneDNN"), ("io", "nlohmann_json")):
            self.refused("missing dependency", f"component {component} needs {needs}", f"-DCOMPONENTS={component}",
                         *NO_DEPENDENCIES)
        for version in ("0.0.9", "0.2", "1"):
            self.refused("wrong version", f'compatible with requested version "{version}".*version: {self.version}',
                         f"-DVERSION={version}")

    def subdirectory(self):
        self.with_cmake("subdirectory core", "subdirectory", (), f"-DDOVETAIL_SOURCE={self.root}", *NO_DEPENDENCIES)
        self.with_cmake("subdirectory", "subdirectory", ALL, f"-DDOVETAIL_SOURCE={self.root}")

    def fetch_content(self):
        offline = "-DFETCHCONTENT_FULLY_DISCONNECTED=ON"
        self.with_cmake("fetch", "fetch", ("threads",), f"-DDOVETAIL_SOURCE={self.root}", offline)
        # As a user tells it who wants a checkout instead of what a project declares.
        override = f"-DFETCHCONTENT_SOURCE_DIR_DOVETAIL={self.root}"
        self.with_cmake("fetch core", "fetch", (), "-DDOVETAIL_SOURCE=declared-elsewhere", override, offline,
                        *NO_DEPENDENCIES)

    def include_paths(self):
        include, kernels = (["-I", self.root / folder] for folder in compilers.INCLUDE_ROOTS)
        for standard in ("-std=c++20", "-std=c++23"):
            self.with_compiler(f"include {standard}", [standard, *include], ())
        self.with_compiler("include all", ["-std=c++23", "-pthread", *include, *kernels], ALL, ["-ldnnl"])
        used = output_of([self.compiler, "-std=c++20", "-M", *include, self.sources[1]])
        foreign = re.findall(rf"\S*/(?:{FOREIGN}|thread)\S*", used.replace(str(self.root), ""))
        if foreign:
            raise Failure(f"the core includes {foreign[0]}")

    def every_header_in_the_next_standard(self):
        source = self.build / "every_header.cpp"
        names = check_includes.headers(self.root)
        source.write_text("".join(f"#include <dovetail/{name}>\n" for name in names), "utf-8")
        roots = [part for folder in compilers.INCLUDE_ROOTS for part in ("-I", self.root / folder)]
        output_of([self.compiler, "-std=c++23", *compilers.WARNINGS, "-fsyntax-only", *roots, source])

    def pkg_config(self):
        def asked(*names):
            said = output_of(["pkg-config", "--cflags", "--libs", *names], PKG_CONFIG_PATH=str(where))
            return shlex.split(said)

        where = self.installed / "share/pkgconfig"
        flags = asked("dovetail")
        if re.search(FOREIGN, " ".join(flags).replace(str(self.build), "")):
            raise Failure(f"the core is not alone: {' '.join(flags)}")
        self.with_compiler("pkg-config core", ["-std=c++20", *flags], ())
        flags = asked("dovetail-threads", "dovetail-cpu", "dovetail-io")
        libraries = [flag for flag in flags if flag.startswith("-l")]
        others = [flag for flag in flags if flag not in libraries]
        self.with_compiler("pkg-config", ["-std=c++20", *others], ALL, libraries)
        version = output_of(["pkg-config", "--modversion", "dovetail"], PKG_CONFIG_PATH=str(where)).strip()
        if version != self.version:
            raise Failure(f"pkg-config says version {version}, not {self.version}")
        output_of(["pkg-config", "--exists", "dovetail >= 1"], PKG_CONFIG_PATH=str(where), fails=True)

    def run(self, way):
        try:
            way()
        except Failure as failure:
            log = self.build / f"{way.__name__}.log"
            log.write_text(failure.of, "utf-8")
            return [f"{way.__name__}: {failure}" + (f" [all of it: {log}]" if failure.of else "")]
        return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=("g++", "clang++-19"), required=True)
    parser.add_argument("--build", type=Path, default=compilers.ROOT / "build" / "consumers", help="for what is made")
    arguments = parser.parse_args()
    compiler = compilers.find_or_exit(arguments.compiler, "consumers", False)
    build = arguments.build.resolve() / compiler.name
    build.mkdir(parents=True, exist_ok=True)
    consumers = Consumers(compiler, build, compilers.ROOT)
    lines = consumers.run(consumers.install)
    ways = [consumers.subdirectory, consumers.fetch_content, consumers.include_paths,
            consumers.every_header_in_the_next_standard]
    if not lines:
        ways += [consumers.package, consumers.package_refusals]
    skipped = not shutil.which("pkg-config") and "pkg-config was not found (Debian: pkg-config)"
    if not skipped and not lines:
        ways.append(consumers.pkg_config)
    lines += [line for found in compilers.in_parallel(consumers.run, ways) for line in found]
    if skipped and os.environ.get("CI") == "true":
        lines.append(f"pkg_config: {skipped} and is required here")
    print(*lines, f"{len(ways) + 1} ways to depend on Dovetail with {compiler.name}: {len(lines)} failures", sep="\n")
    if skipped and not lines:
        print(f"SKIPPED: {skipped}; NOTHING WAS CHECKED WITH IT")
        return compilers.SKIPPED
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
