"""Runs CS336's model in PyTorch at one size and one rung; compare_cs336.py starts this process and
communicates with it.

usage: cs336_steps.py RUNG n_layer=12 n_head=12 n_embd=768 d_ff=3072 vocab_size=10000
       batch_size=4 block_size=256
It reports that it is ready, then answers each line N of its input with the milliseconds of N runs
of each part of a step, by the host's clock from before the launch until the GPU has finished, like
the course's script and `strobe bench`.
"""
import gc
import json
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional

RUNGS = {  # name -> options
    "eager": dict(dtype=None, compile=False, graph=False, flash=False),
    "bf16": dict(dtype=torch.bfloat16, compile=False, graph=False, flash=False),
    "compiled": dict(dtype=torch.bfloat16, compile=True, graph=False, flash=False),
    "graph": dict(dtype=torch.bfloat16, compile=True, graph=True, flash=False),
    "flash": dict(dtype=torch.bfloat16, compile=True, graph=True, flash=True),
}
PARTS = ("inference", "forward + backward", "step")
THETA, EPS = 10000.0, 1e-5


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
        return (wide * scale * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """Rotates columns 2i and 2i+1 of (B, H, T, D) as a point of the plane."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((cos * a - sin * b, sin * a + cos * b), dim=-1).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, s, flash):
        super().__init__()
        self.heads, self.flash = s["n_head"], flash
        width = s["n_embd"]
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, cos, sin, future):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.flash:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
            y = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ v
        return self.o(y.transpose(1, 2).reshape(B, T, C))


class FeedForward(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(s["n_embd"], s["d_ff"], bias=False) for _ in range(2))
        self.w2 = nn.Linear(s["d_ff"], s["n_embd"], bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, s, flash):
        super().__init__()
        self.ln1, self.ln2 = RMSNorm(s["n_embd"]), RMSNorm(s["n_embd"])
        self.attention, self.ffn = Attention(s, flash), FeedForward(s)

    def forward(self, x, *table):
        x = x + self.attention(self.ln1(x), *table)
        return x + self.ffn(self.ln2(x))


class Model(nn.Module):
    def __init__(self, s, flash):
        super().__init__()
        T, d = s["block_size"], s["n_embd"] // s["n_head"]
        angle = torch.arange(T)[:, None] * THETA ** (-torch.arange(0, d, 2) / d)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("future", torch.ones(T, T, dtype=torch.bool).triu(1))
        self.embedding = nn.Embedding(s["vocab_size"], s["n_embd"])
        self.blocks = nn.ModuleList(Block(s, flash) for _ in range(s["n_layer"]))
        self.norm = RMSNorm(s["n_embd"])
        self.head = nn.Linear(s["n_embd"], s["vocab_size"], bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.future)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(),
                                        targets.flatten())


class Training:
    def __init__(self, how, s):
        torch.manual_seed(1)
        self.how = how
        with torch.device("cuda"):
            self.model = Model(s, how["flash"])
            shape = (s["batch_size"], s["block_size"])
            self.tokens, self.targets = (torch.randint(s["vocab_size"], shape) for _ in range(2))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                                     weight_decay=0.01, fused=True,
                                     capturable=how["graph"])
        self.run = torch.compile(self.model) if how["compile"] else self.model
        self.parts = {"inference": self.inference, "forward + backward": self.both,
                      "step": self.step}
        self.graphs, self.loss = {}, None

    def forward(self):
        with torch.autocast("cuda", dtype=self.how["dtype"], enabled=self.how["dtype"] is not None,
                            cache_enabled=not self.how["graph"]):
            return self.run(self.tokens, self.targets)

    def inference(self):
        with torch.no_grad():
            self.loss = self.forward()

    def both(self):
        self.opt.zero_grad(set_to_none=True)
        loss = self.forward()
        loss.backward()
        self.loss = loss.detach()

    def step(self):
        self.both()
        self.opt.step()

    def capture(self, name):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.parts[name]()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.parts[name]()
        self.graphs[name] = graph

    def timed(self, name, n):
        if self.how["graph"] and name not in self.graphs:
            self.capture(name)
        work = self.graphs[name].replay if name in self.graphs else self.parts[name]
        times = []
        for i in range(n + 5):
            torch.cuda.synchronize()
            t0 = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times.append(1e3 * (time.perf_counter() - t0))
        return times[5:]

    def answer(self, n):
        ms = {name: self.timed(name, n) for name in PARTS}
        loss = float(self.loss)
        if not self.graphs:
            self.opt.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()
        return dict(ms=ms, loss=loss)


def main():
    name, *words = sys.argv[1:]
    shape = {k: int(v) for k, v in (w.split("=") for w in words)}
    torch.set_float32_matmul_precision("highest")
    training = Training(RUNGS[name], shape)
    print(json.dumps(dict(torch=torch.__version__, device=torch.cuda.get_device_name(),
                          parameters=sum(x.numel() for x in training.model.parameters()))),
          flush=True)
    for line in sys.stdin:
        print(json.dumps(training.answer(int(line))), flush=True)


if __name__ == "__main__":
    main()
