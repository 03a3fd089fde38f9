#!/usr/bin/python3
"""Runs the best rungs of `strobe lab` beside PyTorch eager, torch.compile and Triton kernels, all
on one GPU and on problems of one size, and prints ratios.

usage: compare_lab.py [LADDER ...] [--strobe=./strobe] [--rounds=5] [--json=FILE]
LADDERs are copy, transpose, reduce (all three by default), and matmul: matmuls of several sizes in
bf16, TF32 and fp32 beside torch.matmul. Each round runs every ladder of Strobe once, and then the
rivals. A rival of a simple ladder is a CUDA graph of calls that go from one set of tensors to the
next, as Strobe's are, so neither host time nor a warm L2 helps it. A ratio is taken within a round;
the median over the rounds is printed with the minimum and the maximum. The results of the rivals
are checked.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import triton
import triton.language as tl

HERE = os.path.dirname(os.path.abspath(__file__))
SIMPLE = ["copy", "transpose", "reduce"]
# Sizes m, n, k. In TF32 the second matrix is (n, k), as nn.Linear has it.
MATMULS = [("bfloat16", (4096, 4096, 4096)), ("bfloat16", (8192, 8192, 8192)),
           ("bfloat16", (3000, 5000, 1000)), ("bfloat16", (3001, 5003, 1001)),
           ("tf32", (4096, 4096, 4096)), ("float32", (4096, 4096, 4096)),
           ("float32", (3001, 5003, 1001))]
FAST = {"bfloat16": ["large tiles", "stores", "padded", "turns", "Strobe's own", "cuBLASLt"],
        "tf32": ["large tiles", "stores", "padded", "cuBLASLt"],
        "float32": ["coarse 8x8", "double buffered", "cuBLASLt"]}
LADDERS = {"copy": (1 << 25,), "transpose": (16384, 4096), "reduce": (1 << 26,)}
SAMPLE_MS = 2


# --- Triton kernels -------------------------------------------------------------------------------

@triton.jit
def copy_kernel(to, source, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(to + at, tl.load(source + at, mask=at < n), mask=at < n)


@triton.jit
def transpose_kernel(to, source, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tile = tl.load(source + row[:, None] * columns + column[None, :], mask=inside)
    inside = (column[:, None] < columns) & (row[None, :] < rows)
    tl.store(to + column[:, None] * rows + row[None, :], tl.trans(tile), mask=inside)


@triton.jit
def part_kernel(part, source, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        sums += tl.load(source + at, mask=at < n, other=0.0)
    tl.store(part + tl.program_id(0), tl.sum(sums))


@triton.jit
def sum_kernel(to, part, BLOCK: tl.constexpr):
    tl.store(to, tl.sum(tl.load(part + tl.arange(0, BLOCK))))


PARTS = 1024
part = None


def triton_copy(to, x):
    copy_kernel[(triton.cdiv(x.numel(), 4096),)](to, x, x.numel(), BLOCK=4096)


def triton_transpose(to, x):
    rows, columns = x.shape
    grid = (triton.cdiv(columns, 64), triton.cdiv(rows, 64))
    transpose_kernel[grid](to, x, rows, columns, BLOCK=64)


def triton_sum(to, x):
    part_kernel[(PARTS,)](part, x, x.numel(), BLOCK=4096)
    sum_kernel[(1,)](to, part, BLOCK=PARTS)


# --- rivals ---------------------------------------------------------------------------------------

def eager_copy(to, x):
    to.copy_(x)


def eager_transpose(to, x):
    to.copy_(x.t())


def eager_sum(to, x):
    torch.sum(x, dim=0, keepdim=True, out=to)


def compiled(f):
    """torch.compile of a function that returns its result; to: ignored, as it allocates its own."""
    g = torch.compile(f, dynamic=False)
    return lambda to, x: g(x)


def rivals_of(ladder):
    if ladder == "copy":
        return {"eager": eager_copy, "compile": compiled(lambda x: x.clone()),
                "triton": triton_copy}
    if ladder == "transpose":
        return {"eager": eager_transpose, "compile": compiled(lambda x: x.t().contiguous()),
                "triton": triton_transpose}
    return {"eager": eager_sum, "compile": compiled(lambda x: x.sum()), "triton": triton_sum}


class Rival:
    """Calls on a number of sets of tensors, captured in one graph."""

    def __init__(self, ladder, name, call):
        self.ladder, self.name = ladder, name
        shape = LADDERS[ladder]
        elements = 1
        for n in shape:
            elements *= n
        out = {"copy": shape, "transpose": shape[::-1], "reduce": (1,)}[ladder]
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        sets = 1 + 2 * cache // (elements * 4)
        self.x = [torch.randn(shape, device="cuda") for _ in range(sets)]
        self.to = [torch.empty(out, device="cuda") for _ in range(sets)]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                result = call(self.to[0], self.x[0])
            self.check(self.to[0] if result is None else result)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call(self.to[0], self.x[0])
            end.record()
            end.synchronize()
            self.calls = max(1, min(200, int(SAMPLE_MS / begin.elapsed_time(end))))
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream):
                for i in range(self.calls):
                    call(self.to[i % sets], self.x[i % sets])
        self.graph.replay()
        torch.cuda.synchronize()

    def check(self, result):
        x = self.x[0].double()
        right = {"copy": lambda: x, "transpose": lambda: x.t(), "reduce": lambda: x.sum()}
        want = right[self.ladder]()
        scale = x.abs().sum() if self.ladder == "reduce" else want.norm()
        error = ((result.double().reshape(want.shape) - want).norm() / scale).item()
        if not error <= (1e-6 if self.ladder == "reduce" else 0):
            raise RuntimeError(f"{self.name} {self.ladder}: error {error}")

    def ms(self, samples=20):
        times = []
        for _ in range(samples):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / self.calls)
        return statistics.median(times)


def strobe_rows(strobe, ladder):
    size = "x".join(str(n) for n in LADDERS[ladder])
    command = [strobe, "lab", ladder, "--device=cuda", f"--size={size}", "--samples=20",
               "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)["tables"][0]["rows"]
    return {r["rung"]: r["ms_median"] for r in rows if r["ms_median"]}


class Matmul:
    """torch.matmul, by events: after a pause (burst), and in the middle of long work."""

    def __init__(self, dtype, size):
        m, n, k = size
        self.flops = 2 * m * n * k
        kind = torch.bfloat16 if dtype == "bfloat16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
        b = b.t().contiguous().t() if dtype == "tf32" else b
        self.a, self.b = a.to(kind), b.to(kind)
        self.out = torch.empty(m, n, device="cuda", dtype=kind)

    def calls(self, n):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(n):
            torch.matmul(self.a, self.b, out=self.out)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / n

    def burst(self):
        one = self.calls(3)
        times = []
        for _ in range(9):
            time.sleep(0.1)
            times.append(self.calls(max(2, int(6 / one))))
        return statistics.median(times)

    def sustained(self):
        many = max(4, int(250 / self.calls(3)))
        self.calls(many)
        return self.calls(many)


def compare_matmuls(strobe, rounds):
    """One line for each rung, beside torch.matmul in the same round. The rungs run one after the
    other without a pause, so the ratio is to the sustained time."""
    print(f"{'matmul':30} {'who':16} {'us':>9} {'TFLOP/s':>8}  speed relative to torch.matmul")
    found = []
    for dtype, size in MATMULS:
        torch.cuda.empty_cache()
        name = dtype + " " + " x ".join(str(n) for n in size)
        command = [strobe, "lab", "matmul", "--device=cuda", f"--dtype={dtype}", "--json",
                   "--size=" + "x".join(str(n) for n in size), "--samples=20",
                   "--rungs=" + ",".join(FAST[dtype])]
        rival, times = Matmul(dtype, size), []
        for _ in range(rounds):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
            rows = json.loads(done.stdout)["tables"][0]["rows"]
            times.append(({r["rung"]: r["ms_median"] for r in rows if r["ms_median"]},
                          rival.burst(), rival.sustained()))
        for rung in times[0][0]:
            ms = statistics.median(t[0][rung] for t in times)
            ratios = sorted(t[2] / t[0][rung] for t in times)
            print(f"{name:30} {rung:16} {1e3 * ms:9.1f} {rival.flops / ms * 1e-9:8.1f}  "
                  f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
        for what, at in (("torch, burst", 1), ("torch, sustained", 2)):
            ms = statistics.median(t[at] for t in times)
            print(f"{name:30} {what:16} {1e3 * ms:9.1f} {rival.flops / ms * 1e-9:8.1f}")
        found.append({"dtype": dtype, "size": size, "rounds": times})
    return found


def bytes_of(ladder):
    n = 4
    for size in LADDERS[ladder]:
        n *= size
    return n if ladder == "reduce" else 2 * n


def main():
    a = argparse.ArgumentParser(description="compare the rungs of strobe lab with PyTorch")
    a.add_argument("ladders", nargs="*", metavar="LADDER", default=SIMPLE)
    a.add_argument("--strobe", default=os.path.join(HERE, "..", "strobe"))
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--json")
    a = a.parse_args()
    global part
    part = torch.empty(PARTS, device="cuda")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton "
          f"{triton.__version__}, CUDA {torch.version.cuda}; fp32, cold L2, {a.rounds} rounds")
    found = {}
    if "matmul" in a.ladders:
        found["matmul"] = compare_matmuls(a.strobe, a.rounds)
    if set(a.ladders) & set(SIMPLE):
        print(f"{'ladder':10} {'who':28} {'us':>9} {'GB/s':>7}  Strobe's best rung is")
    for ladder in a.ladders:
        if ladder == "matmul":
            continue
        torch.cuda.empty_cache()
        rivals = [Rival(ladder, name, call) for name, call in rivals_of(ladder).items()]
        rounds = []
        for _ in range(a.rounds):
            rows = strobe_rows(a.strobe, ladder)
            rounds.append((rows, {r.name: r.ms() for r in rivals}))
        medians = {rung: statistics.median(rows[rung] for rows, _ in rounds)
                   for rung in rounds[0][0]}
        best = min(medians, key=medians.get)
        found[ladder] = {"size": LADDERS[ladder], "rungs": medians, "best": best, "rivals": {}}
        rate = bytes_of(ladder) * 1e-6
        print(f"{ladder:10} {'Strobe, ' + best:28} {1e3 * medians[best]:9.2f} "
              f"{rate / medians[best]:7.0f}")
        for r in rivals:
            ms = statistics.median(times[r.name] for _, times in rounds)
            ratios = sorted(times[r.name] / rows[best] for rows, times in rounds)
            found[ladder]["rivals"][r.name] = {"ms": ms, "ratios": ratios}
            print(f"{'':10} {r.name:28} {1e3 * ms:9.2f} {rate / ms:7.0f}  "
                  f"{statistics.median(ratios):.3f} times as fast ({ratios[0]:.3f} to "
                  f"{ratios[-1]:.3f})")
        del rivals
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
