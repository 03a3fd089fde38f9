#!/usr/bin/python3
"""CS336's model at several sizes and rungs: Strobe and PyTorch in turn on one GPU; forward, forward
+ backward and whole steps, with ratios.

usage: compare_cs336.py [--strobe=./strobe] [--torch=/usr/bin/python3] [--sizes=small,medium]
       [--rungs=eager,flash] [--rounds=3] [--steps=10] [--budget=300] [--json=FILE]
Each round gives PyTorch and Strobe a turn of --steps samples of each part, in alternating order; a
ratio is one of medians within a round, and the median over the rounds is printed. A contender that
fails is listed with its reason. Sizes are configs/cs336_SIZE.conf. PyTorch keeps its memory during
Strobe's turns. If Strobe then does not fit, PyTorch is stopped, Strobe measures alone, and PyTorch
is restarted for each of its turns, including warm-up and compilation, so such a size takes longer
(--limit, --budget). Losses are not compared: `strobe bench` generates its weights and tokens and
writes none of them, and PyTorch generates its own, so first losses differ. That both compute the
same is checked with identical weights: cs336.py and tests/engine/test_cs336_golden.c.
"""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time

import strobe_config

HERE = os.path.dirname(os.path.abspath(__file__))
# PyTorch's rung -> the keys of the corresponding Strobe configuration
STROBE = {
    "eager": "--dtype=float32 --fusion=op --flash=false --replay=false",
    "bf16": "--dtype=bfloat16 --fusion=op --flash=false --replay=false",
    "compiled": "--dtype=bfloat16 --fusion=full --flash=false --replay=false",
    "graph": "--dtype=bfloat16 --fusion=full --flash=false --replay=true",
    "flash": "--dtype=bfloat16 --fusion=full --flash=true --replay=true",
}
PARTS = ("inference", "forward", "forward + backward", "update", "step")
SHAPE = ("n_layer", "n_head", "n_embd", "d_ff", "vocab_size", "batch_size", "block_size")


class NoRoom(ChildProcessError):
    """Strobe did not run: its plan, or the other memory of a step, does not fit."""


class Torch:
    """PyTorch at one size and rung, in a separate process that waits between its turns."""

    def __init__(self, a, rung, config):
        keys = strobe_config.read(config, a.overrides)
        words = [f"{k}={keys[k]}" for k in SHAPE]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([a.torch, os.path.join(HERE, "cs336_steps.py"), rung,
                                         *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, cwd=HERE)
        try:
            self.about = self.line(a.limit)
        except BaseException:
            self.stop()
            raise

    def line(self, seconds):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError(f"no answer within {seconds:.0f} s")
        text = self.process.stdout.readline()
        if not text:
            self.log.seek(0)
            last = self.log.read().decode(errors="replace").strip().splitlines()
            raise ChildProcessError(last[-1] if last else "it ended")
        return json.loads(text)

    def turn(self, n, seconds):
        self.process.stdin.write(f"{n}\n".encode())
        self.process.stdin.flush()
        return self.line(seconds)["ms"]

    def stop(self):
        self.process.kill()
        self.process.wait()


def strobe_turn(a, rung, config, n, seconds):
    """Part -> milliseconds: the median and the standard deviation of n samples."""
    words = [a.strobe, "bench", config, "--phase=inference,forward,backward,update,step",
             "--warmup=5", f"--steps={n}", "--order=once",
             "--json", "--device=cuda", *STROBE[rung].split(), *a.overrides]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds)
    if done.returncode and not done.stdout.strip():
        raise ChildProcessError(done.stderr.strip().splitlines()[-1] if done.stderr.strip()
                                else f"exit {done.returncode}")
    rows = json.loads(done.stdout)["tables"][0]["rows"]
    if rows[0]["note"]:
        raise NoRoom(rows[0]["note"])
    return {r["phase"]: dict(median=r["median_ms"], mean=r["mean_ms"], std=r["std_ms"])
            for r in rows}


def torch_turn(torch, n, seconds):
    ms = torch.turn(n, seconds)
    return {part: dict(median=statistics.median(x), mean=statistics.mean(x),
                       std=statistics.stdev(x)) for part, x in ms.items()}


class Pair:
    """PyTorch and Strobe at one size and rung. PyTorch's process lives through all turns unless the
    two do not fit together."""

    def __init__(self, a, rung, config, deadline):
        self.a, self.rung, self.config, self.deadline = a, rung, config, deadline
        self.torch, self.about, self.apart = None, None, False

    def left(self):
        left = min(self.a.limit, self.deadline - time.monotonic())
        if left <= 0:
            raise TimeoutError("time is up")
        return left

    def stop(self):
        if self.torch:
            self.torch.stop()
        self.torch = None

    def torch_turn(self):
        if not self.torch:
            self.left()
            self.torch = Torch(self.a, self.rung, self.config)
            self.about = self.torch.about
        turn = torch_turn(self.torch, self.a.steps, self.left())
        if self.apart:
            self.stop()
        return turn

    def strobe_turn(self):
        try:
            return strobe_turn(self.a, self.rung, self.config, self.a.steps, self.left())
        except NoRoom as e:
            if not self.torch:
                raise
            print(f"Strobe with PyTorch in memory: {e}; stopping PyTorch during Strobe's turns",
                  file=sys.stderr, flush=True)
        self.apart = True
        self.stop()
        return strobe_turn(self.a, self.rung, self.config, self.a.steps, self.left())


