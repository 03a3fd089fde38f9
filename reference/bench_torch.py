#!/usr/bin/python3
"""Times whole training steps of a Strobe configuration in PyTorch: forward, backward, clipping,
AdamW.

usage: bench_torch.py [CONFIG] [--key=value ...] [--dtype=bfloat16] [--attention=slow]
       [--compile] ...
CONFIG is a configuration file of Strobe (default: configs/shakespeare_char_cpu.conf); --key=value
changes one of its keys, as in --batch_size=8. Prints one JSON object: milliseconds per step, with
spread, and separately of forward, backward and update. With --serve it answers each line N of its
input with the milliseconds of N steps; compare_cpu.py uses it so.
"""
import argparse
import json
import os
import sys
import time

import torch

import gpt_nn
import gpt_torch
import strobe_config
from peers import summary

HERE = os.path.dirname(os.path.abspath(__file__))
LAPTOP = os.path.join(HERE, "..", "configs", "shakespeare_char_cpu.conf")


def arguments():
    a = argparse.ArgumentParser(description="time GPT training steps in PyTorch",
                                allow_abbrev=False)
    a.add_argument("config", nargs="?", default=LAPTOP)
    a.add_argument("--vocab_size", type=int, default=65,
                   help="vocabulary size of the random tokens")
    a.add_argument("--threads", type=int, default=0, help="0: as PyTorch chooses")
    a.add_argument("--warmup", type=int, default=5, help="untimed steps")
    a.add_argument("--steps", type=int, default=20, help="timed steps")
    a.add_argument("--attention", choices=["slow", "flash"], default="flash",
                   help="slow: with the T x T matrix; flash: "
                        "scaled_dot_product_attention (torch 2)")
    a.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32",
                   help="bfloat16: autocast")
    a.add_argument("--compile", action="store_true", help="torch.compile (torch 2)")
    a.add_argument("--device", default="cpu")
    a.add_argument("--serve", action="store_true", help="time N steps for each line N of the input")
    a, rest = a.parse_known_args()
    try:
        a.keys = strobe_config.read(a.config, rest)
    except (OSError, ValueError) as e:
        raise SystemExit(f"bench_torch.py: {e}") from e
    if a.attention == "flash" and not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise SystemExit(f"torch {torch.__version__} has no scaled_dot_product_attention: use "
                         f"--attention=slow")
    if a.compile and not hasattr(torch, "compile"):
        raise SystemExit(f"torch {torch.__version__} has no torch.compile")
    return a


def adamw(parameters, keys, **more):
    """AdamW with weight decay on matrices only."""
    return gpt_torch.optimizer(dict(enumerate(parameters)), lr=keys["learning_rate"],
                               betas=(keys["beta1"], keys["beta2"]),
                               weight_decay=keys["weight_decay"],
                               **more)


def best_adamw(parameters, keys):
    """AdamW as one fused kernel if this torch has it; returns the optimizer and whether it is
    fused."""
    try:
        return adamw(parameters, keys, fused=True), True
    except (RuntimeError, TypeError):  # torch < 2.4 has it on GPUs only, torch < 2 not at all
        return adamw(parameters, keys), False


class Training:
    """One model, one batch of random tokens, and training steps on it."""

    def __init__(self, a):
        k = a.keys
        multiple = 1 if k["pad_vocab"] in ("auto", "0") else int(k["pad_vocab"])
        s = gpt_torch.Shape(k["n_layer"], k["n_head"], k["n_embd"], k["block_size"],
                            -(-a.vocab_size // multiple) * multiple, k["bias"], k["gelu"],
                            k["dropout"])
        generator = torch.Generator().manual_seed(k["seed"])
        model = gpt_nn.GPT(s, a.attention == "flash")
        model.load(gpt_torch.draw_parameters(s, generator))
        model.to(a.device)
        self.parameters = list(model.parameters())
        self.opt, self.fused = best_adamw(self.parameters, k)
        ids = torch.randint(a.vocab_size, (k["batch_size"], s.block_size + 1), generator=generator)
        self.batch = ids[:, :-1].contiguous().to(a.device), ids[:, 1:].contiguous().to(a.device)
        self.model = torch.compile(model) if a.compile else model
        self.device, self.clip = torch.device(a.device).type, k["grad_clip"]
        self.bf16 = a.dtype == "bfloat16"

    def forward(self):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            return self.model(*self.batch)

    def update(self):
        if self.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)

    def now(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def step(self):
        """Runs one training step; returns its milliseconds."""
        t0 = self.now()
        self.forward().backward()
        self.update()
        return 1e3 * (self.now() - t0)

    def phases(self):
        """The same, timing forward, backward and update separately."""
        t0 = self.now()
        loss = self.forward()
        t1 = self.now()
        loss.backward()
        t2 = self.now()
        self.update()
        return [1e3 * d for d in (t1 - t0, t2 - t1, self.now() - t2)]


def serve(training):
    """Reports that it is ready, then answers until its input ends."""
    print(json.dumps(dict(torch=torch.__version__, fused_adamw=training.fused,
                          threads=torch.get_num_threads())), flush=True)
    for line in sys.stdin:
        print(json.dumps([training.step() for _ in range(int(line))]), flush=True)


def main():
    a = arguments()
    if a.threads:
        torch.set_num_threads(a.threads)
    training = Training(a)
    first = training.step()  # includes compilation, if any
    if a.serve:
        return serve(training)
    for _ in range(a.warmup):
        training.step()
    step = [training.step() for _ in range(a.steps)]
    phases = list(zip(*[training.phases() for _ in range(a.steps)]))
    print(json.dumps(dict(
        torch=torch.__version__, threads=torch.get_num_threads(), dtype=a.dtype,
        attention=a.attention, compiled=a.compile, fused_adamw=training.fused, config=a.config,
        keys=a.keys, parameters=sum(x.numel() for x in training.parameters), first_ms=first,
        step_ms=summary(step), forward_ms=summary(phases[0]), backward_ms=summary(phases[1]),
        update_ms=summary(phases[2])), indent=1))


if __name__ == "__main__":
    main()
