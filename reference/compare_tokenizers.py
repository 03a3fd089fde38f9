#!/usr/bin/env python3
"""Times `strobe tokenize` beside tiktoken and Hugging Face's tokenizers on the same texts.

All take turns. Strobe is timed as a whole process: it starts, reads its vocabulary and the file,
and writes the ids to a file. The others get the text in memory, in documents of 64 KB, and their
vocabulary is loaded already; so a second rate of Strobe leaves out what an empty file takes.
Prints medians in MB/s and the ratio of that rate to the faster of the others.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

import tokenizers_of as others

DOCUMENT = 1 << 16


def documents(text):
    """Pieces of about 64 KB that end with a line."""
    parts, at = [], 0
    while at < len(text):
        end = text.find("\n", at + DOCUMENT) + 1 or len(text)
        parts.append(text[at:end])
        at = end
    return parts


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="+")
    parser.add_argument("--strobe", default="./strobe")
    parser.add_argument("--tokenizer", required=True, help="folder with vocab.json and merges.txt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if args.threads > 1 else "false"
    encoders = others.encoders(args.tokenizer, args.threads if args.threads > 1 else None)
    for path in args.file:
        texts = documents(open(path, encoding="utf-8", errors="replace", newline="").read())
        megabytes = os.path.getsize(path) * 1e-6
        with tempfile.NamedTemporaryFile() as ids, tempfile.NamedTemporaryFile() as nothing:
            command = [args.strobe, "tokenize", "--raw", "--tokenizer", args.tokenizer]

            def strobe(file):
                subprocess.run([*command, file], stdout=open(ids.name, "wb"),
                               stderr=subprocess.DEVNULL, check=True)

            work = {"strobe": lambda: strobe(path), "start": lambda: strobe(nothing.name)}
            work.update({name: lambda e=encode: e(texts) for name, encode in encoders.items()})
            taken = {name: [] for name in work}
            for _ in range(args.rounds):
                for name, function in work.items():
                    taken[name].append(seconds(function))
        middle = {name: statistics.median(s) for name, s in taken.items()}
        start = middle.pop("start")
        rate = {name: megabytes / s for name, s in middle.items()}
        best = max(r for name, r in rate.items() if name != "strobe")
        rate["strobe without its start"] = megabytes / (middle["strobe"] - start)
        cells = ", ".join(f"{name} {r:.1f} MB/s" for name, r in rate.items())
        times = rate["strobe without its start"] / best
        print(f"{path}, {megabytes:.1f} MB, {args.threads} threads: {cells}; strobe without its "
              f"start is {times:.1f} times as fast as the faster of the others", flush=True)


if __name__ == "__main__":
    main()
