#!/usr/bin/env python3
"""Compares Strobe's GPT-2 with Hugging Face's transformers, in both directions.

Models of odd sizes with random weights are saved by transformers, in float32, bfloat16 and
float16, in one file, in shards, and as pytorch_model.bin. Strobe opens each: its logits must be
within 1e-5 of transformers' own, as a share of the largest. transformers opens what Strobe
exports: the same bits as its own float32, and the same token ids by the tokenizer in the folder.
`make check-interop` runs it.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy
import torch
import transformers

LIMIT = 1e-5
# layers, heads, width, positions, tokens, activation, type, size of a shard
MODELS = [
    (1, 1, 1, 1, 2, "gelu_new", "float32", "1GB"),
    (3, 3, 33, 37, 61, "gelu_new", "float32", "1GB"),
    (2, 5, 85, 129, 1031, "gelu", "float32", "100KB"),
    (5, 2, 46, 64, 300, "gelu_new", "bfloat16", "1GB"),
    (2, 7, 91, 33, 127, "gelu", "float16", "40KB"),
    (2, 4, 36, 31, 77, "gelu_new", "float32", None),  # pytorch_model.bin
    (4, 12, 192, 96, 5003, "gelu_pytorch_tanh", "float32", "2MB"),
]


def make(folder, model, seed):
    layers, heads, width, positions, tokens, activation, dtype, shard = model
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        n_layer=layers, n_head=heads, n_embd=width, n_positions=positions, vocab_size=tokens,
        activation_function=activation, bos_token_id=0, eos_token_id=0)
    gpt = transformers.GPT2LMHeadModel(config).eval()
    for parameter in gpt.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    gpt.to(getattr(torch, dtype))
    if shard:
        gpt.save_pretrained(folder, max_shard_size=shard)
    else:
        config.save_pretrained(folder)
        torch.save(gpt.state_dict(), f"{folder}/pytorch_model.bin")


def open_float32(folder):
    gpt, problems = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True)
    wrong = {key: value for key, value in problems.items() if value}
    if wrong:
        raise SystemExit(f"{folder}: {wrong}")
    return gpt.eval()


def compare_logits(strobe, folder, gpt, ids):
    file = pathlib.Path(folder) / "logits.npy"
    subprocess.run([strobe, "eval", folder, "--ids=-", f"--logits={file}", "--device=cpu"],
                   input=" ".join(map(str, ids)).encode(), check=True,
                   stderr=subprocess.DEVNULL)
    with torch.no_grad():
        expected = gpt(torch.tensor([ids])).logits[0].double().numpy()
    found = numpy.load(file).astype(float)
    file.unlink()
    return abs(found - expected).max() / abs(expected).max()


def compare_bits(before, after):
    a, b = before.state_dict(), after.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def check_model(strobe, folder, model, seed):
    there, back = f"{folder}/there", f"{folder}/back"
    make(there, model, seed)
    gpt = open_float32(there)
    positions, tokens = model[3], model[4]
    ids = numpy.random.default_rng(seed).integers(0, tokens, positions).tolist()
    error = compare_logits(strobe, there, gpt, ids)
    subprocess.run([strobe, "export", there, "--to=hf", f"--out={back}"], check=True,
                   stderr=subprocess.DEVNULL)
    same = compare_bits(gpt, open_float32(back))
    shards = len([name for name in os.listdir(there) if name.endswith((".safetensors", ".bin"))])
    print(f"{str(model[:5]):26} {model[5]:18} {model[6]:9} {shards:2} file{'s' * (shards > 1):1}  "
          f"logits {error:.1e}  export {'same bits' if same else 'OTHER BITS'}")
    return error <= LIMIT and same


def check_tokenizer(strobe, folder, tokenizer):
    """A model trained by Strobe on text with byte pairs, and one on characters."""
    text = "the dog \u00e9\u00e9\u00e9 and the cat\n  don't 123 " * 90
    pathlib.Path(folder, "text").write_text(text, encoding="utf-8")
    right = True
    for kind in (["--tokenizer", str(pathlib.Path(tokenizer).resolve())], []):
        name = "pairs" if kind else "characters"
        quiet = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL}
        subprocess.run([strobe, "data", name, "--from=text", *kind], **quiet)
        subprocess.run([strobe, "train", f"--dataset={name}", "--n_layer=1", "--n_head=1",
                        "--n_embd=16", "--block_size=8", "--batch_size=2", "--max_iters=2",
                        "--eval_iters=1", "--device=cpu", f"--out_dir={name}"], **quiet)
        subprocess.run([strobe, "export", name, "--to=hf", f"--out={name}-hf"], **quiet)
        other = transformers.AutoTokenizer.from_pretrained(f"{folder}/{name}-hf")
        ids = numpy.fromfile(f"{folder}/data/{name}/train.bin", dtype=numpy.uint16).tolist()
        begin = other.decode(ids, clean_up_tokenization_spaces=False)
        same = text.startswith(begin) and other(begin)["input_ids"] == ids
        print(f"tokenizer of {name}: {len(ids)} ids, {'the same' if same else 'OTHERS'}")
        right = right and same
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strobe", default="./strobe")
    parser.add_argument("--tokenizer", default="tests/tokenizer")
    args = parser.parse_args()
    strobe = str(pathlib.Path(args.strobe).resolve())
    transformers.utils.logging.disable_progress_bar()
    right = True
    for seed, model in enumerate(MODELS):
        with tempfile.TemporaryDirectory() as folder:
            right = check_model(strobe, folder, model, seed) and right
    with tempfile.TemporaryDirectory() as folder:
        right = check_tokenizer(strobe, folder, args.tokenizer) and right
    raise SystemExit(not right)


if __name__ == "__main__":
    main()
