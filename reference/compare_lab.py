#!/usr/bin/python3
"""Runs the best rungs of `strobe lab` beside PyTorch eager, torch.compile and Triton kernels, all
on one GPU and on problems of one size, and prints ratios.

usage: compare_lab.py [LADDER ...] [--strobe=./strobe] [--rounds=5] [--json=FILE]
LADDERs are copy, transpose, reduce (all three by default); softmax and elu in fp32 and bf16;
formulas: ten formulas of `strobe lab kernel` in fp32 and bf16, forward and with the gradient; and
matmul: matmuls of several sizes in bf16, TF32 and fp32 beside torch.matmul. Each round runs every
ladder of Strobe once, and then the rivals. A rival other than a matmul is a CUDA graph of calls
that go from one set of tensors to the next, as Strobe's are, so neither host time nor a warm L2
helps it. A ratio is taken within a round; the median over the rounds is printed with the minimum
and the maximum. The results of the rivals are checked.
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
ROWS, COLUMNS = 16384, 4096  # of softmax and elu
WIDE = {"softmax": f"{ROWS}x{COLUMNS}", "elu": str(ROWS * COLUMNS)}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ELEMENTS = 1 << 25  # of the tensors of a formula
# A formula of Strobe, its constants, and the same in PyTorch of the tensors that it names.
FORMULAS = [
    ("x * y + z", "", lambda x, y, z: x * y + z),
    ("where(x < 0, a * (exp(x) - 1), x)", "a=1.5",
     lambda x: torch.where(x < 0, 1.5 * (torch.exp(x) - 1), x)),
    ("x * sigmoid(b * x)", "b=1.702", lambda x: x * torch.sigmoid(1.702 * x)),
    ("gelu(x) * y", "", lambda x, y: torch.nn.functional.gelu(x) * y),
    ("silu(x) * y", "", lambda x, y: torch.nn.functional.silu(x) * y),
    ("x * tanh(log(1 + exp(x)))", "", lambda x: x * torch.tanh(torch.log(1 + torch.exp(x)))),
    ("max(x, a * x)", "a=0.01", lambda x: torch.maximum(x, 0.01 * x)),
    ("pow(relu(x), 2)", "", lambda x: torch.pow(torch.relu(x), 2)),
    ("where(x > 0, log(x), 0)", "", lambda x: torch.where(x > 0, torch.log(x), 0)),
    ("exp(-0.5 * pow((x - y) / a, 2)) / a", "a=2",
     lambda x, y: torch.exp(-0.5 * torch.pow((x - y) / 2, 2)) / 2),
]
PASSES = ["forward", "forward + backward"]
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


@triton.jit
def softmax_kernel(to, source, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * columns
    x = tl.load(source + row + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(to + row + at, e / tl.sum(e, axis=0), mask=at < columns)


@triton.jit
def elu_kernel(to, source, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + at, mask=at < n).to(tl.float32)
    tl.store(to + at, tl.where(x > 0, x, tl.exp(x) - 1), mask=at < n)


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


def triton_softmax(to, x):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](to, x, columns, BLOCK=block, num_warps=8)


def triton_elu(to, x):
    elu_kernel[(triton.cdiv(x.numel(), 4096),)](to, x, x.numel(), BLOCK=4096, num_warps=8)


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


class Captured:
    """Calls that go from one set of tensors to the next, captured in one graph."""

    def __init__(self, call, sets, check):
        """call(i) works on set i and returns its results; check(results) raises if set 0's are
        wrong."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                results = call(0)
            check(results)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call(0)
            end.record()
            end.synchronize()
            self.calls = max(1, min(200, int(SAMPLE_MS / begin.elapsed_time(end))))
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream):
                for i in range(self.calls):
                    call(i % sets)
        self.graph.replay()
        torch.cuda.synchronize()

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


def sets_of(bytes_of_set):
    """As many sets of tensors as exceed twice L2."""
    return 1 + 2 * torch.cuda.get_device_properties(0).L2_cache_size // bytes_of_set


