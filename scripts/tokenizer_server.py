#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tokenizer of a model directory as a process: one JSON object a line on standard input, one answer a line.

At the start it says {"ready": true, "vocabulary": N}, or {"error": ...} and ends. Questions and their answers:
  {"encode": "text", "special": true}                  {"ids": [...]}    special: add what the model wants around a text
  {"decode": [1, 2]}                                   {"text": "..."}   special tokens written out
  {"chat": [{"role": "user", "content": "..."}]}       {"text": "..."}   the model's chat template, up to the answer
Anything else gets {"error": "..."}; only the end of the input ends the process.
"""
import argparse
import json
import sys
from datetime import datetime
from pathlib import Path

MISSING = None
try:
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from tokenizers import Tokenizer
except ImportError as error:
    MISSING = (f"Python package missing for {sys.executable} ({error}); run scripts/fetch_weights, "
               "which sets up build/venv, and use build/venv/bin/python")


class Refused(Exception):
    """A question that cannot be answered; the text says why."""


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def json_object(path):
    if not path.is_file():
        return {}
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise Refused(f"{path}: an object is expected")
    return value


class Server:
    def __init__(self, model):
        self.model = model
        if not (model / "tokenizer.json").is_file():
            raise Refused(f"{model}: holds no tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.tokenizer.no_truncation()  # the file may ask for both; a text is encoded as it is, all of it
        self.tokenizer.no_padding()
        self.vocabulary = 1 + max(self.tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        self.template = None
        self.tokens = {}
        config = json_object(model / "tokenizer_config.json")
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            token = config.get(name)
            if isinstance(token, dict):  # written with its options
                token = token.get("content")
            if isinstance(token, str):
                self.tokens[name] = token
        source = config.get("chat_template")
        if isinstance(source, list):  # several named ones
            source = next((entry.get("template") for entry in source if entry.get("name") == "default"), None)
        if source is None and (model / "chat_template.jinja").is_file():
            source = (model / "chat_template.jinja").read_text(encoding="utf-8")
        self.source = source

    def encode(self, question):
        text, special = question["encode"], question.get("special", True)
        if not isinstance(text, str) or not isinstance(special, bool):
            raise Refused("'encode' must be a string and 'special' true or false")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Refused("the text holds half of a surrogate pair, which is no character")
        return {"ids": self.tokenizer.encode(text, add_special_tokens=special).ids}

    def decode(self, question):
        ids = question["decode"]
        if not isinstance(ids, list) or any(type(number) is not int for number in ids):
            raise Refused("'decode' must be a list of whole numbers")
        for number in ids:
            if not 0 <= number < self.vocabulary:
                raise Refused(f"token id {number} is outside the vocabulary of {self.vocabulary}")
        return {"text": self.tokenizer.decode(ids, skip_special_tokens=False)}

    def chat(self, question):
        turns = question["chat"]
        if not isinstance(turns, list) or not turns or not all(
                isinstance(turn, dict) and all(isinstance(turn.get(key), str) for key in ("role", "content"))
                for turn in turns):
            raise Refused("'chat' must be a list of one or more objects with the strings 'role' and 'content'")
        if self.source is None:
            raise Refused(f"{self.model}: has no chat template; give the prompt as plain text")
        if self.template is None:
            environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
            environment.globals["raise_exception"] = self.refuse
            environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
            environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
            self.template = environment.from_string(self.source)
        return {"text": self.template.render(messages=turns, add_generation_prompt=True, **self.tokens)}

    @staticmethod
    def refuse(text):
        raise Refused(f"the chat template refuses these turns: {text}")

    def reply(self, line):
        try:
            question = json.loads(line)
        except ValueError as error:  # not JSON, or not UTF-8
            raise Refused(f"a question is one line of JSON: {error}") from error
        kinds = {"encode": self.encode, "decode": self.decode, "chat": self.chat}
        named = [kind for kind in kinds if isinstance(question, dict) and kind in question]
        if len(named) != 1:
            raise Refused(f"a question is an object with one of {', '.join(kinds)}")
        return kinds[named[0]](question)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL_DIR", type=Path)
    model = parser.parse_args().model
    try:
        if MISSING:
            raise Refused(MISSING)
        server = Server(model)
    except Exception as error:
        answer({"error": str(error) if isinstance(error, Refused) else f"{model}: {type(error).__name__}: {error}"})
        sys.exit(1)
    answer({"ready": True, "vocabulary": server.vocabulary})
    for line in sys.stdin.buffer:
        try:
            reply = server.reply(line)
        except Refused as refusal:
            reply = {"error": str(refusal)}
        except jinja2.TemplateError as error:
            reply = {"error": f"the chat template of {model} fails: {error}"}
        except (KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:  # a fault in the tokenizer library arrives as a BaseException of its own
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer(reply)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
