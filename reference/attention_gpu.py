#!/usr/bin/python3
"""Times PyTorch's attention on a GPU, forward and backward, and measures its error: causal, bf16,
FA2 and cuDNN.

usage: attention_gpu.py [--tokens=16384] [--columns=2048] [--rounds=5] [--json=FILE]
Prints a table in Markdown. A time is that of one call among many that were queued behind a wait, so
that the device never waits for Python. With --serve it answers each line of its input with the
times of all shapes; compare_gpu.py uses it so.
"""
import argparse
import contextlib
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import gpu_peers
from compare_cpu import say, write_json
from peers import summary

# timed turns; their approximate duration; maximum number of calls in each
TURNS, TURN_MS, MOST = 7, 4.0, 40
SLEEP_CYCLES, MOST_CYCLES = 1 << 22, 1 << 30  # of the device's clock, before a turn
SMALL = [gpu_peers.Shape(2, 3, T, D, layout) for D in (64, 128) for T in (256, 333)
         # for errors; small, because float64 needs the T x T matrix
         for layout in ("contiguous", "packed")]


def arguments():
    a = argparse.ArgumentParser(description="time attention in PyTorch on a GPU",
                                allow_abbrev=False)
    gpu_peers.add_shape_arguments(a)
    a.add_argument("--device", default="cuda")
    a.add_argument("--rounds", type=int, default=5,
                   help="passes over all shapes; the median is reported")
    a.add_argument("--json", metavar="FILE", help="write all results to FILE")
    a.add_argument("--serve", action="store_true", help="run one round for each line of the input")
    return a.parse_args()


def only(backend, device):
    """Selects the backend of scaled_dot_product_attention within the block; fails if it is
    unavailable."""
    if device != "cuda":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel({"flash": SDPBackend.FLASH_ATTENTION,
                        "cudnn": SDPBackend.CUDNN_ATTENTION}[backend])


def draw(s, device, seed):
    """q, k, v (B,H,T,D), and the packed tensor that they are views of, or None."""
    g = torch.Generator(device).manual_seed(seed)
    if s.layout == "packed":
        qkv = torch.randn(s.B, s.T, 3, s.H, s.D, generator=g, device=device, dtype=torch.float32)
        qkv = qkv.bfloat16().requires_grad_()
        return [qkv[:, :, i].transpose(1, 2) for i in range(3)], qkv
    q = torch.randn(3, s.B, s.H, s.T, s.D, generator=g, device=device,
                    dtype=torch.float32).bfloat16()
    return [x.clone().requires_grad_() for x in q], None


# --- errors ---------------------------------------------------------------------------------------

def exact(qkv, dy):
    """y, dq, dk, dv in double precision, with the T x T matrix."""
    q, k, v = (x.detach().double().requires_grad_() for x in qkv)
    T = q.shape[2]
    future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    score = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[3])
    y = score.masked_fill(future, -math.inf).softmax(dim=-1) @ v
    return [y, *torch.autograd.grad(y, (q, k, v), dy.double())]


def error(s, backend, device, seed):
    """||x - y|| / ||y|| for y, dq, dk, dv."""
    qkv, _ = draw(s, device, seed)
    with only(backend, device):
        y = F.scaled_dot_product_attention(*qkv, is_causal=True)
    dy = torch.randn_like(y)
    got = [y, *torch.autograd.grad(y, qkv, dy)]
    return {name: float((x.double() - e).norm() / e.norm())
            for name, x, e in zip(("y", "dq", "dk", "dv"), got, exact(qkv, dy))}


def errors(device):
    """The largest error over three random inputs for each small shape and backend, or the reason
    why there is none."""
    found = []
    for s in SMALL:
        for backend in gpu_peers.BACKENDS:
            row = dict(shape=s.name, backend=backend)
            try:
                draws = [error(s, backend, device, seed) for seed in range(3)]
                row.update({name: max(d[name] for d in draws) for name in draws[0]})
            except (RuntimeError, AttributeError) as e:
                row["refused"] = str(e).strip().splitlines()[0]
            found.append(row)
    return found


# --- times ----------------------------------------------------------------------------------------

