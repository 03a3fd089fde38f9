#!/usr/bin/python3
"""CS336's language model in plain PyTorch: the reference for model = cs336
(tests/engine/test_cs336_golden.c).

usage: cs336.py [--out=FOLDER] [--shapes=tiny,small]

Writes FOLDER/<shape>.json: loss, some logits, and for each gradient its norm and its dot product
with a vector, all computed in float64 from weights that are exact in float32. The weights are a
hash of name and index, so other programs can regenerate them; README.md gives the formula. The same
is then computed in float32, to show the size of rounding errors. Works with torch 1.13 and later.
"""
import argparse
import json
import math
import os

import numpy
import torch

SHAPES = {
    # The model of assignment 2's size "small", and one small enough to test every rung.
    "tiny": dict(n_layer=2, n_head=4, n_embd=32, d_ff=80, vocab_size=61, batch_size=2,
                 block_size=13),
    "small": dict(n_layer=12, n_head=12, n_embd=768, d_ff=3072, vocab_size=10000, batch_size=1,
                  block_size=32),
}
THETA, EPS = 10000.0, 1e-5
LOGITS = 24


def seed_of(name):
    """FNV-1a, 32 bits."""
    h = 0x811C9DC5
    for c in name.encode():
        h = (h ^ c) * 0x01000193 & 0xFFFFFFFF
    return h


def words(name, n):
    """n 32-bit integers: the finalizer of MurmurHash3 applied to multiples of an odd number,
    starting at the name's seed."""
    x = numpy.arange(n, dtype=numpy.uint32) * numpy.uint32(0x9E3779B1) + numpy.uint32(seed_of(name))
    x ^= x >> numpy.uint32(16)
    x *= numpy.uint32(0x85EBCA6B)
    x ^= x >> numpy.uint32(13)
    x *= numpy.uint32(0xC2B2AE35)
    x ^= x >> numpy.uint32(16)
    return x


def uniform(name, n):
    """float32 in -1 ... 1, from 24 bits of each integer."""
    high = (words(name, n) >> numpy.uint32(8)).astype(numpy.float32)
    return high * numpy.float32(2**-23) - numpy.float32(1)


def parameter_shapes(s):
    """name -> shape; linear layers are (out, in), as in nn.Linear."""
    c, f = s["n_embd"], s["d_ff"]
    shapes = {"wte.weight": (s["vocab_size"], c)}
    for i in range(s["n_layer"]):
        shapes[f"h.{i}.ln_1.weight"] = (c,)
        for name in ("q_proj", "k_proj", "v_proj", "output_proj"):
            shapes[f"h.{i}.attn.{name}.weight"] = (c, c)
        shapes[f"h.{i}.ln_2.weight"] = (c,)
        shapes[f"h.{i}.ffn.w1.weight"] = (f, c)
        shapes[f"h.{i}.ffn.w3.weight"] = (f, c)
        shapes[f"h.{i}.ffn.w2.weight"] = (c, f)
    shapes["ln_final.weight"] = (c,)
    shapes["lm_head.weight"] = (s["vocab_size"], c)
    return shapes


def draw_parameters(s):
    """Scaled like the course's initial values: norms about 1, the token table with deviation 1, the
    rest with sqrt(2 / (in + out))."""
    p = {}
    for name, shape in parameter_shapes(s).items():
        x = uniform(name, math.prod(shape))
        if len(shape) == 1:
            x = numpy.float32(1) + numpy.float32(0.5) * x
        elif name == "wte.weight":
            x = x * numpy.float32(math.sqrt(3))
        else:
            x = x * numpy.float32(math.sqrt(6 / sum(shape)))
        p[name] = torch.from_numpy(x.reshape(shape))
    return p


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


