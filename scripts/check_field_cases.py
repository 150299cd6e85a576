#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the table of field cases, tests/field_cases.md, and the tests say the same:

- every number from 1 to the last case stands in it once, alone or in a range of numbers without a case,
- every row names a test case in a file that has it, or a file that is there, or `later:` and the topic,
- every test case of tests/field_cases*_test.cpp is named in it.

    scripts/check_field_cases.py [--root FOLDER]

Prints `file:line: what` for each finding.
"""

import argparse
import re
import sys
from pathlib import Path

TABLE = "tests/field_cases.md"
LAST = 158  # number of the last case that was collected
ROW = re.compile(r"^\| *(\d+)(?:-(\d+))? *\|(.*)\|(.*)\|$")
NAMED = re.compile(r"`([^`]+)`|\"([^\"]+)\"")  # a file, or a test case of the file before it
CASE = re.compile(r"\b(?:TEMPLATE_)?TEST_CASE\(\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)")


def cases_of(path):
    """Names of the test cases of a source; pieces of a name that stand side by side are one."""
    if path.suffix != ".cpp" or not path.is_file():
        return []
    return ["".join(re.findall(r'"((?:[^"\\]|\\.)*)"', name)) for name in CASE.findall(path.read_text("utf-8"))]


def check_row(cell, root, seen):
    """What is wrong with the last cell of a row; names that are found go to `seen` as (file, test case)."""
    file, cases, found = None, [], []
    for path, case in NAMED.findall(cell):
        if path:
            file, cases = path, cases_of(root / path)
            if not (root / path).is_file():
                found.append(f"there is no file {path}")
        elif file is None:
            found.append(f"no file stands before the test case \"{case}\"")
        elif case in cases:
            seen.add((file, case))
        else:
            found.append(f"{file} has no test case \"{case}\"")
    if file is None and not re.search(r"\blater: \w", cell):
        found.append("names no test case, no file and no later topic")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the source tree")
    root = parser.parse_args().root.resolve()
    found, lines, seen = [], {}, set()
    text = (root / TABLE).read_text("utf-8") if (root / TABLE).is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        row = ROW.match(line)
        if not row:
            if re.match(r"^\| *\d", line):
                found.append(f"{TABLE}:{number}: this row is not `| number | what | where |`")
            continue
        first, last, what, where = row.groups()
        for case in range(int(first), int(last or first) + 1):
            if case in lines:
                found.append(f"{TABLE}:{number}: case {case} stands in line {lines[case]}, too")
            lines[case] = number
            if case > LAST:
                found.append(f"{TABLE}:{number}: case {case} is beyond the last, {LAST}")
        if not what.strip():
            found.append(f"{TABLE}:{number}: says nothing of the fault")
        if where.strip() != "no case":
            found += [f"{TABLE}:{number}: {fault}" for fault in check_row(where, root, seen)]
    found += [f"{TABLE}: lacks case {case}" for case in range(1, LAST + 1) if case not in lines]
    count = 0
    for path in sorted((root / "tests").glob("field_cases*_test.cpp")):
        name = str(path.relative_to(root))
        cases = cases_of(path)
        count += len(cases)
        found += [f"{name}: \"{case}\" is not in {TABLE}" for case in cases if (name, case) not in seen]
    print(*found, f"{len(lines)} field cases, {count} tests of their own: {len(found)} findings", sep="\n")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
