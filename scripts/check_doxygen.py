#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs doxygen on docs/Doxyfile: it must not warn, and what users name must have a brief.

    scripts/check_doxygen.py [--build FOLDER]

A brief is wanted for each type, concept, function, alias, enumeration and constant of the public namespaces; one for
all functions of a name. Members are not asked for: the brief of their type, and their own name, say what they are.
Prints `file:line: what` for each finding. Exit code 77 where doxygen is absent and CI=true does not demand it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import compilers

TYPES = ("struct", "class", "union", "concept", "namespace")
# Namespaces that users do not name: each is the inside of one header or folder, whose first lines describe it.
INTERNAL = frozenset("""
    arithmetic checkpoint comparing computing covering crossing deciding exchanging explaining graph grid holding
    identity json_text judging kernels layout_text mesh_rules model_config picture pipeline reasons redundancy refusing
    running safetensors spelling step storing threads wording""".split())
# Sizes of published models: which, says the name of the constant.
CONSTANTS_BY_NAME = "dovetail::models"
OVERRIDES = """
WARNINGS = YES
GENERATE_HTML = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
"""


def has_brief(element):
    return any("".join(text.itertext()).strip() for text in (element.find("briefdescription"),
                                                             element.find("detaileddescription")) if text is not None)


def place(element):
    location = element.find("location")
    return f"{location.get('file')}:{location.get('line')}"


def has_page(root, name):
    """True for the type of a rule of layouts, which compilers print: its page in docs/errors describes it."""
    return (root / "docs/errors" / f"{name.split('::')[-1].replace('_', '-')}.md").exists()


def is_link_out(root, line):
    """True for a warning about a link to a page that exists and is none of doxygen's; check_docs.py checks links."""
    match = re.search(r"unable to resolve reference to '([^']+\.md)'", line)
    return bool(match) and (root / match[1]).exists()


def without_brief(root, xml):
    """(how many names were looked at, a line for each that lacks a brief)."""
    count, found = 0, []
    for entry in ElementTree.parse(xml / "index.xml").getroot():
        if entry.get("kind") not in TYPES:
            continue
        compound = ElementTree.parse(xml / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        name, kind = compound.findtext("compoundname"), compound.get("kind")
        if not re.match(r"dovetail(::|$)", name) or INTERNAL & set(re.split(r"::|<", name)):
            continue
        if "<" not in name and compound.get("prot", "public") == "public" and not has_page(root, name):
            count += 1
            if not has_brief(compound):
                found.append(f"{place(compound)}: {kind} {name}")
        if kind != "namespace":
            continue
        members = {}
        for member in compound.iter("memberdef"):
            members.setdefault(member.findtext("name"), []).append(member)
        for member_name, overloads in members.items():
            kind = overloads[0].get("kind")
            if member_name.startswith("operator") or (kind == "variable" and name == CONSTANTS_BY_NAME):
                continue
            count += 1
            if not any(map(has_brief, overloads)):
                found.append(f"{place(overloads[0])}: {kind} {name}::{member_name}")
    return count, [f"{line} has no brief" for line in sorted(found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=compilers.ROOT / "build" / "briefs", help="for what is made")
    parser.add_argument("--root", type=Path, default=compilers.ROOT, help="the source tree")
    arguments = parser.parse_args()
    root, build = arguments.root.resolve(), arguments.build.resolve()
    if not shutil.which("doxygen"):
        required = os.environ.get("CI") == "true"
        print(f"{'FAILED' if required else 'SKIPPED'}: doxygen was not found (Debian: doxygen); "
              "NOTHING WAS CHECKED WITH IT")
        return 1 if required else compilers.SKIPPED
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    settings = (root / "docs/Doxyfile").read_text("utf-8") + OVERRIDES + f'OUTPUT_DIRECTORY = "{build}"\n'
    done = subprocess.run(["doxygen", "-"], input=settings, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    lines = dict.fromkeys(line.replace(f"{root}/", "") for line in done.stdout.splitlines() if line.strip())
    lines = [line for line in lines if not is_link_out(root, line)]
    if done.returncode and not lines:
        lines = [f"doxygen ended with exit code {done.returncode}"]
    count, missing = without_brief(root, build / "xml") if not done.returncode else (0, [])
    lines += missing
    print(*lines, f"doxygen: {count} public names, {len(lines)} findings", sep="\n")
    return 1 if lines or not count else 0


if __name__ == "__main__":
    sys.exit(main())
