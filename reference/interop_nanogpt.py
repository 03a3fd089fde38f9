#!/usr/bin/env python3
"""Trains one GPT by turns in PyTorch and Strobe, handing over nanoGPT's ckpt.pt.

Ten steps in PyTorch, whose checkpoint Strobe opens; ten steps in Strobe, whose export PyTorch opens
with weights_only=True; ten steps in PyTorch. The losses must be within 1e-5 of 30 steps in PyTorch
without interruption, on the same batches, in float32. Then the export of an unchanged import must
have the same bits. `make check-interop` runs it.
"""
import argparse
import math
import pathlib
import subprocess
import tempfile

import torch

import compare_training
import gpt_nn
import gpt_torch

LIMIT = 1e-5
STEPS = 10
SHAPES = [  # layers, heads, width, positions, tokens, bias
    dict(n_layer=2, n_head=2, n_embd=34, block_size=23, vocab_size=0, bias=True),
    dict(n_layer=3, n_head=5, n_embd=40, block_size=32, vocab_size=64, bias=False),
]
KEYS = dict(compare_training.KEYS, batch_size=3, learning_rate=3e-3, min_lr=3e-4, warmup_iters=5,
            lr_decay_iters=30, max_iters=30, grad_clip=0.5, dataset="text", data_dir="data")


class Trainer:
    """A GPT with nanoGPT's names and its two groups of parameters."""

    def __init__(self, keys, vocab):
        self.keys = keys
        self.shape = gpt_torch.Shape(keys["n_layer"], keys["n_head"], keys["n_embd"],
                                     keys["block_size"], vocab, keys["bias"])
        self.model = gpt_nn.GPT(self.shape, flash=False)
        named = [(name, p) for name, p in self.model.named_parameters()]
        self.names = [self.nanogpt_name(name) for name, _ in named]
        decayed = [p for _, p in named if p.dim() >= 2]
        others = [p for _, p in named if p.dim() < 2]
        self.opt = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": keys["weight_decay"]},
             {"params": others, "weight_decay": 0.0}],
            lr=keys["learning_rate"], betas=(keys["beta1"], keys["beta2"]))
        self.batches = compare_training.Batches(keys)

    @staticmethod
    def nanogpt_name(name):
        for part in (".c_fc.", ".c_proj."):
            if part in name and ".attn." not in name:
                name = name.replace(part, f".mlp{part}")
        return f"transformer.{name}"

    def draw(self, seed):
        self.model.load(gpt_torch.draw_parameters(
            self.shape, torch.Generator().manual_seed(seed), spread=0.1, perturb=0.1))

    def train(self, first, last):
        losses = []
        for step in range(first, last):
            for group in self.opt.param_groups:
                group["lr"] = compare_training.learning_rate(self.keys, step)
            rows = torch.from_numpy(self.batches(step))
            loss = self.model(rows[:, :-1], rows[:, 1:])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.keys["grad_clip"])
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            losses.append(float(loss.detach()))
        return losses

    def save(self, path, step):
        weights = dict(zip(self.names, (p for _, p in self.model.named_parameters())))
        weights["lm_head.weight"] = weights["transformer.wte.weight"]
        keys = self.keys
        torch.save({
            "model": {name: p.detach() for name, p in weights.items()},
            "optimizer": self.opt.state_dict(),
            "model_args": {k: keys[k] for k in ("n_layer", "n_head", "n_embd", "block_size",
                                                "bias")} | {"vocab_size": self.shape.vocab_size,
                                                            "dropout": 0.0},
            "iter_num": step, "best_val_loss": torch.tensor(3.5),
            "config": {"dataset": "text", "compile": True, "learning_rate": 3e-3, "init": None},
        }, path)

    def load(self, path):
        saved = torch.load(path, weights_only=True)
        assert saved["model_args"]["vocab_size"] == self.shape.vocab_size
        with torch.no_grad():
            for name, (_, p) in zip(self.names, self.model.named_parameters()):
                p.copy_(saved["model"][name])
        assert torch.equal(saved["model"]["lm_head.weight"],
                           saved["model"]["transformer.wte.weight"])
        self.opt.load_state_dict(saved["optimizer"])
        return saved["iter_num"]


def run(strobe, folder, *words):
    done = subprocess.run([strobe, *words], cwd=folder, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"strobe {' '.join(words)}: {done.stderr.decode()}")


def strobe_losses(strobe, folder, keys):
    words = [f"--{key}={str(value).lower() if isinstance(value, bool) else value}"
             for key, value in keys.items() if key in (
                 "batch_size", "learning_rate", "min_lr", "warmup_iters", "lr_decay_iters",
                 "grad_clip", "dataset", "data_dir")]
    run(strobe, folder, "train", *words, "--init_from=a.pt", f"--max_iters={2 * STEPS}",
        "--eval_iters=1", "--log_interval=1", "--device=cpu", "--dtype=float32", "--out_dir=run")
    import json
    lines = pathlib.Path(folder, "run/log.jsonl").read_text(encoding="utf-8").splitlines()
    return [x["loss"] for x in map(json.loads, lines) if x["kind"] == "step"]


def equal(x, y):
    """Two values of checkpoints: the same keys, the same bits."""
    if isinstance(x, torch.Tensor):
        return x.dtype == y.dtype and torch.equal(x, y)
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(equal(x[k], y[k]) for k in x)
    return x == y


def check(strobe, folder, shape):
    text = "".join(chr(97 + (i * i // 7 + i // 3) % 23) for i in range(4000))
    pathlib.Path(folder, "text").write_text(text, encoding="utf-8")
    run(strobe, folder, "data", "text", "--from=text")
    keys = dict(KEYS, **shape, data_dir=f"{folder}/data")
    vocab = shape["vocab_size"] or len(set(text))
    whole, first, last = (Trainer(keys, vocab) for _ in range(3))
    whole.draw(1)
    first.draw(1)
    expected = whole.train(0, 3 * STEPS)
    losses = first.train(0, STEPS)
    first.save(f"{folder}/a.pt", STEPS)
    run(strobe, folder, "export", "a.pt", "--to=nanogpt", "--out=same.pt")
    run(strobe, folder, "info", "a.pt")
    losses += strobe_losses(strobe, folder, keys)
    run(strobe, folder, "export", "run", "--to=nanogpt")
    step = last.load(f"{folder}/exports/run/ckpt.pt")
    losses += last.train(step, 3 * STEPS)
    apart = max(abs(x - y) for x, y in zip(losses, expected))
    a = torch.load(f"{folder}/a.pt", weights_only=True)
    b = torch.load(f"{folder}/same.pt", weights_only=True)
    same = all(equal(a[k], b[k]) for k in ("model", "iter_num")) and equal(
        a["optimizer"]["state"], b["optimizer"]["state"])
    print(f"{shape}: {len(losses)} losses, at most {apart:.1e} apart; "
          f"export {'same bits' if same else 'OTHER BITS'}")
    return apart <= LIMIT and same and len(losses) == 3 * STEPS and not math.isnan(apart)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strobe", default="./strobe")
    a = parser.parse_args()
    strobe = str(pathlib.Path(a.strobe).resolve())
    right = True
    for shape in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            right = check(strobe, folder, shape) and right
    raise SystemExit(not right)


if __name__ == "__main__":
    main()
