#!/usr/bin/env python3
"""Compares `strobe tokenize` with tiktoken and Hugging Face's tokenizers.

Both are built from the same vocab.json and merges.txt. Exits with 1 if any text has other ids, or
if `strobe detokenize` returns another text. `make check-interop` runs it.
"""
import argparse
import json
import random
import subprocess
import sys

import tokenizers_of as others

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
WORDS = ["'s", "'S", "'ll", "'re", "'ve", "'", "''", "don't", "\u2019s", "the", "The", "123", "a1",
         "<|endoftext|>", "\u200b", "\ufeff", "\u180e", "\x1c", "\x00", "e\u0301", "\u65e5\u672c",
         "\U0001f600", "====", "----", "aaaa", "x" * 40, "0" * 30]


def random_text(r):
    """A text of up to 60 parts: characters of any script, spaces, contractions, digits."""
    parts = []
    for _ in range(r.randrange(60)):
        kind = r.randrange(8)
        if kind == 0:
            parts.append(r.choice(SPACES) * r.choice([1, 1, 2, 3, 20]))
        elif kind == 1:
            parts.append(r.choice(WORDS))
        elif kind == 2:
            parts.append("".join(r.choice("ab01'. ") for _ in range(r.randrange(12))))
        elif kind == 3:
            base = r.choice([0x370, 0x400, 0x5D0, 0x620, 0x904, 0x3042, 0x4E00, 0xAC00, 0x1F300])
            parts.append("".join(chr(base + r.randrange(200)) for _ in range(r.randrange(9))))
        elif kind == 4:
            code = r.randrange(0x110000)
            parts.append(chr(code) if not 0xD800 <= code < 0xE000 else "?")
        else:
            parts.append("".join(chr(r.randrange(32, 127)) for _ in range(r.randrange(15))))
    return "".join(parts)


def code_points(r, count):
    """Texts with `count` code points, or all, in each context that the pattern tells apart."""
    codes = [*range(0xD800), *range(0xE000, 0x110000)]
    if count is not None and count < len(codes):
        codes = sorted(r.sample(codes, count))
    for first in range(0, len(codes), 64):
        text = []
        for code in codes[first:first + 64]:
            c = chr(code)
            text.append(f"x{c}1{c}!{c} {c}{c}'s{c}  {c}\n{c}")
        yield "".join(text)


def strobe(command, args, lines):
    result = subprocess.run([args.strobe, command, "--tokenizer", args.tokenizer, "--jsonl"],
                            input="".join(json.dumps(x) + "\n" for x in lines).encode(),
                            stdout=subprocess.PIPE, check=True)
    return [json.loads(x) for x in result.stdout.decode().split("\n") if x]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strobe", default="./strobe")
    parser.add_argument("--tokenizer", required=True, help="folder with vocab.json and merges.txt")
    parser.add_argument("--texts", type=int, default=100000)
    parser.add_argument("--code-points", type=int, help="how many, chosen at random; else all")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    r = random.Random(args.seed)
    texts = [*code_points(r, args.code_points), *(random_text(r) for _ in range(args.texts))]
    ours = [x["ids"] for x in strobe("tokenize", args, [{"text": t} for t in texts])]
    theirs = {name: encode(texts) for name, encode in others.encoders(args.tokenizer).items()}
    wrong = 0
    for name, ids in theirs.items():
        bad = [i for i in range(len(texts)) if ids[i] != ours[i]]
        print(f"{name}: {len(texts) - len(bad)} of {len(texts)} texts have equal ids")
        for i in bad[:3]:
            print(f"  {texts[i]!r}\n    strobe {ours[i]}\n    other  {ids[i]}")
        wrong += len(bad)
    back = [x["text"] for x in strobe("detokenize", args, [{"ids": x} for x in ours])]
    bad = sum(a != b for a, b in zip(texts, back))
    print(f"detokenize: {len(texts) - bad} of {len(texts)} texts come back")
    sys.exit(1 if wrong or bad else 0)


if __name__ == "__main__":
    main()
