#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Convert a llama-architecture GGUF file to a Hugging Face style model directory.

Writes model.safetensors (float32, dequantised), config.json, generation_config.json, tokenizer.json and
tokenizer_config.json. The directory appears whole or not at all: it is built beside its final place and renamed.
Everything the file holds is either carried over or refused by name; nothing is dropped silently.
"""
import argparse
import json
import shutil
import sys
import time
from pathlib import Path


class ConversionError(Exception):
    """A file that cannot be converted; the text says what is wrong with it and what would work."""


try:
    import gguf
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
except ImportError as missing:
    sys.exit(f"convert_gguf: Python package missing ({missing}); run scripts/fetch_weights, which sets up build/venv, "
             "and use build/venv/bin/python")

# Pre-tokenizers by the name that GGUF gives them, as functions of add_prefix_space.
PRE_TOKENIZERS = {
    "smollm": lambda prefix: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True)]),
    "gpt-2": lambda prefix: pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True),
}
CONTROL, USER_DEFINED = 3, 4  # token types of GGUF that are matched in the text before anything else


def say(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """One line on stderr for loops that may take longer than two seconds."""

    def __init__(self, what, total):
        self.what, self.total, self.started, self.shown = what, total, time.monotonic(), 0.0
        self.terminal = sys.stderr.isatty()

    def at(self, done):
        now = time.monotonic() - self.started
        every = 0.2 if self.terminal else 5.0
        if now - self.shown < every and done < self.total:
            return
        self.shown = now
        line = f"{self.what}: {done} of {self.total} ({now:.0f} s)"
        print(f"\r{line}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr, flush=True)
        if self.terminal and done == self.total:
            print(file=sys.stderr)


class Metadata:
    """Typed access to the key-value part of a GGUF file."""

    def __init__(self, reader, path):
        self.fields, self.path = reader.fields, path

    def get(self, key, kind, default=None):
        field = self.fields.get(key)
        if field is None:
            return default
        try:
            value = field.contents()
        except Exception as error:
            raise ConversionError(f"{self.path}: key '{key}' cannot be read ({error})") from error
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise ConversionError(f"{self.path}: key '{key}' is a {type(value).__name__}; "
                                  f"a {kind.__name__} is expected")
        return value

    def need(self, key, kind):
        value = self.get(key, kind)
        if value is None:
            raise ConversionError(f"{self.path}: key '{key}' is missing; the file was written for another "
                                  "program or is not a complete llama model")
        return value

    def count(self, key, default=None):
        value = self.need(key, int) if default is None else self.get(key, int, default)
        if value < 1:
            raise ConversionError(f"{self.path}: key '{key}' is {value}; at least 1 is expected")
        return value


def open_gguf(path):
    if not path.is_file():
        raise ConversionError(f"{path}: no such file")
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic != b"GGUF":
        raise ConversionError(f"{path}: not a GGUF file (it starts with {magic!r}, not b'GGUF')")
    try:
        return gguf.GGUFReader(path)
    except Exception as error:  # the reader raises whatever numpy gives it on a file that ends early
        raise ConversionError(f"{path}: truncated or damaged GGUF file of {path.stat().st_size} bytes "
                              f"({type(error).__name__}: {error}); fetch it again") from error


def model_config(meta, tied):
    """config.json as transformers writes it for LlamaForCausalLM."""
    architecture = meta.need("general.architecture", str)
    if architecture != "llama":
        raise ConversionError(f"{meta.path}: architecture '{architecture}' is not supported; supported: llama")
    scaling = meta.get("llama.rope.scaling.type", str, "none")
    if scaling != "none":
        raise ConversionError(f"{meta.path}: rope scaling '{scaling}' is not supported; supported: none")
    if meta.get("llama.expert_count", int, 0) > 0:
        raise ConversionError(f"{meta.path}: experts (llama.expert_count) are not supported; dense models are")
    hidden, heads = meta.count("llama.embedding_length"), meta.count("llama.attention.head_count")
    kv_heads = meta.count("llama.attention.head_count_kv", heads)
    if heads % kv_heads:
        raise ConversionError(f"{meta.path}: {heads} heads do not share {kv_heads} KV heads evenly")
    if "llama.attention.key_length" not in meta.fields and hidden % heads:
        raise ConversionError(f"{meta.path}: {heads} heads do not divide an embedding of {hidden}, and "
                              "llama.attention.key_length is missing")
    head_dim = meta.count("llama.attention.key_length", hidden // heads)
    value_dim = meta.count("llama.attention.value_length", head_dim)
    rotary = meta.count("llama.rope.dimension_count", head_dim)
    if head_dim % 2 or value_dim != head_dim or rotary != head_dim:
        raise ConversionError(f"{meta.path}: key length {head_dim}, value length {value_dim}, rotary dimensions "
                              f"{rotary}: one even number for all three is expected")
    if "llama.rope.freq_base" not in meta.fields:
        say("llama.rope.freq_base is absent: taking 10000, the format's default")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": meta.count("llama.feed_forward_length"),
        "num_hidden_layers": meta.count("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": meta.count("llama.context_length"),
        "rms_norm_eps": meta.need("llama.attention.layer_norm_rms_epsilon", float),
        "rope_theta": meta.get("llama.rope.freq_base", float, 10000.0),
        "rope_scaling": None,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
    }
    for name in ("bos", "eos"):
        config[f"{name}_token_id"] = meta.need(f"tokenizer.ggml.{name}_token_id", int)
    pad = meta.get("tokenizer.ggml.padding_token_id", int)
    if pad is not None:
        config["pad_token_id"] = pad
    return config


def interleaved_to_halves(rows, heads):
    """Undo the row order of Q and K in llama-architecture GGUF.

    There the pairs that rotate together are neighbours (2i, 2i + 1); here they are half a head apart (i, i + d/2).
    """
    return rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def tensor_plan(config, vocabulary, present):
    """GGUF name -> (checkpoint name, shape, heads whose rows are interleaved or 0).

    Refuses names it does not know, and files where one is missing.
    """
    hidden, ffn, width = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    plan = {"token_embd.weight": ("model.embed_tokens.weight", (vocabulary, hidden), 0)}
    optional = {}
    for layer in range(config["num_hidden_layers"]):
        here, there = f"blk.{layer}.", f"model.layers.{layer}."
        for name, role, rows, columns, swap in (
                ("attn_q", "self_attn.q_proj", heads * width, hidden, heads),
                ("attn_k", "self_attn.k_proj", kv_heads * width, hidden, kv_heads),
                ("attn_v", "self_attn.v_proj", kv_heads * width, hidden, 0),
                ("attn_output", "self_attn.o_proj", hidden, heads * width, 0),
                ("ffn_gate", "mlp.gate_proj", ffn, hidden, 0),
                ("ffn_up", "mlp.up_proj", ffn, hidden, 0),
                ("ffn_down", "mlp.down_proj", hidden, ffn, 0)):
            plan[f"{here}{name}.weight"] = (f"{there}{role}.weight", (rows, columns), swap)
            optional[f"{here}{name}.bias"] = (f"{there}{role}.bias", (rows,), swap)
        plan[f"{here}attn_norm.weight"] = (f"{there}input_layernorm.weight", (hidden,), 0)
        plan[f"{here}ffn_norm.weight"] = (f"{there}post_attention_layernorm.weight", (hidden,), 0)
    plan["output_norm.weight"] = ("model.norm.weight", (hidden,), 0)
    optional["output.weight"] = ("lm_head.weight", (vocabulary, hidden), 0)
    missing = [name for name in plan if name not in present]
    if missing:
        raise ConversionError(f"tensor '{missing[0]}' is missing ({len(missing)} missing in all)")
    plan.update({name: entry for name, entry in optional.items() if name in present})
    unknown = [name for name in present if name not in plan]
    if unknown:
        raise ConversionError(f"tensor '{unknown[0]}' has no place in a llama model ({len(unknown)} such in all)")
    return plan


def convert_tensors(reader, plan, path):
    tensors = {}
    progress = Progress("dequantising tensors", len(reader.tensors))
    for number, tensor in enumerate(reader.tensors):
        name, shape, swap = plan[tensor.name]
        try:
            values = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        except Exception as error:
            raise ConversionError(f"{path}: tensor '{tensor.name}' of type {tensor.tensor_type.name} cannot be "
                                  f"dequantised ({error})") from error
        if tuple(values.shape) != shape:
            raise ConversionError(f"{path}: tensor '{tensor.name}' has shape {tuple(values.shape)}; {shape} is "
                                  "expected by the sizes in the file's keys")
        tensors[name] = np.ascontiguousarray(interleaved_to_halves(values, swap) if swap else values)
        progress.at(number + 1)
    return tensors


def build_tokenizer(meta, tokens):
    """Byte-level BPE from the file's tokens, merges and token types."""
    kind = meta.need("tokenizer.ggml.model", str)
    if kind != "gpt2":
        raise ConversionError(f"{meta.path}: tokenizer model '{kind}' is not supported; "
                              "supported: gpt2 (byte-level BPE)")
    pre = meta.get("tokenizer.ggml.pre", str, "gpt-2")
    if pre not in PRE_TOKENIZERS:
        raise ConversionError(f"{meta.path}: pre-tokenizer '{pre}' is not supported; supported: "
                              f"{', '.join(PRE_TOKENIZERS)}")
    types = meta.need("tokenizer.ggml.token_type", list)
    if len(types) != len(tokens):
        raise ConversionError(f"{meta.path}: {len(tokens)} tokens but {len(types)} token types")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        twice = next(token for number, token in enumerate(tokens) if vocabulary[token] != number)
        raise ConversionError(f"{meta.path}: token {twice!r} is listed twice")
    merges = [tuple(merge.split(" ")) for merge in meta.need("tokenizer.ggml.merges", list)]
    for number, merge in enumerate(merges):
        if len(merge) != 2 or any(part not in vocabulary for part in merge) or "".join(merge) not in vocabulary:
            raise ConversionError(f"{meta.path}: merge {number} {merge!r} is not a pair of tokens that makes a token")
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[pre](meta.get("tokenizer.ggml.add_space_prefix", bool, False))
    tokenizer.decoder = decoders.ByteLevel()
    for number, token in enumerate(tokens):
        if types[number] == CONTROL:
            tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])
        elif types[number] == USER_DEFINED:
            tokenizer.add_tokens([AddedToken(token, normalized=False, special=False)])
    before, after, special = [], [], []
    for name, side in (("bos", before), ("eos", after)):
        if meta.get(f"tokenizer.ggml.add_{name}_token", bool, False):
            number = token_id(meta, name, tokens)
            side.append(tokens[number])
            special.append((tokens[number], number))
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(single=[*before, "$A", *after], special_tokens=special)
    return tokenizer


