"""The same GPT as gpt_torch.py, written in the usual PyTorch style, for timing comparisons.

torch.nn modules with weights (out, in), fused operators where PyTorch has them, attention either
with its T x T matrix ("slow") or with scaled_dot_product_attention ("flash"). `load` accepts the
weights of gpt_torch.draw_parameters, so that both can be shown to compute the same loss.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    """LayerNorm without bias: nn.LayerNorm has no `bias` argument before torch 2.1."""

    def __init__(self, s):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(s.n_embd))
        self.bias = nn.Parameter(torch.zeros(s.n_embd)) if s.bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, s, flash):
        super().__init__()
        self.n_head, self.p, self.flash = s.n_head, s.dropout, flash
        self.c_attn = nn.Linear(s.n_embd, 3 * s.n_embd, bias=s.bias)
        self.c_proj = nn.Linear(s.n_embd, s.n_embd, bias=s.bias)
        if not flash:
            future = torch.ones(s.block_size, s.block_size, dtype=torch.bool).triu(1)
            self.register_buffer("future", future, persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
                   for part in self.c_attn(x).split(c, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=True)
        else:
            score = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            score = score.masked_fill(self.future[:t, :t], -math.inf)
            y = F.dropout(F.softmax(score, dim=-1), self.p) @ v
        y = y.transpose(1, 2).contiguous().view(b, t, c)
        return F.dropout(self.c_proj(y), self.p)


class Block(nn.Module):
    def __init__(self, s, flash):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = Norm(s), Attention(s, flash), Norm(s)
        self.c_fc = nn.Linear(s.n_embd, 4 * s.n_embd, bias=s.bias)
        self.c_proj = nn.Linear(4 * s.n_embd, s.n_embd, bias=s.bias)
        self.gelu, self.p = "tanh" if s.gelu == "tanh" else "none", s.dropout

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        h = F.gelu(self.c_fc(self.ln_2(x)), approximate=self.gelu)
        return x + F.dropout(self.c_proj(h), self.p)


class GPT(nn.Module):
    """s: gpt_torch.Shape. Called with ids and targets (B,T); returns the mean cross-entropy."""

    def __init__(self, s, flash):
        super().__init__()
        self.p = s.dropout
        self.wte = nn.Embedding(s.vocab_size, s.n_embd)
        self.wpe = nn.Embedding(s.block_size, s.n_embd)
        self.h = nn.ModuleList(Block(s, flash) for _ in range(s.n_layer))
        self.ln_f = Norm(s)
        self.head = nn.Linear(s.n_embd, s.vocab_size, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids, targets):
        position = torch.arange(ids.shape[1], device=ids.device)
        x = F.dropout(self.wte(ids) + self.wpe(position), self.p)
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))

    @torch.no_grad()
    def load(self, weights):
        """Weights with Hugging Face's GPT-2 names; linear weights are (in, out)."""
        own = dict(self.named_parameters())
        for name, x in weights.items():
            p = own[name.replace(".mlp.", ".")]
            p.copy_(x if p.shape == x.shape and "c_" not in name else x.t() if x.dim() == 2 else x)
