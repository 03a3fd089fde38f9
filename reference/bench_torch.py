#!/usr/bin/python3
"""Times the training step of the same GPT in PyTorch, so that anyone can repeat a comparison.

usage: bench_torch.py [--threads=2] [--attention=explicit|sdpa] [--compile] [--n_layer=4 ...]
Defaults are nanoGPT's run for a laptop. Prints one JSON object: milliseconds of forward, backward,
update (clipping and AdamW) and of the whole step, measured in runs of their own.
"""
import argparse
import json
import statistics
import time

import torch

import gpt_torch


def arguments():
    a = argparse.ArgumentParser(description="time a GPT training step in PyTorch")
    for name, value in dict(n_layer=4, n_head=4, n_embd=128, block_size=64, vocab_size=65,
                            batch_size=12, threads=0, warmup=10, steps=50, seed=1337).items():
        a.add_argument("--" + name, type=int, default=value)
    a.add_argument("--dropout", type=float, default=0.0)
    a.add_argument("--bias", action="store_true")
    a.add_argument("--gelu", choices=["erf", "tanh"], default="erf")
    a.add_argument("--attention", choices=["explicit", "sdpa"], default="explicit")
    a.add_argument("--compile", action="store_true", help="torch.compile the loss (torch 2 or later)")
    a.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32",
                   help="bfloat16: autocast")
    a.add_argument("--device", default="cpu")
    return a.parse_args()


def summary(ms):
    return dict(median=statistics.median(ms), min=min(ms), mean=statistics.fmean(ms),
                stdev=statistics.stdev(ms) if len(ms) > 1 else 0.0)


def main():
    a = arguments()
    if a.attention == "sdpa" and not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise SystemExit(f"torch {torch.__version__} has no scaled_dot_product_attention: take torch 2")
    if a.compile and not hasattr(torch, "compile"):
        raise SystemExit(f"torch {torch.__version__} has no torch.compile: take torch 2")
    if a.threads:
        torch.set_num_threads(a.threads)
    s = gpt_torch.Shape(a.n_layer, a.n_head, a.n_embd, a.block_size, a.vocab_size, a.bias, a.gelu,
                        a.dropout)
    generator = torch.Generator().manual_seed(a.seed)
    weights = gpt_torch.draw_parameters(s, generator)
    p = {k: x.to(a.device).requires_grad_() for k, x in weights.items()}
    opt = gpt_torch.optimizer(p, 1e-3, (0.9, 0.99), 0.1)
    ids = torch.randint(s.vocab_size, (a.batch_size, s.block_size + 1), generator=generator)
    inputs, targets = ids[:, :-1].to(a.device), ids[:, 1:].to(a.device)

    def loss():
        with torch.autocast(torch.device(a.device).type, torch.bfloat16,
                            enabled=a.dtype == "bfloat16"):
            return gpt_torch.loss(s, p, inputs, targets, a.attention == "sdpa")

    forward = torch.compile(loss) if a.compile else loss

    def now():
        if a.device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter()

    def update():
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)

    def by_phase():
        t0 = now()
        x = forward()
        t1 = now()
        x.backward()
        t2 = now()
        update()
        return [1e3 * d for d in (t1 - t0, t2 - t1, now() - t2)]

    def whole():
        t0 = now()
        forward().backward()
        update()
        return 1e3 * (now() - t0)

    for _ in range(a.warmup):
        whole()
    step = [whole() for _ in range(a.steps)]
    phases = list(zip(*[by_phase() for _ in range(a.steps)]))
    print(json.dumps(dict(
        torch=torch.__version__, threads=torch.get_num_threads(), arguments=vars(a),
        parameters=sum(x.numel() for x in p.values()), step_ms=summary(step),
        forward_ms=summary(phases[0]), backward_ms=summary(phases[1]),
        update_ms=summary(phases[2])), indent=1))


if __name__ == "__main__":
    main()
