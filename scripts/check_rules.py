#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that no rule of layouts lacks what a user and a maintainer need of it. The rules are those of the table in
include/dovetail/meta/verdict.hpp and those that a `static_assert` in a header states. For each there must be

- a page docs/errors/AREA-RULE.md that begins with the rule's id and links to a compile-fail file of the rule,
- a file in tests/compile_fail/ that expects the id and the page in the compiler's error,
- a `static_assert` that states the id and the page,
- a run-time test of its sentence: `Rule::area_rule` in tests/sentence_test.cpp.

    scripts/check_rules.py [--root FOLDER]

Three rules are no verdicts on a plan, so no sentence is tested there: layer/constant, where planning a type is no
constant expression; placement/needs, which judges code by hand at the typed level; device/kernel, which the executor
says in its own words (tests/executor_test.cpp). Prints `rule: what` for each finding.
"""

import argparse
import re
import sys
from pathlib import Path

AT_COMPILE_TIME_ONLY = {"device/kernel", "layer/constant", "placement/needs"}
VERDICTS = "include/dovetail/meta/verdict.hpp"
ASSERTED = re.compile(r"static_assert\([^;]*?\"([a-z]+/[a-z]+): ((?:[^\"]|\"\s*\")*)\"", re.DOTALL)


def table(text):
    """(enumerator, id) of each rule of the verdict; their counts may differ, which is a finding of its own."""
    enumerators = re.search(r"enum class Rule[^{]*{(.*?)}", text, re.DOTALL)
    ids = re.search(r"ids\[\] = {(.*?)}", text, re.DOTALL)
    if not enumerators or not ids:
        return [], []
    return (re.findall(r"^\s*(\w+),", enumerators[1], re.MULTILINE)[1:], re.findall(r'"([^"]+)"', ids[1])[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the source tree")
    root = parser.parse_args().root.resolve()

    def read(name):
        return (root / name).read_text("utf-8") if (root / name).is_file() else ""

    found = []
    enumerators, ids = table(read(VERDICTS))
    if [e.replace("_", "/") for e in enumerators] != ids:
        found.append(f"{VERDICTS}: the enumerators of Rule and the words of id_of are not the same")
    count = re.search(r"rule_count = (\d+)", read(VERDICTS))
    if not count or int(count[1]) != len(ids) + 1:
        found.append(f"{VERDICTS}: rule_count is not the number of rules, {len(ids) + 1} with ok")
    asserted = {}
    for header in sorted((root / "include").rglob("*.hpp")):
        asserted.update(ASSERTED.findall(header.read_text("utf-8")))
    expecting = {path: path.read_text("utf-8") for path in sorted((root / "tests/compile_fail").glob("*.cpp"))}
    sentences = read("tests/sentence_test.cpp")

    rules = sorted({*ids, *asserted})
    for rule in rules:
        page = f"docs/errors/{rule.replace('/', '-')}.md"
        text = read(page)
        files = [
            path.name
            for path, source in expecting.items()
            if f"// expect: {rule}\n" in source and f"// expect: {page[:-3]}\\.md\n" in source
        ]
        missing = [
            (not text.startswith(f"# {rule}: "), f"there is no {page} that begins with \"# {rule}: \""),
            (not files, f"no file in tests/compile_fail expects both {rule} and {page}"),
            (files and not any(f"(../../tests/compile_fail/{f})" in text for f in files),
             f"{page} links to none of: {', '.join(files)}"),
            (f"see {page}" not in re.sub(r'"\s*"', "", asserted.get(rule, "")),
             f"no static_assert states the rule and ends with \"see {page}\""),
            (rule not in ids and rule not in AT_COMPILE_TIME_ONLY, f"it is not in {VERDICTS}"),
            (rule in ids and not re.search(rf"\bRule::{rule.replace('/', '_')}\b", sentences),
             f"tests/sentence_test.cpp does not test Rule::{rule.replace('/', '_')}"),
        ]
        found += [f"{rule}: {what}" for is_missing, what in missing if is_missing]
    for page in sorted((root / "docs/errors").glob("*.md")):
        if page.stem.replace("-", "/") not in rules:
            found.append(f"docs/errors/{page.name}: there is no rule {page.stem.replace('-', '/')}")
    print(*found, f"{len(rules)} rules: {len(found)} findings", sep="\n")
    return 1 if found or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
