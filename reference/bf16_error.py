#!/usr/bin/python3
"""Measures the error of PyTorch's bfloat16 operators against double precision.

usage: bf16_error.py [--draws=5] [--threads=1] [--json=FILE]    measure, print a table
       bf16_error.py --join FILE...                             one table from several such files

A bf16 kernel of this program may have at most twice that error; README.md has the table. Inputs are
those of `strobe check`: standard normal ("wide": times ten), rounded to bfloat16, in its shapes and
in those of the two character models. The error is ||x - y|| / ||y|| with y in double precision from
the same rounded inputs; the maximum over the random inputs counts. "rounding" is the error of y
itself rounded to bfloat16, which no bfloat16 output can beat by much.
"""
import argparse
import json
import math
import platform

import torch
import torch.nn.functional as F

SEED = 1337


class Case:
    """One operator with a list of shapes: `run` maps inputs to an output; gradients of all inputs
    are measured."""

    def __init__(self, op, shape, inputs, run, names, scale=1.0, autocast=False):
        self.op, self.shape, self.run, self.names = op, shape, run, names
        self.inputs = inputs  # name -> (shape, stays float32)
        self.scale, self.autocast = scale, autocast


def linear_case(rows, n_in, n_out):
    return Case("linear", f"{rows}x{n_in} -> {n_out}",
                {"x": ((rows, n_in), False), "w": ((n_in, n_out), False), "b": ((n_out,), False)},
                lambda x, w, b: F.linear(x, w.t(), b), ["y", "dx", "dw", "db"])


def gelu_case(rows, columns, approximate, scale=1.0):
    name = {"none": "erf", "tanh": "tanh"}[approximate]
    return Case("gelu " + name, f"{rows}x{columns}" + (", wide" if scale != 1 else ""),
                {"x": ((rows, columns), False)},
                lambda x: F.gelu(x, approximate=approximate), ["y", "dx"], scale)


def norm_case(rows, columns, mixed, scale=1.0):
    return Case("layernorm" + (", w, b float32" if mixed else ""),
                f"{rows}x{columns}" + (", wide" if scale != 1 else ""),
                {"x": ((rows, columns), False), "w": ((columns,), mixed), "b": ((columns,), mixed)},
                lambda x, w, b: F.layer_norm(x, (columns,), w, b, 1e-5), ["y", "dx", "dw", "db"],
                scale)


def softmax_case(rows, columns, scale=1.0):
    return Case("softmax", f"{rows}x{columns}" + (", wide" if scale != 1 else ""),
                {"x": ((rows, columns), False)}, lambda x: F.softmax(x, -1), ["y", "dx"], scale)


def loss_case(rows, vocab, scale=1.0):
    targets = torch.randint(vocab, (rows,), generator=torch.Generator().manual_seed(SEED))
    return Case("cross-entropy", f"{rows}x{vocab}" + (", wide" if scale != 1 else ""),
                {"x": ((rows, vocab), False)}, lambda x: F.cross_entropy(x, targets),
                ["loss", "dlogits"], scale)


def attention_case(batch, heads, t, d, how):
    def split(qkv):
        return (x.reshape(batch, t, heads, d).permute(0, 2, 1, 3) for x in qkv.split(heads * d, -1))

    def slow(qkv):
        q, k, v = split(qkv)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        score = q @ k.transpose(-1, -2) * (1 / math.sqrt(d))
        y = score.masked_fill(future, -math.inf).softmax(-1) @ v
        return y.permute(0, 2, 1, 3).reshape(batch, t, heads * d)

    def flash(qkv):
        y = F.scaled_dot_product_attention(*split(qkv), is_causal=True)
        return y.permute(0, 2, 1, 3).reshape(batch, t, heads * d)

    return Case("attention, " + how, f"B{batch} H{heads} T{t} D{d}",
                {"qkv": ((batch, t, 3 * heads * d), False)}, flash if how == "sdpa" else slow,
                ["y", "dqkv"], autocast=how == "autocast")


def cases():
    yield linear_case(10, 7, 9)
    yield linear_case(129, 129, 65)
    for c, rows in ((128, 768), (384, 4096)):
        yield from (linear_case(rows, n, m)
                    for n, m in ((c, 3 * c), (c, 4 * c), (4 * c, c), (c, 65)))
    for approximate in ("none", "tanh"):
        yield gelu_case(3, 17, approximate)
        yield gelu_case(257, 513, approximate)
        yield gelu_case(257, 513, approximate, 10.0)
    for mixed in (False, True):
        for rows, columns in ((10, 17), (257, 385), (768, 128), (4096, 384)):
            yield norm_case(rows, columns, mixed)
        yield norm_case(257, 385, mixed, 10.0)
    for rows, columns in ((6, 7), (257, 385)):
        yield softmax_case(rows, columns)
    yield softmax_case(257, 385, 10.0)
    for rows, vocab in ((10, 7), (768, 65), (257, 501)):
        yield loss_case(rows, vocab)
    yield loss_case(257, 501, 10.0)
    ways = ["bf16", "autocast"] + ["sdpa"] * hasattr(F, "scaled_dot_product_attention")
    for shape in ((2, 2, 7, 3), (2, 4, 129, 32), (2, 2, 131, 64), (12, 4, 64, 32), (4, 6, 256, 64),
                  (1, 12, 1024, 64)):
        yield from (attention_case(*shape, how) for how in ways)


