#!/usr/bin/python3
"""Prepares a folder in which llm.c's CPU trainer runs a Strobe configuration.

usage: llmc_model.py CLONE FOLDER [CONFIG] [--key=value ...]
CLONE is a clone of github.com/karpathy/llm.c. Its train_gpt2.c hard-codes batch size and context; a
copy with those of CONFIG (default: configs/shakespeare_char_cpu.conf) is built with llm.c's
Makefile, and FOLDER gets the program, random weights, random tokens and a tokenizer in llm.c's
formats. Then `cd FOLDER && OMP_NUM_THREADS=2 ./train_gpt2` trains. llm.c has no dropout and no
gradient clipping, and always has biases.
"""
import argparse
import array
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import strobe_config

HERE = os.path.dirname(os.path.abspath(__file__))
LAPTOP = os.path.join(HERE, "..", "configs", "shakespeare_char_cpu.conf")
MODEL_MAGIC, MODEL_VERSION = 20240326, 3      # float32 weights, padded vocabulary
DATA_MAGIC, DATA_VERSION = 20240520, 1        # uint16 tokens
TOKENIZER_MAGIC, TOKENIZER_VERSION = 20240328, 2
VOCAB, VOCAB_MULTIPLE = 65, 128


def header(*values):
    """256 32-bit integers, padded with zeros."""
    return struct.pack("<256i", *values, *[0] * (256 - len(values)))


def padded(vocab):
    return -(-vocab // VOCAB_MULTIPLE) * VOCAB_MULTIPLE


def parameters(keys, vocab=VOCAB):
    """(elements, deviation, mean) of each of llm.c's 16 tensors, in its order; the layers of a
    tensor are contiguous."""
    layers, c, t = keys["n_layer"], keys["n_embd"], keys["block_size"]
    spread, residual = 0.02, 0.02 / math.sqrt(2 * layers)
    norm = [(layers * c, 0, 1.0), (layers * c, 0, 0.0)]
    return ([(padded(vocab) * c, spread, 0.0), (t * c, spread, 0.0)]
            + norm + [(layers * 3 * c * c, spread, 0.0), (layers * 3 * c, 0, 0.0),
                      (layers * c * c, residual, 0.0), (layers * c, 0, 0.0)]
            + norm + [(layers * 4 * c * c, spread, 0.0), (layers * 4 * c, 0, 0.0),
                      (layers * 4 * c * c, residual, 0.0), (layers * c, 0, 0.0)]
            + [(c, 0, 1.0), (c, 0, 0.0)])


def write_model(path, keys, vocab=VOCAB):
    draw = random.Random(keys["seed"])
    with open(path, "wb") as f:
        f.write(header(MODEL_MAGIC, MODEL_VERSION, keys["block_size"], vocab, keys["n_layer"],
                       keys["n_head"], keys["n_embd"], padded(vocab)))
        for elements, spread, mean in parameters(keys, vocab):
            values = [mean] * elements
            if spread:
                values = (draw.gauss(mean, spread) for _ in range(elements))
            array.array("f", values).tofile(f)


def write_tokens(path, count, seed, vocab=VOCAB):
    draw = random.Random(seed)
    with open(path, "wb") as f:
        f.write(header(DATA_MAGIC, DATA_VERSION, count))
        array.array("H", (draw.randrange(vocab) for _ in range(count))).tofile(f)


def write_tokenizer(path, vocab=VOCAB):
    with open(path, "wb") as f:
        f.write(header(TOKENIZER_MAGIC, TOKENIZER_VERSION, vocab, 0))
        for i in range(vocab):
            f.write(bytes([1, 32 + i]))


def write_files(folder, keys):
    data = os.path.join(folder, "dev", "data", "tinyshakespeare")
    os.makedirs(data, exist_ok=True)
    tokens = keys["batch_size"] * keys["block_size"]
    write_model(os.path.join(folder, "gpt2_124M.bin"), keys)  # the file name that the trainer opens
    write_tokens(os.path.join(data, "tiny_shakespeare_train.bin"), 64 * tokens + 1, 1)
    write_tokens(os.path.join(data, "tiny_shakespeare_val.bin"), 8 * tokens + 1, 2)
    write_tokenizer(os.path.join(folder, "gpt2_tokenizer.bin"))


def build(clone, folder, keys):
    """Uses llm.c's Makefile and flags; only the two numbers in main() are changed."""
    source = os.path.join(folder, "llm.c")
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(clone, source, ignore=shutil.ignore_patterns(".git"))
    path = os.path.join(source, "train_gpt2.c")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for name, value in (("B", keys["batch_size"]), ("T", keys["block_size"])):
        text, found = re.subn(rf"^    int {name} = \d+;", f"    int {name} = {value};", text,
                              flags=re.M)
        if found != 1:
            raise SystemExit(f"llmc_model.py: {path} has no line `int {name} = ...;`; use commit "
                             f"f1e2ace")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["make", "-C", source, "train_gpt2"], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(os.path.join(source, "train_gpt2"), os.path.join(folder, "train_gpt2"))


def prepare(clone, folder, keys):
    os.makedirs(folder, exist_ok=True)
    write_files(folder, keys)
    build(clone, folder, keys)


def main():
    a = argparse.ArgumentParser(description="prepare llm.c's CPU trainer for a Strobe "
                                            "configuration")
    a.add_argument("clone")
    a.add_argument("folder")
    a.add_argument("config", nargs="?", default=LAPTOP)
    a, rest = a.parse_known_args()
    try:
        prepare(a.clone, a.folder, strobe_config.read(a.config, rest))
    except (OSError, ValueError) as e:
        raise SystemExit(f"llmc_model.py: {e}") from e


if __name__ == "__main__":
    sys.exit(main())
