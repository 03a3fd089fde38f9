#!/usr/bin/python3
"""Writes tests/golden/gpt_<erf|tanh>_<bias|nobias>.safetensors: ten training steps of a tiny GPT.

usage: golden.py [FOLDER]
Everything is computed in float64 from weights that are exact in float32; README.md describes the
files. The same steps are then run in float32, to show the size of rounding errors.
"""
import json
import struct
import sys

import numpy
import torch

import gpt_torch

SEED = 1337
STEPS, BATCH = 10, 4
LEARNING_RATES = [0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01, 0.01, 0.01, 0.008, 0.006]
BETAS, EPS, WEIGHT_DECAY, GRAD_CLIP = (0.9, 0.95), 1e-8, 0.1, 1.0
SHAPE = dict(n_layer=2, n_head=2, n_embd=20, block_size=12, vocab_size=29)
SPREAD, PERTURB = 0.2, 0.1


def write_safetensors(path, tensors, metadata):
    """File layout: header length (8 bytes, little endian), header (JSON), data."""
    names = {"float32": "F32", "float64": "F64", "int32": "I32"}
    header, blob = {"__metadata__": metadata}, b""
    for name, x in tensors.items():
        data = x.tobytes()
        span = [len(blob), len(blob) + len(data)]
        header[name] = {"dtype": names[str(x.dtype)], "shape": list(x.shape), "data_offsets": span}
        blob += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def batches(generator):
    """Learnable tokens: sometimes the previous token plus a constant, mostly random."""
    v, t = SHAPE["vocab_size"], SHAPE["block_size"]
    start = torch.randint(v, (STEPS, BATCH, 1), generator=generator)
    ids = (start + 3 * torch.arange(t + 1)) % v
    noise = torch.randint(v, ids.shape, generator=generator)
    ids = torch.where(torch.rand(ids.shape, generator=generator) < 0.8, noise, ids)
    return ids[..., :-1], ids[..., 1:]


def train(shape, weights, inputs, targets, dtype):
    p = {k: x.to(dtype, copy=True).requires_grad_() for k, x in weights.items()}
    opt = gpt_torch.optimizer(p, LEARNING_RATES[0], BETAS, WEIGHT_DECAY, EPS)
    losses, norms, first = [], [], None
    for i in range(STEPS):
        for group in opt.param_groups:
            group["lr"] = LEARNING_RATES[i]
        opt.zero_grad()
        loss = gpt_torch.loss(shape, p, inputs[i], targets[i])
        loss.backward()
        if first is None:
            first = {k: x.grad.clone() for k, x in p.items()}
        # The factor of gradient clipping: min(1, GRAD_CLIP / (norm + 1e-6)).
        norm = torch.nn.utils.clip_grad_norm_(p.values(), GRAD_CLIP)
        opt.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, first, {k: x.detach() for k, x in p.items()}


def variant(folder, gelu, bias):
    shape = gpt_torch.Shape(gelu=gelu, bias=bias, **SHAPE)
    generator = torch.Generator().manual_seed(SEED)
    inputs, targets = batches(generator)
    weights = gpt_torch.draw_parameters(shape, generator, SPREAD, PERTURB)
    losses, norms, grads, final = train(shape, weights, inputs, targets, torch.float64)
    losses32, _, grads32, final32 = train(shape, weights, inputs, targets, torch.float32)

    clipped = sum(n > GRAD_CLIP for n in norms)
    assert 0 < clipped < STEPS, (f"clipping is active in {clipped} of {STEPS} steps: "
                                 "choose other parameters")

    tensors = {"w." + k: x.numpy() for k, x in weights.items()}
    tensors["inputs"] = inputs.numpy().astype("int32")
    tensors["targets"] = targets.numpy().astype("int32")
    tensors["lr"] = numpy.array(LEARNING_RATES, dtype="float64")
    tensors["losses"] = numpy.array(losses, dtype="float64")
    tensors["losses_float32"] = numpy.array(losses32, dtype="float64")
    tensors["grad_norms"] = numpy.array(norms, dtype="float64")
    tensors.update({"g." + k: x.numpy().astype("float32") for k, x in grads.items()})
    tensors.update({"f." + k: x.numpy().astype("float32") for k, x in final.items()})
    # 64-bit values first, so that every tensor starts at a multiple of its element size.
    tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].itemsize))
    metadata = {
        "script": "reference/golden.py", "seed": SEED, "torch": torch.__version__, "steps": STEPS,
        "batch_size": BATCH, **SHAPE, "gelu": gelu, "bias": str(bias).lower(), "dropout": 0.0,
        "beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS, "weight_decay": WEIGHT_DECAY,
        "grad_clip": GRAD_CLIP,
    }
    path = f"{folder}/gpt_{gelu}_{'bias' if bias else 'nobias'}.safetensors"
    write_safetensors(path, tensors, {k: str(x) for k, x in metadata.items()})

    def distance(a, b, skip=""):
        return max(float((a[k] - b[k]).norm() / b[k].norm()) for k in a if not (skip and skip in k))

    print(f"{path}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, norms "
          + " ".join(f"{n:.3f}" for n in norms) + f", {clipped} clipped")
    print(f"  float32 differs: losses {max(abs(a - b) for a, b in zip(losses, losses32)):.1e}, "
          f"gradients {distance(grads32, grads, 'c_attn.bias'):.1e}, "
          f"weights {distance(final32, final, 'c_attn.bias'):.1e} (without c_attn.bias), "
          f"{distance(final32, final):.1e} (all)")


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = sys.argv[1] if len(sys.argv) > 1 else "tests/golden"
    for g in ("erf", "tanh"):
        for b in (True, False):
            variant(target, g, b)
