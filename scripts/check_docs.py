#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the documentation shows no code of its own: every ```cpp block in README.md, examples/README.md and
docs/*.md stands, but for whitespace, in a file under examples/ or tests/, which is compiled and run. A comment
`<!-- from examples/own_layer.cpp -->` in the line above a block names the file; without it any file will do. Relative
links, there and in docs/design and docs/errors, must lead to a file.

    scripts/check_docs.py [--root FOLDER]

Prints `file:line: what` for each finding.
"""

import argparse
import re
import sys
from pathlib import Path

SOURCES = (".cpp", ".hpp", ".cu", ".cuh", ".txt", ".cmake")
MARKER = re.compile(r"^<!-- from (\S+) -->$")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def squeezed(text):
    return re.sub(r"\s+", "", text)


def blocks(lines):
    """(line number, file of the marker or None, code) of each ```cpp block; an open one ends with the page."""
    start, marker, code = None, None, []
    for number, line in enumerate(lines, 1):
        if start is None and line.startswith("```cpp"):
            above = MARKER.match(lines[number - 2]) if number > 1 else None
            start, marker, code = number, above and above[1], []
        elif start is not None and line.startswith("```"):
            yield start, marker, "\n".join(code)
            start = None
        elif start is not None:
            code.append(line)
    if start is not None:
        yield start, marker, "\n".join(code)


def prose(lines):
    """(line number, line) of what is not in a fenced block."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the source tree")
    root = parser.parse_args().root.resolve()
    sources = {
        str(path.relative_to(root)): squeezed(path.read_text("utf-8"))
        for folder in ("examples", "tests")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SOURCES
    }
    with_code = [root / "README.md", root / "examples/README.md", *sorted((root / "docs").glob("*.md"))]
    pages = [page for page in with_code if page.is_file()]
    found, count = [], 0
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        for line, marker, code in blocks(lines):
            count += 1
            place = f"{page.relative_to(root)}:{line}"
            if marker and marker not in sources:
                found.append(f"{place}: there is no {marker}")
            elif not code.strip():
                found.append(f"{place}: the block is empty")
            elif not any(squeezed(code) in text for name, text in sources.items() if marker in (None, name)):
                found.append(f"{place}: this code is not in {marker or 'any file under examples/ or tests/'}: "
                             f"{code.strip().splitlines()[0]}")
    for page in [*pages, *sorted((root / "docs").glob("*/*.md"))]:
        for line, text in prose(page.read_text("utf-8").splitlines()):
            for link in LINK.findall(text):
                if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists():
                    found.append(f"{page.relative_to(root)}:{line}: the link {link} leads nowhere")
    print(*found, f"{count} code blocks of {len(pages)} pages: {len(found)} findings", sep="\n")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
