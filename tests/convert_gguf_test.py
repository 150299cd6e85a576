#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The GGUF converter on small files made here: what it writes, and what it refuses. Needs scripts/requirements.txt.

The weights of a real model are compared with their fingerprints elsewhere; this looks at what that model has not:
an untied head, biases, tokens in the text that are not special, a text that begins with a token of its own.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

CONVERTER = Path(__file__).resolve().parent.parent / "scripts" / "convert_gguf.py"
HIDDEN, HEADS, KV_HEADS, WIDTH, FFN, LAYERS = 32, 4, 2, 8, 64, 2
TOKENS = ["<s>", "</s>", "<tool>", "a", "b", "ab", "1", "2", "\u0120"]
SHAPES = {"attn_q": (HEADS * WIDTH, HIDDEN), "attn_k": (KV_HEADS * WIDTH, HIDDEN), "attn_v": (KV_HEADS * WIDTH, HIDDEN),
          "attn_output": (HIDDEN, HEADS * WIDTH), "ffn_gate": (FFN, HIDDEN), "ffn_up": (FFN, HIDDEN),
          "ffn_down": (HIDDEN, FFN)}
ROLES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}


def neighbours(rows, heads):
    """Row order of GGUF from that of a checkpoint, one row at a time: row i and i + d/2 of a head become neighbours."""
    width = len(rows) // heads
    return rows[[head * width + i + half * width // 2
                 for head in range(heads) for i in range(width // 2) for half in (0, 1)]]


def write(path, *, architecture="llama", without=(), extra=(), tokens=TOKENS, pre="smollm", biases=True, add_bos=True,
          quantised=False, layers=LAYERS):
    """A small random model; returns its tensors by their checkpoint names."""
    writer = gguf.GGUFWriter(path, architecture)
    keys = {"block_count": layers, "context_length": 128, "embedding_length": HIDDEN, "feed_forward_length": FFN,
            "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "rope.dimension_count": WIDTH}
    for key, value in keys.items():
        if key not in without:
            writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.rope.freq_base", 5000.0)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", pre)
    writer.add_array("tokenizer.ggml.tokens", tokens)
    writer.add_array("tokenizer.ggml.token_type", [3, 3, 4] + [1] * (len(tokens) - 3))
    writer.add_array("tokenizer.ggml.merges", ["a b"])
    writer.add_uint32("tokenizer.ggml.bos_token_id", 0)
    writer.add_uint32("tokenizer.ggml.eos_token_id", 1)
    writer.add_bool("tokenizer.ggml.add_bos_token", add_bos)
    random = np.random.default_rng(3)
    expected = {}

    def add(name, there, shape, heads=0):
        values = random.standard_normal(shape).astype(np.float32)
        if name in without:
            return
        stored = neighbours(values, heads) if heads else values
        if quantised and len(shape) == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            blocks = gguf.quants.quantize(stored, kind)
            writer.add_tensor(name, blocks, raw_dtype=kind)
            stored = gguf.quants.dequantize(blocks, kind)
            values = np.empty_like(stored)
            values[neighbours(np.arange(len(stored)), heads) if heads else ...] = stored
        else:
            writer.add_tensor(name, stored)
        expected[there] = values

    add("token_embd.weight", "model.embed_tokens.weight", (len(tokens), HIDDEN))
    for layer in range(layers):
        for name, shape in SHAPES.items():
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name, 0)
            add(f"blk.{layer}.{name}.weight", f"model.layers.{layer}.{ROLES[name]}.weight", shape, heads)
            if biases and name.startswith("attn"):
                add(f"blk.{layer}.{name}.bias", f"model.layers.{layer}.{ROLES[name]}.bias", shape[:1], heads)
        add(f"blk.{layer}.attn_norm.weight", f"model.layers.{layer}.input_layernorm.weight", (HIDDEN,))
        add(f"blk.{layer}.ffn_norm.weight", f"model.layers.{layer}.post_attention_layernorm.weight", (HIDDEN,))
    add("output_norm.weight", "model.norm.weight", (HIDDEN,))
    add("output.weight", "lm_head.weight", (len(tokens), HIDDEN))
    for name in extra:
        add(name, name, (HIDDEN,))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


class Converter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.source, self.target = self.folder / "m.gguf", self.folder / "m"

    def run_converter(self):
        command = [sys.executable, "-B", CONVERTER, self.source, self.target]
        return subprocess.run(command, capture_output=True, text=True)

    def converted(self):
        done = self.run_converter()
        self.assertEqual(done.returncode, 0, done.stderr)
        return load_file(self.target / "model.safetensors"), json.loads((self.target / "config.json").read_text())

    def refused(self, expected):
        done = self.run_converter()
        self.assertEqual(done.returncode, 1)
        self.assertIn(expected, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(list(self.folder.glob("m*")), [self.source] if self.source.exists() else [])

    def test_tensors_are_those_that_were_stored(self):
        for options in ({}, {"quantised": True}, {"biases": False, "without": ("output.weight",)}):
            with self.subTest(options), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                self.target = Path(folder) / "m"
                expected = write(self.source, **options)
                tensors, config = self.converted()
                self.assertEqual(set(tensors), set(expected))
                for name, values in expected.items():
                    np.testing.assert_array_equal(tensors[name], values, name)
                self.assertEqual(config["tie_word_embeddings"], "lm_head.weight" not in expected)
                self.assertEqual(config["attention_bias"], options.get("biases", True))
                self.assertFalse(config["mlp_bias"])

    def test_configuration(self):
        write(self.source)
        _, config = self.converted()
        expected = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": LAYERS,
                    "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": WIDTH,
                    "max_position_embeddings": 128, "vocab_size": len(TOKENS), "rope_theta": 5000.0,
                    "rms_norm_eps": float(np.float32(1e-6)), "bos_token_id": 0, "eos_token_id": 1}
        self.assertEqual({key: config[key] for key in expected}, expected)
        self.assertEqual(json.loads((self.target / "generation_config.json").read_text()),
                         {"bos_token_id": 0, "eos_token_id": 1})

    def test_tokenizer(self):
        write(self.source)
        self.converted()
        tokenizer = Tokenizer.from_file(str(self.target / "tokenizer.json"))
        self.assertEqual(tokenizer.encode("ab 12<tool></s>").ids, [0, 5, 8, 6, 7, 2, 1])
        self.assertEqual(tokenizer.encode("ab", add_special_tokens=False).ids, [5])
        self.assertEqual(tokenizer.decode([5, 8, 6, 2, 1], skip_special_tokens=False), "ab 1<tool></s>")
        self.assertEqual(tokenizer.decode([5, 2, 1], skip_special_tokens=True), "ab<tool>")

    def test_files_that_end_early_are_refused(self):
        write(self.source, layers=1)
        whole = self.source.read_bytes()
        for size in (0, 3, 4, 20, 24, 100, 600, len(whole) // 2, len(whole) - 40):
            with self.subTest(size=size):
                self.source.write_bytes(whole[:size])
                self.refused("truncated or damaged" if size >= 4 else "not a GGUF file")

    def test_what_cannot_be_converted_is_named(self):
        for expected, options in {
                "architecture 'qwen2' is not supported; supported: llama": {"architecture": "qwen2"},
                "key 'llama.block_count' is missing": {"without": ("block_count",)},
                "tensor 'blk.1.ffn_up.weight' is missing (1 missing": {"without": ("blk.1.ffn_up.weight",)},
                "tensor 'rope_freqs.weight' has no place": {"extra": ("rope_freqs.weight",)},
                "pre-tokenizer 'other' is not supported": {"pre": "other"},
                "token 'a' is listed twice": {"tokens": TOKENS[:-1] + ["a"]},
                "merge 0 ('a', 'b') is not a pair": {"tokens": [t if t != "ab" else "x" for t in TOKENS]},
                "7 biases on attn_q, attn_k": {"without": ("blk.0.attn_q.bias",)}}.items():
            with self.subTest(expected):
                write(self.source, **options)
                self.refused(expected)
        self.source.unlink()
        self.refused("no such file")

    def test_an_existing_directory_is_kept(self):
        write(self.source)
        self.target.mkdir()
        (self.target / "mine").write_text("kept")
        done = self.run_converter()
        self.assertEqual(done.returncode, 1)
        self.assertIn("exists already", done.stderr)
        self.assertEqual([path.name for path in self.target.iterdir()], ["mine"])


if __name__ == "__main__":
    unittest.main()
