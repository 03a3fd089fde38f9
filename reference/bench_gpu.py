#!/usr/bin/python3
"""Times PyTorch's training steps on a GPU, adding one optimization after another: forward,
backward, clipping, AdamW.

usage: bench_gpu.py [CONFIG] [--rungs=NAME,...] [--vocab=50257] [--json=FILE] [--key=value ...]
CONFIG is a configuration file of Strobe (default: gpt2_b16.conf in this folder); --key=value
changes one of its keys. Each rung runs in a separate process. Prints a table in Markdown.
"""
import argparse
import time

import gpu_peers
import peers
from compare_cpu import pooled, say, write_json


def arguments():
    a = argparse.ArgumentParser(description="time GPT training steps in PyTorch on a GPU",
                                allow_abbrev=False)
    gpu_peers.add_arguments(a)
    gpu_peers.add_step_arguments(a)
    return gpu_peers.parse(a)


def row_of(a, one):
    """The results of a rung, for JSON and for the table."""
    row = dict(rung=one.rung.name, words=one.rung.words, refused=one.refused, **one.about)
    turns = [t[one.rung.name] for t in one.turns.values()]
    if turns:
        row["step_ms"] = pooled(turns)
        row["tokens_per_second"] = gpu_peers.tokens_per_second(a, row["step_ms"]["median"])
    return row


def print_rows(rows):
    print("| rung | PyTorch | ms | std | min | steps | tokens/s | peak GiB | first loss | "
          "to start, s |\n"
          + "|---" * 10 + "|")
    for r in rows:
        if "step_ms" not in r:
            print(f"| {r['rung']} | {r['words']} | {r['refused'] or 'did not run'} |" + " |" * 7)
            continue
        ms = r["step_ms"]
        print(f"| {r['rung']} | {r['words']} | {ms['median']:.2f} | {ms['std']:.2f} | "
              f"{ms['min']:.2f} | {ms['n']} | {r['tokens_per_second']:,.0f} | "
              f"{gpu_peers.gib(r['peak_bytes'])} | {r['first_loss']:.3f} | "
              f"{r['start_s']:.0f} |")


def measure(one, limit):
    try:
        for work in (one.launch, one.ready, one.begin, lambda seconds: one.turn_of(0, seconds)):
            if not one.guarded(work, limit):
                return
    finally:
        one.stop()


def main():
    a = arguments()
    rows, deadline = [], time.monotonic() + a.budget
    for rung in gpu_peers.pick_rungs(a.rungs):
        one = gpu_peers.TorchRung(a, rung)
        say(one.name)
        measure(one, min(a.limit, deadline - time.monotonic()))
        rows.append(row_of(a, one))
        write_json(a.json,
                   dict(v=1, config=a.config, vocabulary=a.vocab, keys=peers.keys_of(a, a.config),
                        rungs=rows))
    print_rows(rows)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as e:
        raise SystemExit(f"bench_gpu.py: {e}") from e
