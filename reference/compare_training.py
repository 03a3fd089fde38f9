#!/usr/bin/env python3
"""Trains one GPT with Strobe and with PyTorch: the same initial weights, batches, learning rates.

usage: compare_training.py CONFIG [--strobe=./strobe] [--torch=PYTHON] [--rungs=flash,graph]
       [--device=cuda] [--work=FOLDER] [--json=FILE] [--key=value ...]
PyTorch draws nanoGPT's initial weights, and both begin with them (init_from=FOLDER). Strobe's
batches follow from the seed, so PyTorch takes the same tokens. The losses are printed side by side,
with tokens per second from the first step to the last. PyTorch's runs are rungs of compare_gpu.py;
compilation and capture are not timed. Differences are those of Strobe and the first rung. Rungs
with a padded vocabulary train another model: PyTorch has the padding in the softmax, where it takes
part in learning, Strobe has not; name one without padding first.
"""
import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy

import strobe_config

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {**strobe_config.DEFAULTS, "data_dir": "data", "dataset": "", "max_iters": 1000,
        "min_lr": 6e-5, "warmup_iters": 2000, "lr_decay_iters": 600000, "decay_lr": True,
        "dtype": "auto"}


# --- batches and learning rates as Strobe has them ------------------------------------------------

def philox_words(seed, stream, sequence, block):
    """The first two words of blocks of Philox 4x32-10, as uint64 (src/base/rng.c)."""
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    c = [block & low, block >> shift, numpy.full_like(block, sequence), numpy.zeros_like(block)]
    k0, k1 = seed, stream
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ numpy.uint64(k0), p1 & low,
             (p0 >> shift) ^ c[3] ^ numpy.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0], c[1]


def first_tokens(seed, rows, positions):
    """Where each row of the training batches begins: 64 random bits scaled by `positions`."""
    low, high = philox_words(seed, 2, 0, rows)
    return [(int(h) << 32 | int(l)) * positions >> 64 for l, h in zip(low, high)]


class Batches:
    def __init__(self, keys):
        folder = pathlib.Path(keys["data_dir"], keys["dataset"])
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        wide = meta.get("vocab_size", 0) > 65536
        self.tokens = numpy.memmap(folder / "train.bin", numpy.uint32 if wide else numpy.uint16)
        self.B, self.T = keys["batch_size"], keys["block_size"]
        rows = numpy.arange(keys["max_iters"] * self.B, dtype=numpy.uint64)
        self.first = first_tokens(keys["seed"], rows, len(self.tokens) - self.T)

    def __call__(self, step):
        """(B,T+1)"""
        first = self.first[step * self.B:(step + 1) * self.B]
        return numpy.stack([self.tokens[i:i + self.T + 1] for i in first]).astype(numpy.int64)


def learning_rate(keys, step):
    if not keys["decay_lr"]:
        return keys["learning_rate"]
    if step < keys["warmup_iters"]:
        return keys["learning_rate"] * (step + 1) / (keys["warmup_iters"] + 1)
    if step >= keys["lr_decay_iters"]:
        return keys["min_lr"]
    share = (step - keys["warmup_iters"]) / (keys["lr_decay_iters"] - keys["warmup_iters"])
    return keys["min_lr"] + 0.5 * (1 + math.cos(math.pi * share)) * (
        keys["learning_rate"] - keys["min_lr"])


def read_keys(config, overrides):
    """strobe_config's keys and those above."""
    strobe_config.DEFAULTS.update(KEYS)
    return strobe_config.read(config, overrides)


# --- the initial weights --------------------------------------------------------------------------

def shape_of(keys, vocab):
    import gpt_torch
    return gpt_torch.Shape(keys["n_layer"], keys["n_head"], keys["n_embd"], keys["block_size"],
                           vocab, True, keys["gelu"])


def draw_weights(keys, vocab):
    import torch
    import gpt_torch
    return gpt_torch.draw_parameters(shape_of(keys, vocab),
                                     torch.Generator().manual_seed(keys["seed"]))


def write_folder(folder, keys, vocab):
    """A folder of Hugging Face with the initial weights."""
    weights, header, at = draw_weights(keys, vocab), {"__metadata__": {"format": "pt"}}, 0
    for name, x in weights.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape),
                        "data_offsets": [at, at + 4 * x.numel()]}
        at += 4 * x.numel()
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in weights.values():
            f.write(x.contiguous().numpy().tobytes())
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": keys["n_layer"], "n_head": keys["n_head"],
        "n_embd": keys["n_embd"], "n_positions": keys["block_size"], "vocab_size": vocab,
        "activation_function": "gelu_new" if keys["gelu"] == "tanh" else "gelu"}),
        encoding="utf-8")


# --- PyTorch --------------------------------------------------------------------------------------

