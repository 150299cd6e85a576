#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the direction of includes between the folders of include/dovetail and kernels/, and what comes from outside.

    scripts/check_includes.py [--root FOLDER]

Prints `file:line: what is wrong; what is allowed` for each violation and exits with 1 where there is one. The table
below is the rule; docs/design explains it.
"""

import argparse
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

# Plan-time layers from the bottom up: each sees itself and those before it.
PLAN_TIME = ("meta", "tensor", "mesh", "plan", "layer", "policy", "models")
STEP = ("plan/step.hpp", "plan/op.hpp")  # what a step is, and the op it names
CONCEPTS = ("comm/communicator.hpp", "device/device.hpp", "device/kernel.hpp")  # what running knows of backends

# What a folder may include besides itself: whole folders, or single headers.
MAY_INCLUDE = {layer: PLAN_TIME[:i] for i, layer in enumerate(PLAN_TIME)}
MAY_INCLUDE |= {
    "schedule": ("meta", "plan"),
    "io": ("meta", "tensor", "plan"),
    "comm": ("meta", "tensor", "mesh", *STEP),
    "device": ("meta", "tensor", "mesh", *STEP),
    "kernels": ("meta", "tensor", "mesh", *STEP, "plan/builtin_ops.hpp", "device"),  # a table of kernels names its ops
    "run": (*PLAN_TIME, "schedule", "io", *CONCEPTS),
    "typed": ("meta", "tensor", "mesh", "plan", *CONCEPTS),
}
# A backend may include what is its own: (the including file, what it may include besides).
BACKENDS = (
    ("device/reference*", ("kernels/reference",)),
    ("device/cpu*", ("kernels/cpu",)),
    ("device/cuda*", ("kernels/cuda",)),
)
UMBRELLA = "dovetail.hpp"
ROOT_HEADERS = {UMBRELLA: (*PLAN_TIME, "version.hpp"), "version.hpp": ()}
EVERYWHERE = ("version.hpp",)

HEAVY = ("thread", "iostream", "ranges", "functional")  # not in plan-time headers: every user pays for them
# Headers of other libraries and of the system: (pattern, files that may include them).
OUTSIDE = (
    (r"mpi\.h", ("comm/mpi*",)),
    (r"nccl\w*\.h", ("comm/nccl*",)),
    (r"(cuda|cublas|curand|nvtx|mma|cooperative_groups)[\w./]*|(cub|thrust|cute|cutlass|nv)/.*",
     ("device/cuda*", "comm/nccl*", "kernels/cuda*")),
    (r"(oneapi/dnnl/)?dnnl\w*\.(h|hpp)", ("device/cpu*", "kernels/cpu*")),
    (r"nlohmann/.*", ("io/*",)),
    (r"\w*mmintrin\.h|x86intrin\.h|arm_\w+\.h|cpuid\.h", ("comm/threads*", "device/cpu*", "kernels/cpu*")),
    (r"(sys|linux)/.*|(fcntl|unistd|sched|pthread|signal|poll|errno|dlfcn|spawn)\.h",
     ("io/*", "comm/*", "run/*", "device/*", "kernels/*")),
)
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal
    cstdarg cstddef cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar cwctype deque exception execution
    filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream
    iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional ostream queue
    random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location span sstream stack
    stdexcept stop_token streambuf string string_view strstream syncstream system_error thread tuple type_traits
    typeindex typeinfo unordered_map unordered_set utility valarray variant vector version""".split())
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)


def headers(root):
    """Every header of the library, as {name after dovetail/: path}."""
    found = {}
    for base in ("include", "kernels"):
        for path in sorted((root / base).rglob("*")):
            if path.suffix in (".hpp", ".h", ".cuh") and path.is_file():
                name = path.relative_to(root / base).as_posix()
                found[name.removeprefix("dovetail/")] = path
    return found


def includes(path):
    """(line number, quote character, name) of each include of a file; comments hide nothing else."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), path.read_text("utf-8"), flags=re.DOTALL)
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(1), m.group(2)) for m in INCLUDE.finditer(text)]


def folder(name):
    return name.split("/")[0] if "/" in name else ""


def allowed_for(name):
    """Folders and headers that the header may include, or None where nobody has said."""
    if not folder(name):
        return ROOT_HEADERS.get(name)
    if folder(name) not in MAY_INCLUDE:
        return None
    allowed = [folder(name), *MAY_INCLUDE[folder(name)], *EVERYWHERE]
    for pattern, more in BACKENDS:
        if fnmatch(name, pattern):
            allowed += more
    return allowed


def is_plan_time(name):
    return folder(name) in PLAN_TIME or name == UMBRELLA


def outside_fault(name, included):
    """What is wrong with an include of something that is not ours, or None."""
    if is_plan_time(name):
        if included in HEAVY:
            return f"plan-time headers include none of <{'>, <'.join(HEAVY)}>"
        return None if included in STANDARD else "plan-time headers include the C++ standard library only"
    if included in STANDARD:
        return None
    for pattern, users in OUTSIDE:
        if re.fullmatch(pattern, included):
            if any(fnmatch(name, user) for user in users):
                return None
            return f"only {', '.join(users)} may include it"
    return "not a header of the C++ standard library; if it is needed, say who may include it in OUTSIDE"


def inside_fault(name, included, known):
    if included == UMBRELLA:
        return "the umbrella is for users: include what is meant"
    if included not in known:
        return "no such header"
    allowed = allowed_for(name)
    if any(included == a or included.startswith(a + "/") for a in allowed):
        return None
    return f"{folder(name) or name} may include: {', '.join(allowed) or 'nothing of Dovetail'}"


def cycles(graph):
    """One line for each header that includes itself by way of others."""
    faults, done, path = [], set(), []

    def visit(name):
        if name in path:
            faults.append(" -> ".join([*path[path.index(name):], name]) + ": headers include each other in a circle")
        elif name not in done:
            path.append(name)
            for included in graph.get(name, ()):
                visit(included)
            path.pop()
            done.add(name)

    for name in graph:
        visit(name)
    return faults


def violations(root):
    known = headers(root)
    faults, graph = [], {}
    for name, path in known.items():
        place = path.relative_to(root).as_posix()
        graph[name] = []
        if allowed_for(name) is None:
            faults.append(f"{place}:1: no rule says what this may include; add its folder to MAY_INCLUDE")
            continue
        for line, quote, included in includes(path):
            if quote == '"':
                fault = "write <dovetail/...>: a quoted include depends on where the file lies"
            elif included.startswith("dovetail/"):
                included = included.removeprefix("dovetail/")
                graph[name].append(included)
                fault = inside_fault(name, included, known)
                included = f"dovetail/{included}"
            else:
                fault = outside_fault(name, included)
            if fault:
                faults.append(f"{place}:{line}: includes <{included}>; {fault}")
    return len(known), faults + cycles(graph)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the source tree")
    count, faults = violations(parser.parse_args().root.resolve())
    if not count:
        faults.append("no headers were found: is --root right?")
    print(*faults, f"includes of {count} headers: {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
