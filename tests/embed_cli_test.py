# SPDX-License-Identifier: MIT
"""The embed example as a user meets it: JSON and table, batches, layouts, every wrong flag in plain words.

usage: embed_cli_test.py EMBED [--model DIR]
Without --model it runs on a random encoder that it writes itself (ids only), against the same encoder computed here in
plain loops; with it, on the real weights and tokenizer of all-MiniLM-L6-v2, against another library's embeddings.
"""
import json
import math
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
EMBED = MODEL = None
CONFIG = {"model_type": "bert", "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3,
          "intermediate_size": 10, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": 7,
          "type_vocab_size": 2, "vocab_size": 23}


def shapes(c):
    """Every tensor of an encoder's file, with its shape."""
    width, inner = c["hidden_size"], c["intermediate_size"]
    table = "embeddings.{}_embeddings.weight"
    yield table.format("word"), (c["vocab_size"], width)
    yield table.format("position"), (c["max_position_embeddings"], width)
    yield table.format("token_type"), (c["type_vocab_size"], width)
    for part in ("weight", "bias"):
        yield f"embeddings.LayerNorm.{part}", (width,)
    for n in range(c["num_hidden_layers"]):
        for role, rows, columns in (("attention.self.query", width, width), ("attention.self.key", width, width),
                                    ("attention.self.value", width, width), ("attention.output.dense", width, width),
                                    ("intermediate.dense", inner, width), ("output.dense", width, inner)):
            yield f"encoder.layer.{n}.{role}.weight", (rows, columns)
            yield f"encoder.layer.{n}.{role}.bias", (rows,)
        for role in ("attention.output.LayerNorm", "output.LayerNorm"):
            for part in ("weight", "bias"):
                yield f"encoder.layer.{n}.{role}.{part}", (width,)


def as_f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def write_model(directory, prefix):
    """A random encoder as config.json and model.safetensors. Returns its tensors, flat."""
    draw, tensors, header, blob = random.Random(11), {}, {}, b""
    for name, shape in shapes(CONFIG):
        scale = 1 if len(shape) == 1 else 2 / math.sqrt(shape[-1])
        tensors[name] = [as_f32(draw.uniform(-scale, scale)) for _ in range(math.prod(shape))]
        packed = struct.pack(f"<{len(tensors[name])}f", *tensors[name])
        header[prefix + name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(blob), len(blob) + len(packed)]}
        blob += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    directory.mkdir()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + blob)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    return tensors


def embedding(tensors, ids):
    """The encoder in plain loops."""
    width, heads = CONFIG["hidden_size"], CONFIG["num_attention_heads"]
    size = width // heads

    def row(name, index):
        return tensors[name][index * width:(index + 1) * width]

    def linear(name, x):
        weight, bias = tensors[name + ".weight"], tensors[name + ".bias"]
        n = len(x)
        return [b + sum(weight[i * n + k] * x[k] for k in range(n)) for i, b in enumerate(bias)]

    def norm(name, x):
        mean = sum(x) / width
        deviation = math.sqrt(sum((v - mean) ** 2 for v in x) / width + CONFIG["layer_norm_eps"])
        return [(v - mean) / deviation * w + b
                for v, w, b in zip(x, tensors[name + ".weight"], tensors[name + ".bias"])]

    def added(x, y):
        return [a + b for a, b in zip(x, y)]

    x = [norm("embeddings.LayerNorm",
              added(added(row("embeddings.word_embeddings.weight", token),
                          row("embeddings.position_embeddings.weight", position)),
                    row("embeddings.token_type_embeddings.weight", 0))) for position, token in enumerate(ids)]
    for n in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{n}."
        q, k, v = ([linear(layer + "attention.self." + role, r) for r in x] for role in ("query", "key", "value"))
        mixed = []
        for query in q:
            out = []
            for h in range(0, width, size):
                scores = [math.exp(sum(query[h + i] * key[h + i] for i in range(size)) / math.sqrt(size)) for key in k]
                out += [sum(s * value[h + i] for s, value in zip(scores, v)) / sum(scores) for i in range(size)]
            mixed.append(out)
        x = [norm(layer + "attention.output.LayerNorm", added(r, linear(layer + "attention.output.dense", m)))
             for r, m in zip(x, mixed)]
        for i, r in enumerate(x):
            wide = [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in linear(layer + "intermediate.dense", r)]
            x[i] = norm(layer + "output.LayerNorm", added(r, linear(layer + "output.dense", wide)))
    mean = [sum(column) / len(x) for column in zip(*x)]
    length = math.sqrt(sum(v * v for v in mean))
    return [v / length for v in mean]