def train_torch(rung, config, vocab, device, overrides):
    """Prints the losses before each update, and the seconds of all steps."""
    import torch
    import gpu_peers
    import gpu_steps
    keys = read_keys(config, overrides)
    how = dict(gpu_peers.RUNGS[rung].torch)
    if device == "cpu":
        how.update(compile=None, graph=False, fused=False, dtype="float32", tf32=False)
    keys["bias"] = True
    t = gpu_steps.Training(how, {**keys, "pad_vocab": str(how["pad_vocab"])}, vocab, device)
    model = getattr(t.model, "_orig_mod", t.model)
    weights = draw_weights(keys, vocab)
    batches = Batches(keys)

    def begin():
        """The initial weights, and an optimizer that has done nothing."""
        padded = dict(weights)
        rows = model.wte.weight.shape[0] - vocab
        padded["wte.weight"] = torch.cat([weights["wte.weight"],
                                          torch.zeros(rows, keys["n_embd"])])
        model.load({name: x.to(device) for name, x in padded.items()})
        for state in t.opt.state.values():
            for x in state.values():
                x.zero_()

    for group in t.opt.param_groups:
        group["lr"] = torch.tensor(0.0, device=device) if t.captures else 0.0
    begin()
    t.answer(3 if not t.captures else 4)
    if t.captures and not t.graph:
        t.answer(1)
    begin()
    losses = torch.zeros(keys["max_iters"], device=device)
    staged = [torch.empty(keys["batch_size"], keys["block_size"] + 1, dtype=torch.int64,
                          pin_memory=device == "cuda") for _ in range(4)]
    events = [torch.cuda.Event() for _ in staged] if device == "cuda" else None
    now = t.now
    start = now()
    for step in range(keys["max_iters"]):
        slot = step % len(staged)
        if events and step >= len(staged):
            events[slot].synchronize()
        staged[slot].copy_(torch.from_numpy(batches(step)))
        for to, source in zip(t.batch, (staged[slot][:, :-1], staged[slot][:, 1:])):
            to.copy_(source, non_blocking=True)
        if events:
            events[slot].record()
        lr = learning_rate(keys, step)
        for group in t.opt.param_groups:
            if t.captures:
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        if t.graph:
            t.graph.replay()
        else:
            t.loss = None
            loss = t.forward()
            loss.backward()
            t.update()
            t.loss = loss.detach()
        losses[step] = t.loss
    seconds = now() - start
    print(json.dumps({"losses": losses.tolist(), "seconds": seconds,
                      "torch": torch.__version__,
                      "device": torch.cuda.get_device_name() if device == "cuda" else device}))


# --- both -----------------------------------------------------------------------------------------

def train_strobe(a, folder, keys):
    out = f"{a.work}/strobe"
    start = time.monotonic()
    subprocess.run([a.strobe, "train", a.config, f"--init_from={folder}", f"--out_dir={out}",
                    "--overwrite", "--log_interval=1", f"--device={a.device}", *a.overrides],
                   check=True)
    wall = time.monotonic() - start
    lines = pathlib.Path(out, "log.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [x["loss"] for x in map(json.loads, lines) if x["kind"] == "step"]
    summary = json.loads(pathlib.Path(out, "summary.json").read_text(encoding="utf-8"))
    if len(losses) != keys["max_iters"]:
        raise SystemExit(f"{out}/log.jsonl has {len(losses)} steps, not {keys['max_iters']}")
    return {"losses": losses, "seconds": summary["wall_s"]["steps"], "wall_s": summary["wall_s"],
            "process_s": wall}


def run_torch(a, rung):
    command = [a.torch, str(HERE / "compare_training.py"), a.config, f"--run={rung}",
               f"--vocab={a.vocab}", f"--device={a.device}", *a.overrides]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return None
    return json.loads(done.stdout.decode().splitlines()[-1])


def print_table(runs, keys):
    tokens = keys["batch_size"] * keys["block_size"] * keys["max_iters"]
    names = list(runs)
    print("\n| step | " + " | ".join(names) + " | difference |")
    print("|---" * (len(names) + 2) + "|")
    every = max(1, keys["max_iters"] // 10)
    for step in sorted({0, *range(every - 1, keys["max_iters"], every)}):
        losses = [runs[name]["losses"][step] for name in names]
        apart = losses[0] - losses[1] if len(losses) > 1 else math.nan
        print(f"| {step + 1} | " + " | ".join(f"{x:.4f}" for x in losses) + f" | {apart:+.4f} |")
    print("| seconds of steps | " + " | ".join(f"{runs[n]['seconds']:.2f}" for n in names) + " | |")
    speeds = [tokens / runs[n]["seconds"] for n in names]
    print("| tokens/s | " + " | ".join(f"{x:,.0f}" for x in speeds) + " | |")
    best = max(speeds[1:], default=0)
    if best:
        print(f"\nStrobe's tokens/s are {speeds[0] / best:.3f} times those of PyTorch's best run.")
    wall = runs["Strobe"]["wall_s"]
    useful = wall["steps"] + wall["evaluation"]
    print(f"Strobe's wall time is {sum(wall.values()):.2f} s, {sum(wall.values()) / useful:.4f} "
          f"times its steps and evaluations: {json.dumps(wall)}; the process took "
          f"{runs['Strobe']['process_s']:.2f} s.")


def main():
    p = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("config")
    p.add_argument("--strobe", default=str(HERE.parent / "strobe"))
    p.add_argument("--torch", default=sys.executable, help="Python with PyTorch")
    p.add_argument("--rungs", default="flash,graph", help="PyTorch's, as in compare_gpu.py")
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--vocab", type=int, default=50257)
    p.add_argument("--work", help="folder for weights and the run (a temporary one)")
    p.add_argument("--json", help="also write all losses and times to this file")
    p.add_argument("--run", help=argparse.SUPPRESS)
    a, a.overrides = p.parse_known_args()
    known = [x for x in a.overrides if x.lstrip("-").partition("=")[0] in KEYS]
    if a.run:
        return train_torch(a.run, a.config, a.vocab, a.device, known)
    keys = read_keys(a.config, known)
    with tempfile.TemporaryDirectory() as temporary:
        a.work = a.work or temporary
        folder = pathlib.Path(a.work, "weights")
        write_folder(folder, keys, a.vocab)
        runs = {"Strobe": train_strobe(a, folder, keys)}
        a.overrides = known
        for rung in a.rungs.split(","):
            found = run_torch(a, rung)
            if found:
                runs[f"PyTorch, {rung}"] = found
            else:
                print(f"PyTorch, {rung}: failed", file=sys.stderr)
        print_table(runs, keys)
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps(runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.exit(main())