class Rival(Captured):
    """A rival of a simple ladder."""

    def __init__(self, ladder, name, call):
        self.ladder, self.name = ladder, name
        shape = LADDERS[ladder]
        elements = 1
        for n in shape:
            elements *= n
        out = {"copy": shape, "transpose": shape[::-1], "reduce": (1,)}[ladder]
        sets = sets_of(elements * 4)
        self.x = [torch.randn(shape, device="cuda") for _ in range(sets)]
        self.to = [torch.empty(out, device="cuda") for _ in range(sets)]

        def on_set(i):
            result = call(self.to[i], self.x[i])
            return self.to[i] if result is None else result
        super().__init__(on_set, sets, self.check)

    def check(self, result):
        x = self.x[0].double()
        right = {"copy": lambda: x, "transpose": lambda: x.t(), "reduce": lambda: x.sum()}
        want = right[self.ladder]()
        scale = x.abs().sum() if self.ladder == "reduce" else want.norm()
        error = ((result.double().reshape(want.shape) - want).norm() / scale).item()
        if not error <= (1e-6 if self.ladder == "reduce" else 0):
            raise RuntimeError(f"{self.name} {self.ladder}: error {error}")


def relative_error(result, want):
    """By norm, over the elements that are finite in double precision."""
    finite = want.isfinite()
    off = (result.double() - want)[finite].norm()
    return (off / want[finite].norm()).item() if off > 0 else 0.0


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["tables"][0]["rows"]


def strobe_rows(strobe, ladder):
    size = "x".join(str(n) for n in LADDERS[ladder])
    command = [strobe, "lab", ladder, "--device=cuda", f"--size={size}", "--samples=20",
               "--json"]
    rows = rows_of(command)
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
            rows = rows_of(command)
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


# --- softmax and elu ------------------------------------------------------------------------------

def wide_rival(ladder, dtype, call):
    """A rival on tensors of ROWS x COLUMNS; call(to, x) may return its result instead."""
    exact = {"softmax": lambda x: torch.softmax(x, dim=-1), "elu": torch.nn.functional.elu}[ladder]
    kind = TYPES[dtype]
    sets = sets_of(2 * ROWS * COLUMNS * kind.itemsize)
    xs = [torch.randn(ROWS, COLUMNS, device="cuda").to(kind) for _ in range(sets)]
    to = [torch.empty_like(x) for x in xs]

    def on_set(i):
        result = call(to[i], xs[i])
        return to[i] if result is None else result

    def check(result):
        error = relative_error(result, exact(xs[0].double()))
        if not error <= (1e-6 if dtype == "float32" else 4e-3):
            raise RuntimeError(f"{ladder} {dtype}: error {error}")
    return Captured(on_set, sets, check)


def compare_wide(strobe, ladder, rounds):
    """The best rung beside eager, torch.compile and a Triton kernel, in both types."""
    function = {"softmax": lambda x: torch.softmax(x, dim=-1), "elu": torch.nn.functional.elu}
    f, found = function[ladder], []
    calls = {"eager": lambda to, x: f(x), "compile": compiled(f),
             "triton": {"softmax": triton_softmax, "elu": triton_elu}[ladder]}
    for dtype, kind in TYPES.items():
        torch.cuda.empty_cache()
        command = [strobe, "lab", ladder, "--device=cuda", f"--dtype={dtype}", "--json",
                   f"--size={WIDE[ladder]}", "--samples=20"]
        rivals = {name: wide_rival(ladder, dtype, call) for name, call in calls.items()}
        times = []
        for _ in range(rounds):
            rows = [r for r in rows_of(command) if r["ms_median"]]
            best = min(rows, key=lambda r: r["ms_median"])
            copy = best["ms_median"] * best["ceiling_percent"] / 100
            times.append({"rung": best["rung"], "copy": copy, "Strobe": best["ms_median"],
                          **{name: r.ms() for name, r in rivals.items()}})
        print_times(f"{ladder} {dtype}", times, 2 * ROWS * COLUMNS * kind.itemsize, "Strobe")
        found.append({"dtype": dtype, "rounds": times})
        del rivals
    return found


def print_times(what, times, n_bytes, ours):
    """A line for each who: median time, useful GB/s, % of a copy, and how much faster `ours` is."""
    for who in (k for k in times[0] if k not in ("rung", "copy")):
        ms = statistics.median(t[who] for t in times)
        share = statistics.median(t["copy"] / t[who] for t in times)
        ratios = sorted(t[who] / t[ours] for t in times)
        name = f"{who}, {times[0]['rung']}" if who == ours and "rung" in times[0] else who
        print(f"{what:58} {name:22} {1e3 * ms:9.1f} {n_bytes / ms * 1e-6:7.0f} "
              f"{100 * share:6.1f} %  {statistics.median(ratios):.3f} "
              f"({ratios[0]:.3f} to {ratios[-1]:.3f})")