def draw(case, generator):
    """Inputs and the incoming gradient, as doubles that are exact in bfloat16 (or float32)."""
    inputs = {}
    for name, (shape, wide) in case.inputs.items():
        x = torch.randn(shape, generator=generator) * (case.scale if name == "x" else 1.0)
        inputs[name] = (x if wide else x.bfloat16()).double()
    with torch.no_grad():
        y = case.run(*inputs.values())
    dy = torch.ones(())
    if y.dim():
        dy = torch.randn(y.shape, generator=generator).bfloat16().double()
    return inputs, dy


def outputs(case, inputs, dy, dtype):
    """The output and the gradients of all inputs, as doubles; `dtype` is the type the operator
    computes in."""
    leaves = []
    for name, x in inputs.items():
        keep = dtype == torch.bfloat16 and (case.inputs[name][1] or case.autocast)
        leaves.append(x.to(torch.float32 if keep else dtype).detach().requires_grad_())
    with torch.autocast("cpu", torch.bfloat16, enabled=case.autocast and dtype == torch.bfloat16):
        y = case.run(*leaves)
    grads = torch.autograd.grad(y, leaves, dy.to(y.dtype))
    return [x.detach().double() for x in (y, *grads)]


def distance(x, y):
    return float((x - y).norm() / y.norm())


def measure(case, draws):
    """One row per output: the error of PyTorch and that of rounding alone, each the maximum over
    the random inputs. No rows if this version of PyTorch does not support the types."""
    generator = torch.Generator().manual_seed(SEED)
    worst = {name: [0.0, 0.0] for name in case.names}
    for _ in range(draws):
        inputs, dy = draw(case, generator)
        exact = outputs(case, inputs, dy, torch.float64)
        try:
            found = outputs(case, inputs, dy, torch.bfloat16)
        except RuntimeError:
            return []
        for name, x, y in zip(case.names, found, exact):
            errors = (distance(x, y), distance(y.bfloat16().double(), y))
            worst[name] = [max(pair) for pair in zip(worst[name], errors)]
    return [dict(op=case.op, shape=case.shape, output=name, error=e, rounding=r)
            for name, (e, r) in worst.items()]


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        lines = f.read().splitlines()
    name = next((s.split(":")[1].strip() for s in lines if s.startswith("model name")),
                platform.machine())
    flags = next((s.split() for s in lines if s.startswith("flags")), [])
    return name + "".join(", " + x for x in ("amx_bf16", "avx512_bf16") if x in flags)


def print_table(results):
    """Markdown: one row per output, one column per file."""
    heads = [f"PyTorch {r['torch'].split('+')[0]}" for r in results]
    print("| operator | shape | output | rounding | " + " | ".join(heads) + " |")
    print("|---" * (4 + len(heads)) + "|")
    keys = dict.fromkeys((row["op"], row["shape"], row["output"]) for r in results
                         for row in r["rows"])
    found = [{(x["op"], x["shape"], x["output"]): x for x in r["rows"]} for r in results]
    for key in keys:
        rows = [f.get(key) for f in found]
        rounding = max(r["rounding"] for r in rows if r)
        errors = " | ".join(f"{r['error']:.1e}" if r else "-" for r in rows)
        print("| " + " | ".join(key) + f" | {rounding:.1e} | {errors} |")


def main():
    a = argparse.ArgumentParser(description="PyTorch's bfloat16 operators against double precision")
    a.add_argument("--draws", type=int, default=5)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--json", metavar="FILE", help="write the measurement to FILE")
    a.add_argument("--join", nargs="+", metavar="FILE",
                   help="print one table from several measurements")
    a = a.parse_args()
    if a.join:
        results = []
        for path in a.join:
            with open(path, encoding="utf-8") as f:
                results.append(json.load(f))
        return print_table(results)
    torch.set_num_threads(a.threads)
    rows = [row for case in cases() for row in measure(case, a.draws)]
    result = dict(torch=torch.__version__, cpu=processor(), draws=a.draws, seed=SEED, rows=rows)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    return print_table([result])


if __name__ == "__main__":
    main()
