#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that no source holds what only its author could use: paths of one machine, notes of unfinished work, hosts of
package registries; and that lines of code are at most 120 characters long.

    scripts/check_words.py [--root FOLDER]

Prints `file:line: what` for each finding. Files are those that git would keep (without git: all outside build/).
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# Each pattern is put together from halves, so that this file does not contain what it looks for.
FORBIDDEN = (
    ("a path of one machine", r"(?<![\w./-])/(" + "|".join(("wo" + "rk", "ro" + "ot", "ho" + "me")) + r")/"),
    ("a note of unfinished work", r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b"),
    ("a host of a package registry", "|".join(host + r"\.(org|io|com|net)\b" for host in (
        r"\bpy" + "pi", r"\bpython" + "hosted", r"\b(deb|security|snapshot)\.deb" + "ian", r"\bnpm" + "js",
        r"\bcr" + "ates", r"\bproxy\.go" + "lang", r"\bdoc" + "ker", r"\bana" + "conda"))),
)
CODE = (".hpp", ".cpp", ".cu", ".cuh", ".h", ".py", ".cmake", ".sh", ".in")
LONGEST = 120


def is_code(path):
    return path.suffix in CODE or path.name in ("CMakeLists.txt", "CMakePresets.json") or path.parent.name in (
        "scripts", ".ci")


def files(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        names = [Path(name) for name in sorted(set(listed.stdout.decode().split("\0"))) if name]
    else:
        names = sorted(p.relative_to(root) for p in root.rglob("*"))
        names = [name for name in names if name.parts[0] not in ("build", ".git") and "__pycache__" not in name.parts]
    return [name for name in names if (root / name).is_file()]


def findings(root):
    found, count = [], 0
    for name in files(root):
        try:
            text = (root / name).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not text: weights, pictures
        count += 1
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in FORBIDDEN:
                match = re.search(pattern, line)
                if match:
                    found.append(f"{name}:{number}: {what}: {match.group()}")
            if is_code(name) and len(line) > LONGEST and not is_regular_expression(line):
                found.append(f"{name}:{number}: {len(line)} characters, more than {LONGEST}")
    return count, found


def is_regular_expression(line):
    """Expectations of compile-fail files are one line each, however long."""
    return line.startswith("// expect")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the source tree")
    count, found = findings(parser.parse_args().root.resolve())
    print(*found, f"words of {count} files: {len(found)} findings", sep="\n")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
