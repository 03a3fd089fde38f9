#!/usr/bin/python3
"""Ranks with a GPU each: Strobe and PyTorch (DDP, ZeRO-1, FSDP2) in turn, in one call.

usage: compare_ddp.py [CONFIG] [--strobe=./strobe] [--gpus=N] [--batch=16] [--rounds=3]
       [--modes=one,ddp,ddp_bf16,zero1,fsdp2]
       [--strobe-options="--bucket_mb=100"] [--key=value ...]
The model is that of CONFIG (configs/gpt2_124m.conf; configs/cs336_SIZE.conf), with --batch
sequences for each GPU. PyTorch: autocast to bf16, flash attention, torch.compile, fused AdamW. Each
round gives every contender a turn, in alternating order, as a program of its own: a turn ends with
the median of its steps, and the table has the median over the rounds with the least and the
largest. Memory is what the first GPU has in use. A contender that fails is listed with its reason.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import strobe_config

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP, STEPS, TIMES = 15, 10, 5  # steps before; steps of a time; times of a turn
# name -> what Strobe calls it, for as many GPUs. ddp_bf16: gradients are summed in bf16.
MODES = {"one": "", "ddp": "--zero=0", "ddp_bf16": "--reduce_dtype=bfloat16", "zero1": "--zero=1",
         "fsdp2": "--zero=3"}


def arguments():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    a.add_argument("config", nargs="?",
                   default=os.path.join(HERE, "..", "configs", "gpt2_124m.conf"))
    a.add_argument("--strobe", default=os.path.join(HERE, "..", "strobe"))
    a.add_argument("--strobe-options", default="", help="further options of its ranks")
    a.add_argument("--gpus", type=int, default=0, help="0: all")
    a.add_argument("--batch", type=int, default=16, help="sequences for each GPU (%(default)s)")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--modes", default=",".join(MODES))
    a.add_argument("--limit", type=float, default=180, help="seconds for a turn (%(default)s)")
    a.add_argument("--dry", action="store_true", help="print the commands, run nothing")
    a.add_argument("--turn", help=argparse.SUPPRESS)  # of PyTorch: MODE, in a program of its own
    a, a.overrides = a.parse_known_args()
    unknown = set(a.modes.split(",")) - set(MODES)
    if unknown:
        raise ValueError(f"--modes has {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    a.strobe = os.path.abspath(a.strobe)
    a.keys = strobe_config.read(a.config, a.overrides)
    return a


def is_cs336(path):
    with open(path, encoding="utf-8") as f:
        return any(line.replace(" ", "").startswith("model=cs336") for line in f)


# --- PyTorch -------------------------------------------------------------------------------------


def build(a):
    """The model on this GPU, its blocks, and the vocabulary."""
    import torch
    k = a.keys
    if is_cs336(a.config):
        import cs336_steps
        torch.manual_seed(1)
        with torch.device("cuda"):
            model = cs336_steps.Model(k, True)
        return model, model.blocks, k["vocab_size"]
    import gpt_nn
    import gpt_torch
    vocab = k["vocab_size"] or 50257
    s = gpt_torch.Shape(k["n_layer"], k["n_head"], k["n_embd"], k["block_size"],
                        (vocab + 63) // 64 * 64, k["bias"], k["gelu"], k["dropout"])
    model = gpt_nn.GPT(s, True)
    model.load(gpt_torch.draw_parameters(s, torch.Generator().manual_seed(1)))
    return model.cuda(), model.h, vocab


def shared(mode, model, blocks, rank):
    """The model as the ranks share it; only FSDP2 changes the parameters themselves."""
    import torch
    if mode == "fsdp2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    net = torch.compile(model)
    if mode in ("ddp", "ddp_bf16", "zero1"):
        net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[rank],
                                                        gradient_as_bucket_view=True)
    if mode == "ddp_bf16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
        net.register_comm_hook(None, bf16_compress_hook)
    return net


def optimizer(mode, a, model):
    import torch
    k = a.keys
    options = {"lr": 1e-4, "betas": (k["beta1"], k["beta2"]), "fused": True}
    if mode == "zero1":  # takes one group alone
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW,
                                       weight_decay=k["weight_decay"], **options)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": k["weight_decay"]},
                              {"params": vectors, "weight_decay": 0.0}], **options)


def torch_rank(rank, a, mode, port, file):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    torch.set_float32_matmul_precision("high")
    if mode != "one":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("nccl", rank=rank, world_size=a.gpus,
                                device_id=torch.device("cuda", rank))
    model, blocks, vocab = build(a)
    net = shared(mode, model, blocks, rank)
    opt = optimizer(mode, a, model)
    shape = (a.batch, a.keys["block_size"])
    x, y = (torch.randint(vocab, shape, device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            loss = net(x, y)
        loss.backward()
        if a.keys["grad_clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), a.keys["grad_clip"])
        opt.step()
        opt.zero_grad(set_to_none=True)

    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(TIMES):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / STEPS * 1e3)
    left, total = torch.cuda.mem_get_info()
    if rank == 0:
        version = ".".join(map(str, torch.cuda.nccl.version()))
        with open(file, "w", encoding="utf-8") as f:
            json.dump({"ms": statistics.median(times), "memory": total - left,
                       "about": f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
                                f"NCCL {version}"}, f)
    if mode != "one":
        dist.destroy_process_group()


def torch_turn_here(a):
    """In a program of its own: prints a line of JSON."""
    import socket
    import torch.multiprocessing
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "turn.json")
        torch.multiprocessing.spawn(torch_rank, (a, a.turn, port, file),
                                    nprocs=1 if a.turn == "one" else a.gpus)
        with open(file, encoding="utf-8") as f:
            print(f.read(), flush=True)


def torch_words(a, mode):
    return [sys.executable, os.path.abspath(__file__), a.config, f"--turn={mode}",
            f"--gpus={a.gpus}", f"--batch={a.batch}", *a.overrides]


def last_line(text):
    lines = [x for x in text.strip().splitlines() if x.strip()]
    return lines[-1] if lines else "it ended and printed nothing"


def run(words, seconds):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds)
    if done.returncode:
        raise ChildProcessError(last_line(done.stderr))
    return done.stdout


def torch_turn(a, mode, _folder):
    return json.loads(last_line(run(torch_words(a, mode), a.limit)))


# --- Strobe --------------------------------------------------------------------------------------


def strobe_words(a, mode, folder):
    ranks = 1 if mode == "one" else a.gpus
    words = [a.strobe, "train", a.config, f"--data_dir={folder}/data", "--dataset=words",
             f"--out_dir={folder}/run", "--overwrite", f"--max_iters={WARM_UP + STEPS * TIMES}",
             "--log_interval=1", "--eval_interval=100000", "--eval_iters=1", "--num_samples=1",
             "--max_new_tokens=1",
             "--dtype=bfloat16", "--device=cuda", f"--batch_size={a.batch}",
             f"--gradient_accumulation_steps={ranks}", *a.overrides]
    if not is_cs336(a.config):
        words += [f"--vocab_size={a.keys['vocab_size'] or 50257}", "--pad_vocab=64"]
    if ranks > 1:
        words += [f"--ranks={ranks}", "--ranks_by=mpi", MODES[mode], *a.strobe_options.split()]
    return words


def strobe_turn(a, mode, folder):
    run(strobe_words(a, mode, folder), a.limit)
    with open(f"{folder}/run/log.jsonl", encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    steps = [x["ms"] for x in lines if x["kind"] == "step"][WARM_UP:]
    memory = [x["memory_bytes"] for x in lines if x.get("memory_bytes")]
    version = run([a.strobe, "version"], a.limit).splitlines()[0]
    return {"ms": statistics.median(steps), "memory": max(memory, default=0), "about": version}


def make_data(a, folder):
    """A text whose tokens any vocabulary has."""
    words = "aba cab deed fad bee face a ed".split()
    text = " ".join(words[i * i * 7 % 8] + ("\n" if i % 9 == 0 else "") for i in range(40000))
    with open(f"{folder}/text", "w", encoding="utf-8") as f:
        f.write(text)
    run([a.strobe, "data", "words", f"--data_dir={folder}/data", "--from", f"{folder}/text"],
        a.limit)


# --- turns and table -----------------------------------------------------------------------------


def contenders(a):
    modes = a.modes.split(",")
    if a.gpus < 2:
        modes = [m for m in modes if m == "one"]
    pairs = [("Strobe", m, strobe_turn) for m in modes]
    return pairs + [("PyTorch", m, torch_turn) for m in modes]


def measure(a, folder):
    """(program, mode) -> turns, or the reason why there are none."""
    result, failed = {}, {}
    everyone = contenders(a)
    for number in range(a.rounds):
        for program, mode, turn in everyone[::-1 if number % 2 else 1]:
            if (program, mode) in failed:
                continue
            print(f"round {number + 1} of {a.rounds}: {program} {mode}", file=sys.stderr,
                  flush=True)
            try:
                result.setdefault((program, mode), []).append(turn(a, mode, folder))
            except (ChildProcessError, subprocess.TimeoutExpired, ValueError, OSError) as e:
                failed[program, mode] = str(e)
    return result, failed


def table(a, result, failed):
    tokens = {key: (1 if key[1] == "one" else a.gpus) * a.batch * a.keys["block_size"]
              / statistics.median(t["ms"] for t in turns) * 1e3 for key, turns in result.items()}
    rows = [("", "GPUs", "ms for a step", "tokens/s", "times one GPU", "times DDP", "GiB")]
    for (program, mode), turns in result.items():
        ms = sorted(t["ms"] for t in turns)
        own, one = tokens[program, mode], tokens.get((program, "one"))
        ddp = tokens.get(("PyTorch", "ddp"))
        rows.append((f"{program} {mode}", str(1 if mode == "one" else a.gpus),
                     f"{statistics.median(ms):.2f} ({ms[0]:.2f} to {ms[-1]:.2f})", f"{own:,.0f}",
                     f"{own / one:.2f}" if one and mode != "one" else "",
                     f"{own / ddp:.2f}" if ddp and mode != "one" else "",
                     f"{turns[-1]['memory'] / 2**30:.1f}"))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(x.ljust(w) for x, w in zip(r, widths)).rstrip())
    for (program, mode), why in failed.items():
        print(f"{program} {mode}: {why}")
    for program in ("Strobe", "PyTorch"):
        about = [t["about"] for (p, _), turns in result.items() for t in turns if p == program]
        if about:
            print(f"{program}: {about[0]}")


def count_gpus():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return len([x for x in listed.stdout.splitlines() if x.startswith("GPU ")])


def main():
    a = arguments()
    if a.turn:
        torch_turn_here(a)
        return 0
    a.gpus = a.gpus or count_gpus()
    if a.dry:
        for program, mode, _ in contenders(a):
            words = strobe_words(a, mode, "FOLDER") if program == "Strobe" else torch_words(a, mode)
            print(" ".join(words))
        return 0
    if not a.gpus:
        print("compare_ddp.py: there is no GPU", file=sys.stderr)
        return 1
    print(f"{os.path.basename(a.config)}, {a.batch} sequences of {a.keys['block_size']} tokens for "
          f"each GPU, bf16, {a.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        make_data(a, folder)
        result, failed = measure(a, folder)
    table(a, result, failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