def elapsed(work, device):
    """Milliseconds."""
    if device != "cuda":
        t0 = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - t0)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def queued(work, calls):
    """Milliseconds of one call among many that were all queued before the first started, so that
    Python's launch overhead is not counted; the wait before them is lengthened until that holds."""
    cycles = SLEEP_CYCLES
    while True:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        start.record()
        for _ in range(calls):
            work()
        end.record()
        in_time = not start.query()
        torch.cuda.synchronize()
        if in_time or cycles > MOST_CYCLES:
            return start.elapsed_time(end) / calls
        cycles *= 2


def timed(work, device, stream):
    """Milliseconds per call: n, median, std, min."""
    if device != "cuda":
        work()
        return summary([elapsed(work, device) for _ in range(3)])
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
        calls = max(1, min(MOST,
                           int(TURN_MS / elapsed(lambda: [work() for _ in range(3)], device) * 3)))
        return summary([queued(work, calls) for _ in range(TURNS)])


def cells_of(s, backend, device):
    """Times of one shape and backend; the forward pass that gradients need runs on the stream that
    captures them."""
    stream = torch.cuda.Stream() if device == "cuda" else None
    qkv, packed = draw(s, device, 1)

    def forward():
        with only(backend, device):
            return F.scaled_dot_product_attention(*qkv, is_causal=True)

    if stream:
        torch.cuda.synchronize()
    with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
        y = forward()
        dy = torch.randn_like(y)
    key = (s.B, s.H, s.T, s.D, s.layout, backend)
    yield key + ("forward",), timed(forward, device, stream)
    yield key + ("backward",), timed(
        lambda: torch.autograd.grad(y, qkv, dy, retain_graph=True), device, stream)
    if packed is not None:  # with dq, dk, dv in one tensor, as a following matmul needs them
        yield key + ("backward packed",), timed(
            lambda: torch.autograd.grad(y, packed, dy, retain_graph=True), device, stream)


def one_pass(a):
    """Times of all shapes and backends; a failing combination is listed with its reason."""
    cells, refused = [], {}
    for s in gpu_peers.shapes(a):
        for backend in gpu_peers.BACKENDS:
            try:
                cells += [dict(cell=key, **ms) for key, ms in cells_of(s, backend, a.device)]
            except (RuntimeError, AttributeError) as e:
                refused[f"{s.name} {backend}"] = str(e).strip().splitlines()[0]
    if a.device == "cuda":
        torch.cuda.empty_cache()
    return dict(cells=cells, refused=refused)


def about(a):
    if a.device == "cuda":
        torch.cuda.init()
    return dict(torch=torch.__version__,
                device=torch.cuda.get_device_name() if a.device == "cuda" else a.device,
                cudnn=torch.backends.cudnn.version() if a.device == "cuda" else None,
                errors=errors(a.device))


def serve(a):
    print(json.dumps(about(a)), flush=True)
    for _ in sys.stdin:
        print(json.dumps(one_pass(a)), flush=True)


# --- alone ----------------------------------------------------------------------------------------

def rows_of(passes):
    """Medians over the passes, with FLOP rates."""
    rows = []
    for cell in dict.fromkeys(tuple(c["cell"]) for p in passes for c in p["cells"]):
        ms = statistics.median(c["median"] for p in passes for c in p["cells"]
                               if tuple(c["cell"]) == cell)
        shape = gpu_peers.Shape(*cell[:5])
        rows.append(dict(shape=shape.name, backend=cell[5], what=cell[6], ms=ms,
                         tflops=gpu_peers.attention_tflops(shape, cell[6], ms)))
    return rows


def main():
    a = arguments()
    if a.serve:
        return serve(a)
    found = about(a)
    passes = [one_pass(a) for _ in range(a.rounds)]
    rows = rows_of(passes)
    print("| shape | backend | | ms | TFLOP/s |\n" + "|---" * 5 + "|")
    for r in rows:
        print(f"| {r['shape']} | {r['backend']} | {r['what']} | {r['ms']:.4f} | "
              f"{r['tflops']:.0f} |")
    for name, why in passes[0]["refused"].items():
        print(f"| {name} | {why} | | | |")
    gpu_peers.print_errors(found["errors"])
    write_json(a.json, dict(v=1, **found, rows=rows, passes=passes))


if __name__ == "__main__":
    main()