def compare(a, size, rung, deadline):
    config = os.path.join(HERE, "..", "configs", f"cs336_{size}.conf")
    out = dict(size=size, rung=rung, torch=[], strobe=[], refused=None)
    pair = Pair(a, rung, config, deadline)
    try:
        for i in range(a.rounds):
            turns = [("torch", pair.torch_turn), ("strobe", pair.strobe_turn)]
            for who, take in turns if i % 2 == 0 else turns[::-1]:
                out[who].append(take())
    except (OSError, TimeoutError, ChildProcessError, subprocess.SubprocessError) as e:
        out["refused"] = str(e)
    finally:
        out["about"], out["apart"] = pair.about, pair.apart
        pair.stop()
    return out


def middle(turns, part, what="median"):
    x = [t[part][what] for t in turns if part in t]
    return statistics.median(x) if x else None


def ratios(row, own, other):
    each = [s[own]["median"] / t[other]["median"]
            for s, t in zip(row["strobe"], row["torch"]) if own in s and other in t]
    return f"{statistics.median(each):.3f} ({min(each):.3f} to {max(each):.3f})" if each else ""


def words(x, std=None):
    return "" if x is None else f"{x:.3f}" + ("" if std is None else f" ± {std:.3f}")


def print_table(rows):
    print("| size | PyTorch rung | part | PyTorch ms | Strobe ms | time of Strobe / PyTorch |\n"
          + "|---" * 6 + "|")
    for r in rows:
        for part in PARTS:
            other = "inference" if part == "forward" else part
            own, its = middle(r["strobe"], part), middle(r["torch"], other)
            if own is None and its is None:
                continue
            print(f"| {r['size']} | {r['rung']} | {part} | "
                  f"{words(its, middle(r['torch'], other, 'std'))} | "
                  f"{words(own, middle(r['strobe'], part, 'std'))} | {ratios(r, part, other)} |")
        if r.get("apart"):
            print(f"| {r['size']} | {r['rung']} | the two do not fit together: PyTorch was "
                  f"restarted for each of its turns | | | |")
        if r["refused"]:
            print(f"| {r['size']} | {r['rung']} | {r['refused']} | | | |")
    print("\nPyTorch's `inference` (no gradients) is compared with both of Strobe's: the loss "
          "alone, and the forward pass of a training step.")


def arguments():
    a = argparse.ArgumentParser(description="compare Strobe with PyTorch on CS336's model on a GPU",
                                allow_abbrev=False,
                                epilog="Compares times only. Losses differ because each side "
                                       "generates its own weights and tokens, and strobe bench "
                                       "writes none. cs336.py and "
                                       "tests/engine/test_cs336_golden.c check with identical "
                                       "weights that both compute the same.")
    a.add_argument("--strobe", default=os.path.join(HERE, "..", "strobe"))
    a.add_argument("--torch", default=sys.executable)
    a.add_argument("--sizes", default="small,medium,large,xl,2.7b")
    a.add_argument("--rungs", default="eager,graph,flash", help="of " + ",".join(STROBE))
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--steps", type=int, default=10,
                   help="samples of each part per turn (%(default)s)")
    a.add_argument("--limit", type=float, default=120,
                   help="maximum seconds of a turn, including compilation (%(default)s)")
    a.add_argument("--budget", type=float, default=420, help="total seconds (%(default)s)")
    a.add_argument("--json")
    a, a.overrides = a.parse_known_args()
    a.strobe = os.path.abspath(a.strobe)
    return a


def main():
    a = arguments()
    deadline, rows = time.monotonic() + a.budget, []
    for size in a.sizes.split(","):
        for rung in a.rungs.split(","):
            t0 = time.monotonic()
            rows.append(compare(a, size, rung, deadline))
            print(f"{size} {rung}: {rows[-1]['refused'] or 'done'} after "
                  f"{time.monotonic() - t0:.0f} s, "
                  f"{deadline - time.monotonic():.0f} s left", file=sys.stderr, flush=True)
            if a.json:
                with open(a.json, "w", encoding="utf-8") as f:
                    json.dump(rows, f)
    print_table(rows)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as e:
        raise SystemExit(f"compare_cs336.py: {e}") from e