def rope_table(s, dtype):
    """cos, sin (T, D/2). Angles and functions in float64 for every type."""
    d = s["n_embd"] // s["n_head"]
    frequency = THETA ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.arange(s["block_size"], dtype=torch.float64)[:, None] * frequency
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate(x, cos, sin):
    """Rotates columns 2i and 2i+1 of (B, H, T, D) as a point of the plane."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((cos * a - sin * b, sin * a + cos * b), dim=-1).flatten(-2)


def attention(s, p, name, x, table):
    B, T, C = x.shape
    q, k, v = ((x @ p[f"{name}.{w}_proj.weight"].T).view(B, T, s["n_head"], -1).transpose(1, 2)
               for w in "qkv")
    scores = rotate(q, *table) @ rotate(k, *table).transpose(-2, -1) / math.sqrt(q.shape[-1])
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    y = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ v
    return y.transpose(1, 2).reshape(B, T, C) @ p[f"{name}.output_proj.weight"].T


def feed_forward(p, name, x):
    gate = x @ p[f"{name}.w1.weight"].T
    return (gate * torch.sigmoid(gate) * (x @ p[f"{name}.w3.weight"].T)) @ p[f"{name}.w2.weight"].T


def logits(s, p, tokens):
    x = p["wte.weight"][tokens]
    table = rope_table(s, x.dtype)
    for i in range(s["n_layer"]):
        x = x + attention(s, p, f"h.{i}.attn", rms_norm(x, p[f"h.{i}.ln_1.weight"]), table)
        x = x + feed_forward(p, f"h.{i}.ffn", rms_norm(x, p[f"h.{i}.ln_2.weight"]))
    return rms_norm(x, p["ln_final.weight"]) @ p["lm_head.weight"].T


def ids(s, name):
    n = s["batch_size"] * s["block_size"]
    x = (words(name, n) % numpy.uint32(s["vocab_size"])).astype(numpy.int64)
    return torch.from_numpy(x.reshape(s["batch_size"], s["block_size"]))


def measure(s, dtype):
    """Loss, logits of a few positions of the first sequence, and for each gradient the norm and the
    dot product with uniform(name + ".along")."""
    p = {k: x.to(dtype).requires_grad_() for k, x in draw_parameters(s).items()}
    y = logits(s, p, ids(s, "tokens"))
    loss = torch.nn.functional.cross_entropy(y.flatten(0, 1), ids(s, "targets").flatten())
    loss.backward()
    spots = [int(w) % (s["block_size"] * s["vocab_size"]) for w in words("logits", LOGITS)]
    gradients = {}
    for name, x in p.items():
        g = x.grad.flatten().to(torch.float64)
        along = torch.from_numpy(uniform(name + ".along", g.numel())).to(torch.float64)
        gradients[name] = [float(g.norm()), float(g @ along)]
        x.grad = None
    return float(loss), [[i, float(y[0].flatten()[i])] for i in spots], gradients


def distance(a, b):
    """The largest differences of two measurements in loss, logits and gradients, the last two
    relative to their norms."""
    scale = math.sqrt(sum(v * v for _, v in b[1]) / len(b[1]))
    return {
        "loss": abs(a[0] - b[0]) / abs(b[0]),
        "logits": max(abs(x - y) for (_, x), (_, y) in zip(a[1], b[1])) / scale,
        "gradients": max(max(abs(x - y) for x, y in zip(a[2][k], b[2][k])) / b[2][k][0]
                         for k in b[2]),
    }


def write(folder, shape):
    s = SHAPES[shape]
    exact, single = measure(s, torch.float64), measure(s, torch.float32)
    path = f"{folder}/{shape}.json"
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as f:
        json.dump({"script": "reference/cs336.py", "torch": torch.__version__, "rope_theta": THETA,
                   "eps": EPS, **s,
                   "loss": exact[0], "logits": exact[1], "gradients": exact[2]}, f, indent=1)
        f.write("\n")
    off = ", ".join(f"{k} {x:.1e}" for k, x in distance(single, exact).items())
    print(f"{path}: loss {exact[0]:.9f}; float32 differs: {off}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="reference/cs336")
    parser.add_argument("--shapes", default="tiny,small")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for each in options.shapes.split(","):
        write(options.out.rstrip("/"), each)