def token_id(meta, name, tokens):
    number = meta.need(f"tokenizer.ggml.{name}_token_id", int)
    if not 0 <= number < len(tokens):
        raise ConversionError(f"{meta.path}: tokenizer.ggml.{name}_token_id is {number}; "
                              f"the vocabulary has {len(tokens)}")
    return number


def tokenizer_config(meta, tokens, context):
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": context,
              "clean_up_tokenization_spaces": False}
    for gguf_name, name in (("bos", "bos"), ("eos", "eos"), ("unknown", "unk"), ("padding", "pad")):
        if f"tokenizer.ggml.{gguf_name}_token_id" in meta.fields:
            config[f"{name}_token"] = tokens[token_id(meta, gguf_name, tokens)]
    template = meta.get("tokenizer.chat_template", str)
    if template is not None:
        config["chat_template"] = template
    return config


def generation_config(meta, config, tokens):
    ends = [token_id(meta, "eos", tokens)]
    if "tokenizer.ggml.eot_token_id" in meta.fields and token_id(meta, "eot", tokens) not in ends:
        ends.append(token_id(meta, "eot", tokens))
    made = {"bos_token_id": token_id(meta, "bos", tokens), "eos_token_id": ends if len(ends) > 1 else ends[0]}
    if "pad_token_id" in config:
        made["pad_token_id"] = config["pad_token_id"]
    return made


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(source, target):
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConversionError(f"{target}: exists already; remove it or name another directory")
    say(f"reading {source}")
    reader = open_gguf(source)
    meta = Metadata(reader, source)
    present = [tensor.name for tensor in reader.tensors]
    config = model_config(meta, tied="output.weight" not in present)
    tokens = meta.need("tokenizer.ggml.tokens", list)
    vocabulary = meta.count("llama.vocab_size", len(tokens))
    if vocabulary != len(tokens):
        raise ConversionError(f"{source}: llama.vocab_size is {vocabulary}, but {len(tokens)} tokens are listed")
    config["vocab_size"] = vocabulary
    try:
        plan = tensor_plan(config, vocabulary, present)
    except ConversionError as error:
        raise ConversionError(f"{source}: {error}") from error
    for key, names in (("attention_bias", ("attn_q", "attn_k", "attn_v", "attn_output")),
                       ("mlp_bias", ("ffn_gate", "ffn_up", "ffn_down"))):
        endings = tuple(f".{part}.bias" for part in names)
        found = sum(name.startswith("blk.") and name.endswith(endings) for name in present)
        if found not in (0, len(names) * config["num_hidden_layers"]):
            raise ConversionError(f"{source}: {found} biases on {', '.join(names)}; all of them in every layer, "
                                  f"or none, can be written as '{key}'")
        config[key] = found > 0
    tokenizer = build_tokenizer(meta, tokens)
    tensors = convert_tensors(reader, plan, source)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        size = sum(tensor.nbytes for tensor in tensors.values())
        say(f"writing {len(tensors)} tensors, {size / 1e6:.0f} MB")
        save_file(tensors, partial / "model.safetensors", metadata={"format": "pt"})
        (partial / "model.safetensors").chmod(0o644)  # the library makes it readable by its owner alone
        write_json(partial / "config.json", config)
        write_json(partial / "generation_config.json", generation_config(meta, config, tokens))
        write_json(partial / "tokenizer_config.json",
                   tokenizer_config(meta, tokens, config["max_position_embeddings"]))
        tokenizer.save(str(partial / "tokenizer.json"))
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    say(f"wrote {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FILE.gguf", type=Path,
                        help="llama-architecture GGUF file, of any quantisation")
    parser.add_argument("target", metavar="OUTDIR", type=Path,
                        help="model directory to make; it must not exist or be empty")
    arguments = parser.parse_args()
    try:
        convert(arguments.source, arguments.target)
    except (ConversionError, SafetensorError, OSError) as error:
        sys.exit(f"convert_gguf: {error}")
    except KeyboardInterrupt:
        sys.exit("convert_gguf: interrupted; nothing was written")


if __name__ == "__main__":
    main()
