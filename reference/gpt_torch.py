"""A GPT-2 in plain PyTorch, written as a reference for correctness, not for speed.

Pre-norm blocks, packed q|k|v, output head tied to the token embedding. Weights have Hugging Face's
GPT-2 names and layout: the weight of a linear layer is stored (in, out), so y = x @ w + b.
Works with torch 1.13 and later, in float32 or float64. Never linked or imported by the program.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass
class Shape:
    n_layer: int
    n_head: int
    n_embd: int
    block_size: int
    vocab_size: int
    bias: bool = True
    gelu: str = "erf"  # or "tanh"
    dropout: float = 0.0


def parameter_shapes(s):
    """name -> shape, in the order of the model; biases only if the model has them."""
    c = s.n_embd
    shapes = {"wte.weight": (s.vocab_size, c), "wpe.weight": (s.block_size, c)}

    def norm(name):
        shapes[name + ".weight"] = (c,)
        if s.bias:
            shapes[name + ".bias"] = (c,)

    def linear(name, n_in, n_out):
        shapes[name + ".weight"] = (n_in, n_out)
        if s.bias:
            shapes[name + ".bias"] = (n_out,)

    for i in range(s.n_layer):
        norm(f"h.{i}.ln_1")
        linear(f"h.{i}.attn.c_attn", c, 3 * c)
        linear(f"h.{i}.attn.c_proj", c, c)
        norm(f"h.{i}.ln_2")
        linear(f"h.{i}.mlp.c_fc", c, 4 * c)
        linear(f"h.{i}.mlp.c_proj", 4 * c, c)
    norm("ln_f")
    return shapes


def draw_parameters(s, generator, spread=0.02, perturb=0.0):
    """Normal weights, with residual projections smaller by 1/sqrt(2 n_layer). With `perturb` norm
    weights and biases differ from 1 and 0, so that no gradient is hidden behind a neutral value."""
    p = {}
    for name, shape in parameter_shapes(s).items():
        x = torch.randn(shape, generator=generator)
        if name.endswith("c_proj.weight"):
            x = x * (spread / math.sqrt(2 * s.n_layer))
        elif len(shape) == 2:
            x = x * spread
        elif name.endswith(".bias"):
            x = x * perturb
        else:
            x = 1 + x * perturb
        p[name] = x
    return p


def _norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p.get(name + ".bias"), 1e-5)


def _linear(p, name, x):
    y = x @ p[name + ".weight"]
    b = p.get(name + ".bias")
    return y if b is None else y + b


def _heads(x, n_head):
    b, t, c = x.shape
    return x.reshape(b, t, n_head, c // n_head).permute(0, 2, 1, 3)  # (B,H,T,D)


def attention(s, p, name, x, flash=False):
    """`flash` uses torch's scaled_dot_product_attention, which torch < 2 does not have."""
    b, t, c = x.shape
    q, k, v = (_heads(part, s.n_head) for part in _linear(p, name + ".c_attn", x).split(c, dim=-1))
    if flash:
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=s.dropout, is_causal=True)
    else:
        score = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(c // s.n_head))  # (B,H,T,T)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        prob = score.masked_fill(future, -math.inf).softmax(dim=-1)
        y = F.dropout(prob, s.dropout) @ v
    y = y.permute(0, 2, 1, 3).reshape(b, t, c)
    return F.dropout(_linear(p, name + ".c_proj", y), s.dropout)


def mlp(s, p, name, x):
    h = F.gelu(_linear(p, name + ".c_fc", x), approximate="tanh" if s.gelu == "tanh" else "none")
    return F.dropout(_linear(p, name + ".c_proj", h), s.dropout)


def logits(s, p, ids, flash=False):
    """ids (B,T) -> (B,T,V)"""
    x = F.dropout(p["wte.weight"][ids] + p["wpe.weight"][: ids.shape[1]], s.dropout)
    for i in range(s.n_layer):
        x = x + attention(s, p, f"h.{i}.attn", _norm(p, f"h.{i}.ln_1", x), flash)
        x = x + mlp(s, p, f"h.{i}.mlp", _norm(p, f"h.{i}.ln_2", x))
    return _norm(p, "ln_f", x) @ p["wte.weight"].t()


def loss(s, p, ids, targets, flash=False):
    """Mean cross-entropy over all positions."""
    return F.cross_entropy(logits(s, p, ids, flash).reshape(-1, s.vocab_size), targets.reshape(-1))


def optimizer(p, lr, betas, weight_decay, eps=1e-8, **more):
    """AdamW; weight decay acts on tensors of two dimensions or more."""
    groups = [
        {"params": [x for x in p.values() if x.dim() >= 2], "weight_decay": weight_decay},
        {"params": [x for x in p.values() if x.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps, **more)