# --- formulas -------------------------------------------------------------------------------------

def tensors_of(f):
    return f.__code__.co_varnames[:f.__code__.co_argcount]


def formula_rival(f, exact, dtype, gradient):
    """Calls of f, or of f and its gradient, on tensors of ELEMENTS elements."""
    kind, n = TYPES[dtype], len(tensors_of(exact))
    sets = sets_of((n + 1) * ELEMENTS * kind.itemsize)
    xs = [[torch.randn(ELEMENTS, device="cuda").to(kind).requires_grad_(gradient)
           for _ in range(n)] for _ in range(sets)]
    df = [torch.randn(ELEMENTS, device="cuda").to(kind) for _ in range(sets)]

    def on_set(i):
        if not gradient:
            with torch.no_grad():
                return f(*xs[i])
        y = f(*xs[i])
        torch.autograd.grad(y, xs[i], df[i])
        return y.detach()

    def check(result):
        want = exact(*(x.detach().double() for x in xs[0]))
        error = relative_error(result, want)
        if not error <= (1e-5 if dtype == "float32" else 3e-2):
            raise RuntimeError(f"{tensors_of(exact)} {dtype}: error {error}")
    return Captured(on_set, sets, check)


def compare_formula(strobe, formula, dtype, rounds):
    """Both passes of one formula: Strobe's variants beside eager and torch.compile."""
    text, constants, f = formula
    command = [strobe, "lab", "kernel", text, "--device=cuda", f"--dtype={dtype}", "--json",
               f"--size={ELEMENTS}", "--samples=20"] + ([f"--set={constants}"] if constants else [])
    rivals = {(p, name): formula_rival(call, f, dtype, p != PASSES[0])
              for p in PASSES
              for name, call in (("eager", f), ("compile", torch.compile(f, dynamic=False)))}
    times = {p: [] for p in PASSES}
    for _ in range(rounds):
        ours = {(r["pass"], r["variant"]): r for r in rows_of(command)}
        for p in PASSES:
            times[p].append({"copy": ours[p, "copy"]["ms_median"],
                             "fused": ours[p, "fused"]["ms_median"],
                             "separate": ours[p, "separate"]["ms_median"],
                             "eager": rivals[p, "eager"].ms(),
                             "compile": rivals[p, "compile"].ms()})
    for p in PASSES:
        n_bytes = ours[p, "copy"]["bytes_per_element"] * ELEMENTS
        print_times(f"{dtype}, {p}: {text}", times[p], n_bytes, "fused")
    return {"formula": text, "dtype": dtype, "rounds": times}


def compare_formulas(strobe, rounds):
    found = []
    for dtype in TYPES:
        for formula in FORMULAS:
            torch.cuda.empty_cache()
            found.append(compare_formula(strobe, formula, dtype, rounds))
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
    known = SIMPLE + list(WIDE) + ["matmul", "formulas"]
    unknown = [name for name in a.ladders if name not in known]
    if unknown:
        sys.exit(f"compare_lab.py: unknown ladder {unknown[0]}")
    found = {}
    if "matmul" in a.ladders:
        found["matmul"] = compare_matmuls(a.strobe, a.rounds)
    if set(a.ladders) & (set(WIDE) | {"formulas"}):
        print(f"{'what':58} {'who':22} {'us':>9} {'GB/s':>7} {'of copy':>8}  "
              "its time / Strobe's")
    for ladder in WIDE:
        if ladder in a.ladders:
            found[ladder] = compare_wide(a.strobe, ladder, a.rounds)
    if "formulas" in a.ladders:
        found["formulas"] = compare_formulas(a.strobe, a.rounds)
    if set(a.ladders) & set(SIMPLE):
        print(f"{'ladder':10} {'who':28} {'us':>9} {'GB/s':>7}  Strobe's best rung is")
    for ladder in a.ladders:
        if ladder not in SIMPLE:
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
