# SPDX-License-Identifier: MIT
"""The generate example as a user meets it: JSON and text, batches, every wrong flag in plain words, broken model files.

usage: generate_cli_test.py GENERATE [--model DIR]
Without --model it runs on the tiny checkpoint of the fixtures (ids only); with it, on real weights and a tokenizer.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
TINY = TESTS / "fixtures" / "tiny" / "llama-9-3"
GENERATE = MODEL = None
# Flags that take a number: what it must be, the least and the most.
NUMBERS = (
    ("--max-new-tokens", "whole number", "0", "1099511627776"),
    ("--capacity", "whole number", "0", "1099511627776"),
    ("--threads-per-rank", "whole number", "0", "1024"),
    ("--top-k", "whole number", "0", "2147483647"),
    ("--seed", "whole number", "0", "18446744073709551615"),
    ("--temperature", "number", "0", "1e+30"),
    ("--top-p", "number", "1e-09", "1"),
)


def run(*flags, model=None, code=0):
    command = [GENERATE, "--model", str(TINY if model is None else model), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == code, f"exit {done.returncode}, not {code}: {flags}\n{told}"
    return done


def answer(*flags, model=None):
    return json.loads(run(*flags, "--json", model=model).stdout)


class Tiny(unittest.TestCase):
    golden = json.loads((TINY / "golden.json").read_text())["prompts"]

    def ids(self, n):
        return ",".join(map(str, self.golden[n]["prompt_ids"]))

    def test_tokens_and_logits_of_one_prompt(self):
        for device, tolerance in (("reference", 2e-5), ("cpu", 2e-4)):
            for layout in ("single", "tp3", "pp2 tp2", "dp2"):
                got = answer("--prompt-ids", self.ids(0), "--layout", layout, "--device", device,
                             "--max-new-tokens", 8, "--ignore-eos", "--logits")
                self.assertEqual(got["tokens"], self.golden[0]["greedy_ids"])
                self.assertEqual(got["traffic"]["predicted"], got["traffic"]["counted"])
                self.assertEqual(len(got["logits"]), len(self.golden[0]["prompt_ids"]))
                for row, expected in zip(got["logits"], self.golden[0]["logits"]):
                    self.assertEqual(len(row), len(expected))
                    self.assertLess(max(abs(a - b) for a, b in zip(row, expected)), tolerance)
                self.assertGreater(got["tokens_per_second"], 0)
                self.assertGreater(got["prefill_tokens_per_second"], 0)
                self.assertEqual(got["plan"]["schema"], 1)

    def test_a_batch_is_a_list_of_lists_in_the_order_given(self):
        got = answer("--prompt-ids", self.ids(1), "--prompt-ids", self.ids(0), "--layout", "dp2 tp2",
                     "--max-new-tokens", 8, "--ignore-eos")
        self.assertEqual(got["tokens"], [self.golden[1]["greedy_ids"], self.golden[0]["greedy_ids"]])

    def test_sampling_is_the_same_in_every_layout(self):
        flags = ("--prompt-ids", self.ids(0), "--device", "reference", "--temperature", 1.1, "--top-k", 20,
                 "--top-p", 0.9, "--seed", 7)
        alone = answer(*flags)["tokens"]
        for layout in ("tp2", "pp3", "dp2 tp3"):
            self.assertEqual(answer(*flags, "--layout", layout)["tokens"], alone)

    def test_the_plan_alone_needs_no_prompt(self):
        self.assertIn("3 ranks", run("--plan", "--layout", "tp3").stdout)
        self.assertEqual(json.loads(run("--plan", "--json", "--layout", "tp3").stdout)["plan"]["schema"], 1)

    def test_wrong_flags_get_plain_words(self):
        for code, words, flags in (
            (2, "no prompt", ()),
            (2, "--prompt-ids \"1,x\": a token id is expected at character 3", ("--prompt-ids", "1,x")),
            (2, "a token id is expected", ("--prompt-ids", "")),
            (2, "does not fit", ("--prompt-ids", "99999999999")),
            (2, "0,0,x,0", ("--prompt-ids", "0," * 20000 + "x" + ",0" * 20000)),
            (2, "--prompt-ids \"1,\\x1b[0m\": a token id is expected at character 3", ("--prompt-ids", "1,\x1b[0m")),
            (2, "\\x1b[0m", ("--\x1b[0m",)),
            (2, "cpu or reference", ("--prompt-ids", "1", "--device", "\x1b" * 1000)),
            (2, "cpu or reference", ("--prompt-ids", "1", "--device", "gpu")),
            (2, "--max-new-tokens is -1", ("--prompt-ids", "1", "--max-new-tokens", "-1")),
            (2, "max-new-tokens", ("--prompt-ids", "1", "--max-new-tokens", "many")),
            (2, "temperature is -1", ("--prompt-ids", "1", "--temperature", "-1")),
            (2, "top-p is 2", ("--prompt-ids", "1", "--top-p", "2")),
            (2, "top-k is -3", ("--prompt-ids", "1", "--top-k", "-3")),
            (2, "--logits needs --json", ("--prompt-ids", "1", "--logits")),
            (2, "--nonsense", ("--prompt-ids", "1", "--nonsense")),
            (2, "threads-per-rank", ("--prompt-ids", "1", "--threads-per-rank", "-2")),
            *((2, f"{flag} is {value}: a {kind} from {least} to {most} is expected",
               ("--prompt-ids", "1", flag, value.strip('"')))
              for flag, kind, least, most in NUMBERS
              for value in ("-1", "-99999999999999999999", '"many"', '""', '"1x"', '"nan"', '"inf"')),
            *((2, f"{flag} is {value}: a whole number from {least} to {most} is expected",
               ("--prompt-ids", "1", flag, value))
              for flag, kind, least, most in NUMBERS if kind == "whole number"
              for value in (str(int(most) + 1), "18446744073709551616", "99999999999999999999", "1.5")),
            (1, "heads (9) over axis tp of 10 ranks", ("--prompt-ids", "1", "--layout", "tp10")),
            (1, "at character", ("--prompt-ids", "1", "--layout", "tp")),
            (1, "1 to 3", ("--prompt-ids", "1", "--layout", "pp4")),
            (1, "prompt 0: token 61 at position 1", ("--prompt-ids", "3,61")),
            (1, "capacity of 2", ("--prompt-ids", "1,2,3", "--capacity", "2")),
            (1, "tokenizer.json", ("--prompt", "words")),
            (1, "1 to 64", ("--prompt-ids", "1", "--layout", "dp65")),
        ):
            with self.subTest(words=words):
                done = run(*flags, code=code)
                self.assertIn(words, done.stderr)
                self.assertNotIn("terminate", done.stderr)
                self.assertNotIn("\x1b", done.stderr)
                self.assertLess(len(done.stderr), 1000)

    def test_an_empty_model_directory_is_asked_for_by_name(self):
        done = run("--prompt-ids", "1", model="", code=2)
        self.assertIn("--model is empty: name the directory that holds config.json", done.stderr)

    def test_the_ends_of_every_range_are_legal(self):
        for flag, kind, least, most in NUMBERS:
            for value in (least, most):
                with self.subTest(flag=flag, value=value):
                    run("--plan", flag, value)

    def test_output_that_cannot_be_written_is_a_failure(self):
        folder = pathlib.Path(GENERATE).parent
        model = ["--model", str(TINY)]
        ids = ["--prompt-ids", self.ids(0), "--max-new-tokens", "2"]
        for name, *flags in (("generate", "--help"), ("generate", *model, "--plan"), ("generate", *model, *ids),
                             ("generate", *model, *ids, "--json", "--logits"), ("by_hand",), ("layout_experiments",),
                             ("own_layer",)):
            with self.subTest(name=name, flags=flags), open("/dev/full", "w") as full:
                done = subprocess.run([folder / name, *flags], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=300)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"{name}: standard output cannot be written", done.stderr)

    def test_broken_model_directories_are_named(self):
        def broken(change):
            copy = pathlib.Path(tempfile.mkdtemp()) / "model"
            shutil.copytree(TINY, copy)
            change(copy)
            try:
                return run("--prompt-ids", "1,2", model=copy, code=1).stderr
            finally:
                shutil.rmtree(copy.parent)

        def field(name, value):
            def change(copy):
                config = json.loads((copy / "config.json").read_text())
                config[name] = value
                (copy / "config.json").write_text(json.dumps(config))
            return change

        self.assertIn("no such", run("--prompt-ids", "1", model="/nowhere", code=1).stderr.lower())
        self.assertIn("config.json", broken(lambda c: (c / "config.json").unlink()))
        self.assertIn("config.json", broken(lambda c: (c / "config.json").write_text("{")))
        self.assertIn("model.safetensors", broken(lambda c: (c / "model.safetensors").unlink()))
        self.assertIn("model.safetensors", broken(lambda c: (c / "model.safetensors").write_bytes(b"\x08")))
        self.assertIn("model_type", broken(field("model_type", "gpt_neox")))
        self.assertIn("hidden_size", broken(field("hidden_size", -1)))
        self.assertIn("hidden_size", broken(field("hidden_size", "36")))
        self.assertIn("num_hidden_layers", broken(field("num_hidden_layers", 1e9)))
        self.assertIn("surprise", broken(field("surprise", 3)))
        self.assertIn("model.embed_tokens.weight", broken(field("vocab_size", 62)))
        self.assertIn("model.layers.2", broken(field("num_hidden_layers", 2)))
        self.assertIn("model.layers.3", broken(field("num_hidden_layers", 4)))


class Real(unittest.TestCase):
    golden = json.loads((TESTS / "fixtures" / "smollm2-135m-greedy.json").read_text())["prompts"]

    def test_text_in_text_out_as_one_batch(self):
        prompts = [p for p in self.golden if min(p["greedy_margins"]) >= 1e-3]
        flags = [f for p in prompts for f in ("--prompt", p["text"])]
        got = answer(*flags, "--layout", "dp2 tp2", "--max-new-tokens", 32, "--ignore-eos", model=MODEL)
        for n, p in enumerate(prompts):
            self.assertEqual(got["tokens"][n], p["greedy_ids"])
            self.assertEqual(got["text"][n], p["greedy_text"])

    def test_a_chat_ends_by_itself_and_shows_no_special_token(self):
        done = run("--chat", "What is the capital of France?", "--layout", "tp2", model=MODEL)
        self.assertIn("Paris", done.stdout)
        self.assertNotIn("<|im_end|>", done.stdout)
        self.assertIn("exactly as predicted", done.stdout)

    def test_a_stop_string_ends_the_text_before_it(self):
        got = answer("--prompt", self.golden[0]["text"], "--stop", ".", model=MODEL)
        self.assertEqual(got["text"], " Paris")
        self.assertEqual(got["ended"], "stopped")
        shown = run("--prompt", self.golden[0]["text"], "--stop", ".", model=MODEL).stdout
        self.assertTrue(shown.startswith(" Paris\n"), shown)

    def test_a_tokenizer_with_fewer_entries_than_the_model_is_a_warning(self):
        golden = json.loads((TINY / "golden.json").read_text())["prompts"][0]
        ids = ",".join(map(str, golden["prompt_ids"]))
        vocabulary = {f"w{n}": n for n in range(min(golden["greedy_ids"]) + 1)}
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / "model"
            shutil.copytree(TINY, copy)
            (copy / "tokenizer.json").write_text(json.dumps({
                "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"}}))
            flags = ("--max-new-tokens", 8, "--ignore-eos", "--json")
            done = run("--prompt-ids", ids, *flags, model=copy)
            got = json.loads(done.stdout)
            self.assertEqual(got["tokens"], golden["greedy_ids"])
            unknown = sum(n not in vocabulary.values() for n in golden["greedy_ids"])
            self.assertGreater(unknown, 0)
            self.assertEqual(got["text"].count("\ufffd"), unknown)
            self.assertIn(f"w{min(golden['greedy_ids'])}", got["text"])
            self.assertEqual(done.stderr.count("U+FFFD"), 1)
            self.assertEqual(len(json.loads(run("--prompt", "w0 w0", *flags, model=copy).stdout)["tokens"]), 8)

    def test_hostile_text_is_refused(self):
        done = subprocess.run([GENERATE, "--model", MODEL, "--prompt", b"\xff\xfe"], capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"UTF-8", done.stderr)


if __name__ == "__main__":
    GENERATE = sys.argv[1]
    MODEL = sys.argv[3] if sys.argv[2:3] == ["--model"] else None
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Real if MODEL else Tiny)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