def run(*flags, model, code=0):
    done = subprocess.run([EMBED, "--model", str(model), *map(str, flags)], capture_output=True, text=True, timeout=300)
    told = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == code, f"exit {done.returncode}, not {code}: {flags}\n{told}"
    return done


def answer(*flags, model):
    return json.loads(run(*flags, "--json", model=model).stdout)


def furthest(got, expected):
    assert [len(row) for row in got] == [len(row) for row in expected]
    return max(abs(a - b) for x, y in zip(got, expected) for a, b in zip(x, y))


def cosines(vectors):
    return [[sum(a * b for a, b in zip(x, y)) for y in vectors] for x in vectors]


class Tiny(unittest.TestCase):
    ids = ([3, 17, 0, 22, 5, 5, 9], [4], [22, 1, 8])
    flags = [word for one in ids for word in ("--ids", ",".join(map(str, one)))]

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.model = cls.scratch / "bare"
        tensors = write_model(cls.model, "")
        cls.expected = [embedding(tensors, one) for one in cls.ids]
        write_model(cls.scratch / "prefixed", "bert.")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def test_embeddings_of_a_batch_in_every_layout(self):
        for device, tolerance in (("reference", 2e-5), ("cpu", 1e-5)):
            for layout in ("single", "tp3", "pp2 tp2", "dp2", "dp5", "sp2", "x2(embed)"):
                with self.subTest(device=device, layout=layout):
                    got = answer(*self.flags, "--layout", layout, "--device", device, model=self.model)
                    self.assertEqual(got["ids"], list(self.ids))
                    self.assertLess(furthest(got["embeddings"], self.expected), tolerance)
                    self.assertLess(furthest(got["similarities"], cosines(self.expected)), 1e-4)
                    self.assertEqual(got["traffic"]["predicted"], got["traffic"]["counted"])
                    self.assertEqual([r["predicted"] for r in got["ranks"]], [r["counted"] for r in got["ranks"]])
                    self.assertEqual((got["tokens"], got["layout"], got["device"]), (11, layout, device))
                    self.assertEqual(got["plan"]["schema"], 1)

    def test_names_with_and_without_their_prefix_are_the_same_model(self):
        self.assertEqual(answer(*self.flags, model=self.scratch / "prefixed")["embeddings"],
                         answer(*self.flags, model=self.model)["embeddings"])

    def test_one_sentence_is_a_list_of_one(self):
        got = answer("--ids", "4", "--threads-per-rank", 1, model=self.model)
        self.assertLess(furthest(got["embeddings"], self.expected[1:2]), 1e-5)
        self.assertEqual(len(got["similarities"]), 1)

    def test_the_table_shows_every_pair(self):
        lines = run(*self.flags, "--layout", "tp2", model=self.model).stdout.splitlines()
        rows = [line.split() for line in lines if line.lstrip().startswith("[") and "." in line]
        self.assertEqual([row[0] for row in rows], ["[0]", "[1]", "[2]"])
        self.assertEqual([row[4] for row in rows], [",".join(map(str, one)) for one in self.ids])
        shown = [[float(cell) for cell in row[1:4]] for row in rows]
        self.assertLess(furthest(shown, cosines(self.expected)), 6e-4)
        self.assertIn("2 ranks: 11 tokens of 3 sentences", lines[-2])
        self.assertIn("exactly as predicted", lines[-1])

    def test_wrong_flags_get_plain_words(self):
        for code, words, flags in (
            (2, "there is no sentence: give --text or --ids", ()),
            (2, "--ids \"1,x\": a token id is expected at character 3", ("--ids", "1,x")),
            (2, "a token id is expected", ("--ids", "")),
            (2, "does not fit", ("--ids", "99999999999")),
            (2, "--ids \"1,\\x1b[0m\"", ("--ids", "1,\x1b[0m")),
            (2, "cpu or reference", ("--ids", "1", "--device", "gpu")),
            (2, "--nonsense", ("--ids", "1", "--nonsense")),
            (2, "--threads-per-rank is -2: a whole number from 0 to 1024", ("--ids", "1", "--threads-per-rank", "-2")),
            (1, "heads (3) over axis tp of 4 ranks", ("--ids", "1", "--layout", "tp4")),
            (1, "at character", ("--ids", "1", "--layout", "tp")),
            (1, "1 to 2", ("--ids", "1", "--layout", "pp3")),
            (1, "sequence 1: token 23 at position 1 is outside the vocabulary; legal are 0 to 22",
             ("--ids", "1", "--ids", "2,23")),
            (1, "sequence 0: token -1 at position 0", ("--ids=-1",)),
            (1, "sequence 0 has 8 tokens, the model has positions for 7", ("--ids", "1,2,3,4,5,6,7,8")),
            (1, "tokenizer.json", ("--text", "words")),
        ):
            with self.subTest(words=words):
                done = run(*flags, model=self.model, code=code)
                self.assertIn(words, done.stderr)
                self.assertNotIn("\x1b", done.stderr)
                self.assertLess(len(done.stderr), 1000)
        self.assertIn("--model is empty", run("--ids", "1", model="", code=2).stderr)
        self.assertIn("no such", run("--ids", "1", model="/nowhere", code=1).stderr.lower())

    def test_a_model_that_generates_is_told_from_one_that_embeds(self):
        done = run("--ids", "1", model=TESTS / "fixtures" / "tiny" / "llama-9-3", code=1)
        self.assertIn("the model generates tokens and embeds no sequence: llama is no encoder", done.stderr)
        generate = pathlib.Path(EMBED).with_name("generate")
        if generate.exists():
            done = subprocess.run([generate, "--model", self.model, "--prompt-ids", "1"], capture_output=True,
                                  text=True, timeout=300)
            self.assertEqual(done.returncode, 1)
            self.assertIn("embeds sequences and generates no tokens", done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for flags in (["--help"], ["--ids", "1"], ["--ids", "1", "--json"]):
            with self.subTest(flags=flags), open("/dev/full", "w") as full:
                done = subprocess.run([EMBED, "--model", self.model, *flags], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=300)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("embed: standard output cannot be written", done.stderr)


class Real(unittest.TestCase):
    golden = json.loads((TESTS / "fixtures" / "minilm-embeddings.json").read_text())["sentences"]

    def test_texts_give_the_ids_and_embeddings_of_the_other_library(self):
        flags = [word for s in self.golden for word in ("--text", s["text"])]
        for layout in ("single", "dp2 pp2 tp3"):
            got = answer(*flags, "--layout", layout, model=MODEL)
            self.assertEqual(got["ids"], [s["ids"] for s in self.golden])
            self.assertLess(furthest(got["embeddings"], [s["embedding"] for s in self.golden]), 1e-5)
            self.assertEqual(got["traffic"]["predicted"], got["traffic"]["counted"])

    def test_texts_and_ids_are_one_batch_in_the_order_given(self):
        got = answer("--ids", "101,1060,102", "--text", "x", "--ids", "101,102", model=MODEL)
        self.assertEqual(got["ids"], [[101, 1060, 102], [101, 1060, 102], [101, 102]])
        self.assertEqual(got["embeddings"][0], got["embeddings"][1])
        self.assertAlmostEqual(got["similarities"][0][1], 1, places=6)

    def test_sentences_that_mean_the_same_are_close(self):
        texts = ("A cat sits on the mat.", "A kitten rests on the rug.", "Stocks fell sharply on Monday.")
        got = answer(*[word for t in texts for word in ("--text", t)], "--layout", "tp2", model=MODEL)["similarities"]
        self.assertGreater(got[0][1], got[0][2] + 0.3)
        shown = run("--text", texts[0], model=MODEL).stdout
        self.assertIn(texts[0], shown)

    def test_long_texts_are_whole_or_refused(self):
        self.assertEqual(len(answer("--text", "word " * 510, model=MODEL)["ids"][0]), 512)
        done = run("--text", "word " * 511, model=MODEL, code=1)
        self.assertIn("sequence 0 has 513 tokens, the model has positions for 512", done.stderr)

    def test_hostile_text_is_refused(self):
        done = subprocess.run([EMBED, "--model", MODEL, "--text", b"\xff\xfe"], capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"UTF-8", done.stderr)


if __name__ == "__main__":
    EMBED = sys.argv[1]
    MODEL = sys.argv[3] if sys.argv[2:3] == ["--model"] else None
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Real if MODEL else Tiny)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
