# SPDX-License-Identifier: MIT
"""The plan example as a user meets it: every format, several layouts side by side, wrong flags in plain words, and the
picture of the README, which must be what the command beside it writes.

usage: plan_cli_test.py PLAN
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
CONFIG = "tests/fixtures/configs/smollm2-135m.json"
TINY = TESTS / "fixtures" / "tiny" / "llama-9-3"
PICTURE = "docs/images/layouts.svg"
PLAN = None
# Flags that take a number: the least and the most.
NUMBERS = (("--sequences", "1", "1024"), ("--context", "1", "1073741824"), ("--tokens", "1", "1073741824"))


def run(*flags, config=CONFIG, code=0):
    command = [PLAN, *(["--config", config] if config else []), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    told = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == code, f"exit {done.returncode}, not {code}: {flags}\n{told}"
    return done


def compared(*layouts, flags=()):
    return json.loads(run("--compare", *layouts, "--format", "json", *flags).stdout)["layouts"]


class Plan(unittest.TestCase):
    def test_one_layout_as_text(self):
        text = run("--layout", "dp2 pp2 tp3").stdout
        for part in ("smollm2-135m: 30 layers, 134.5 M parameters, f32",
                     "12 ranks: 2 replicas (dp 2) of 6, 2 stages, 134.5 M parameters",
                     "layers.*.attention.o", "2 requests together", "device 11", "over tp", "from another stage",
                     "of all_reduce", "of send", "for the token that devices 9-11 chose"):
            self.assertIn(part, text)

    def test_one_layout_as_json(self):
        got = json.loads(run("--layout", "pp2 tp3", "--format", "json").stdout)
        self.assertEqual((got["schema"], got["plan"]["schema"], got["figures"]["schema"]), (1, 1, 1))
        self.assertEqual(got["plan"]["ranks"], 6)
        self.assertEqual(len(got["figures"]["layouts"][0]["devices"]), 6)

    def test_one_layout_as_a_graph_and_as_a_picture(self):
        self.assertTrue(run("--layout", "tp3", "--format", "dot").stdout.startswith("digraph plan {"))
        picture = xml.etree.ElementTree.fromstring(run("--layout", "tp3", "--format", "svg").stdout)
        self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg")

    def test_replicas_share_the_requests_and_half_types_the_bytes(self):
        tp, dp = compared("tp3", "dp3")
        self.assertEqual([d["sequences"] for d in tp["devices"]], [3, 3, 3])
        self.assertEqual([(d["first_sequence"], d["sequences"]) for d in dp["devices"]], [(0, 1), (1, 1), (2, 1)])
        self.assertEqual(dp["decode"]["bytes"], 0)
        self.assertEqual(dp["devices"][0]["weight_bytes"], 4 * dp["parameters"])
        for dtype in ("f16", "bf16"):
            half = compared("tp3", flags=("--dtype", dtype, "--sequences", 3))[0]
            for full, other in zip(tp["devices"], half["devices"]):
                self.assertEqual(full["weight_bytes"], 2 * other["weight_bytes"])
                self.assertEqual(full["cache_bytes"], 2 * other["cache_bytes"])

    def test_context_sequences_and_tokens_count_where_they_should(self):
        first, longer, more = (compared("pp3", flags=flags)[0]["devices"][1] for flags in (
            ("--context", 600, "--sequences", 2), ("--context", 1200, "--sequences", 2),
            ("--context", 600, "--sequences", 4)))
        self.assertEqual(longer["cache_bytes"], 2 * first["cache_bytes"])
        self.assertEqual(more["cache_bytes"], 2 * first["cache_bytes"])
        self.assertEqual(more["decode"]["received"]["bytes"], 2 * first["decode"]["received"]["bytes"])
        brief = compared("pp3", flags=("--tokens", 128, "--sequences", 1))[0]["links"][0]
        self.assertEqual(brief["prefill"]["bytes"], 128 * brief["decode"]["bytes"])

    def test_a_refused_layout_does_not_fail_the_others(self):
        good, wide, unread = compared("tp3", "tp10", "tp")
        self.assertNotIn("refused", good)
        self.assertIn("heads (9) over axis tp of 10 ranks", wide["refused"])
        self.assertIn("at character", unread["refused"])
        text = run("--compare", "tp3", "tp10").stdout
        self.assertIn("refused:", text)
        self.assertIn("179.4 MB", text)
        picture = run("--compare", "tp3", "tp10", "--format", "svg").stdout
        self.assertIn("class=\"refused\"", picture)
        self.assertIn("class=\"refused\"", run("--compare", "tp10", "--format", "svg", code=1).stdout)

    def test_a_model_directory_and_a_file_say_the_same(self):
        by_directory = run("--model", TINY, "--layout", "tp3", config=None).stdout
        self.assertEqual(run("--layout", "tp3", config=TINY / "config.json").stdout, by_directory)
        self.assertIn("llama-9-3: 3 layers", by_directory)
        with tempfile.TemporaryDirectory() as scratch:  # weights are not needed
            (pathlib.Path(scratch) / "config.json").write_text((TINY / "config.json").read_text())
            run("--model", scratch, "--layout", "tp3", config=None)

    def test_the_picture_of_the_readme(self):
        readme = (ROOT / "README.md").read_text().replace("\\\n", "")  # lines that go on
        command = re.search(r"^build/release/examples/plan (.*) > " + re.escape(PICTURE) + "$", readme, re.MULTILINE)
        self.assertIsNotNone(command, "the README shows no command that writes " + PICTURE)
        self.assertIn(f"]({PICTURE})", readme)
        flags = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', command[1])]
        made = run(*flags, config=None).stdout
        if os.environ.get("DOVETAIL_UPDATE_GOLDEN"):
            (ROOT / PICTURE).write_text(made)
        self.assertEqual((ROOT / PICTURE).read_text(), made, "DOVETAIL_UPDATE_GOLDEN=1 rewrites it")
        picture = xml.etree.ElementTree.fromstring(made)
        looks = [element.get("class", "") for element in picture.iter()]
        self.assertEqual(looks.count("panel"), 4)
        self.assertEqual(looks.count("device middle"), 12)
        self.assertEqual(looks.count("send"), 3)
        self.assertEqual(looks.count("exchange"), 2)

    def test_wrong_flags_get_plain_words(self):
        one = ("--layout", "tp3")
        for code, words, flags in (
            (2, "there is no layout: give --layout TEXT, or --compare", ()),
            (2, "--layout and --compare both name layouts", (*one, "--compare", "tp3")),
            (2, "--config and --model both name a model", ("--model", "x", *one)),
            (2, "--format \"png\" is not known: text, json, dot or svg", (*one, "--format", "png")),
            (2, "--dtype \"\\x1b[0m\" is not known: f32, f16 or bf16", (*one, "--dtype", "\x1b[0m")),
            (2, "--format dot draws the graph of one plan", ("--compare", "tp3", "--format", "dot")),
            (2, "--tokens is 2000, above --context (1024)", (*one, "--tokens", 2000)),
            (2, "--compare names 17 layouts: at most 16", ("--compare", *["tp3"] * 17)),
            (2, "--nonsense", (*one, "--nonsense")),
            (2, "--compare", ("--compare",)),
            *((2, f"{flag} is {value}: a whole number from {least} to {most} is expected",
               (*one, flag, value.strip('"')))
              for flag, least, most in NUMBERS
              for value in ("0", "-1", "1.5", '"many"', '""', "99999999999999999999", str(int(most) + 1))),
            (1, "heads (9) over axis tp of 10 ranks", ("--layout", "tp10")),
            (1, "is empty", ("--layout", "")),
            (1, "1025 devices: at most 1024", ("--layout", "dp1025")),
            (1, "pass 64 bits", (*one, "--context", 1 << 30, "--tokens", 1 << 30, "--sequences", 1024)),
        ):
            with self.subTest(words=words):
                done = run(*flags, code=code)
                self.assertIn(words, done.stderr)
                self.assertNotIn("terminate", done.stderr)
                self.assertNotIn("\x1b", done.stderr)
                self.assertLess(len(done.stderr), 1000)

    def test_wrong_models_are_named(self):
        self.assertIn("there is no model: give --config FILE or --model DIR",
                      run("--layout", "tp3", config=None, code=2).stderr)
        for place in ("/nowhere.json", "tests", "README.md"):
            with self.subTest(place=place):
                self.assertIn(place, run("--layout", "tp3", config=place, code=1).stderr)
        self.assertIn("config.json", run("--model", "/nowhere", "--layout", "tp3", config=None, code=1).stderr)
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "other.json"
            file.write_text(json.dumps({**json.loads((ROOT / CONFIG).read_text()), "hidden_size": -1}))
            self.assertIn("other.json: field 'hidden_size'", run("--layout", "tp3", config=file, code=1).stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for flags in (("--help",), ("--config", CONFIG, "--layout", "tp3"),
                      ("--config", CONFIG, "--compare", "tp3", "--format", "svg")):
            with self.subTest(flags=flags), open("/dev/full", "w") as full:
                done = subprocess.run([PLAN, *flags], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300,
                                      cwd=ROOT)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("plan: standard output cannot be written", done.stderr)


if __name__ == "__main__":
    PLAN = sys.argv[1]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Plan)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
