#!/usr/bin/python3
"""Runs Strobe and PyTorch in turn on one GPU, at the same rungs and the same attention shapes, and
prints ratios.

usage: compare_gpu.py [CONFIG] [--strobe=./strobe] [--torch=/usr/bin/python3] [--budget=330]
       [--rounds=5] [--rungs=NAME,...] [--vocab=50257] [--parts=steps,attention]
       [--json=FILE] [--key=value ...]
Each round gives every contender a turn, in alternating order. A ratio is taken within a round; the
median over the rounds is printed with the minimum and the maximum. Waiting contenders sleep, so one
has the GPU to itself. A contender that fails is listed with its reason.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import gpu_peers
import peers
from compare_cpu import pooled, say, write_json

START_SHARE = 0.65  # of the budget, at most, before the first round
RESERVE = 5  # seconds for printing


def arguments():
    a = argparse.ArgumentParser(description="compare Strobe with PyTorch on a GPU",
                                allow_abbrev=False)
    gpu_peers.add_arguments(a)
    gpu_peers.add_step_arguments(a)
    gpu_peers.add_shape_arguments(a)
    a.add_argument("--strobe", default=os.path.join(peers.HERE, "..", "strobe"))
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--at-once", type=int, default=3,
                   help="rungs that compile concurrently (%(default)s)")
    a.add_argument("--parts", default="steps,attention", help="which parts to run (%(default)s)")
    a = gpu_peers.parse(a)
    a.strobe = os.path.abspath(a.strobe)
    if min(a.rounds, a.at_once) < 1 or not set(a.parts.split(",")) <= {"steps", "attention"}:
        raise ValueError("--rounds and --at-once must be at least 1; --parts must be steps, "
                         "attention or both")
    return a


class Field:
    """All contenders."""

    def __init__(self, a):
        self.rungs, self.ladder, self.torch_attention, self.strobe_attention = [], None, None, None
        if "steps" in a.parts:
            self.ladder = gpu_peers.StrobeLadder(a)
            self.rungs = [gpu_peers.TorchRung(a, r) for r in gpu_peers.pick_rungs(a.rungs)]
        if "attention" in a.parts:
            self.strobe_attention = gpu_peers.StrobeAttention(a)
            self.torch_attention = gpu_peers.TorchAttention(a)

    def everyone(self):
        """In the order of a round."""
        return [c for c in (self.ladder, *self.rungs, self.strobe_attention, self.torch_attention)
                if c]

    def alone(self):
        """Contenders that start one after another, because they measure while starting or start
        quickly."""
        return [c for c in self.everyone() if c not in self.compiled()]

    def compiled(self):
        """Rungs that compile: highest first, because losing them to the time limit would cost the
        most; rungs that reuse another one's compilation cache come last."""
        first, later, seen = [], [], set()
        for c in self.rungs[::-1]:
            graph = (c.rung.torch["attention"], c.rung.torch["pad_vocab"])
            if c.rung.torch["compile"]:
                (later if graph in seen else first).append(c)
                seen.add(graph)
        return first + later


def begin(a, contestant, deadline):
    seconds = min(a.limit, deadline - time.monotonic())
    t0 = time.monotonic()
    if contestant.refused:
        return
    if seconds <= 0:
        contestant.refuse("time was up before it could start")
    else:
        contestant.guarded(contestant.begin, seconds)
    say(f"{contestant.name}: {contestant.refused or f'ready after {time.monotonic() - t0:.0f} s'}")


def start(a, field, deadline):
    for c in field.everyone():
        c.guarded(c.launch, 0)
    for c in field.everyone():
        if not c.guarded(c.ready, max(1, min(a.limit, deadline - time.monotonic()))):
            say(f"{c.name}: {c.refused}")
    for c in field.alone():
        begin(a, c, deadline)
    pool = concurrent.futures.ThreadPoolExecutor(a.at_once)
    try:
        list(pool.map(lambda c: begin(a, c, deadline), field.compiled()))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def run_rounds(a, field, deadline, each):
    """Runs until the rounds are done or the next turn would end too late; calls `each` after every
    turn."""
    took = {}
    for i in range(a.rounds):
        everyone = field.everyone()
        for c in everyone if i % 2 == 0 else everyone[::-1]:
            left = deadline - time.monotonic()
            if c.refused or left < took.get(c, 0):
                continue
            t0 = time.monotonic()
            if not c.guarded(lambda seconds, c=c, i=i: c.turn_of(i, seconds), max(left, 20)):
                say(f"{c.name}: {c.refused}")
            took[c] = max(took.get(c, 0), time.monotonic() - t0)
            each()
        say(f"round {i + 1} of {a.rounds} done, {deadline - time.monotonic():.0f} s left")
        if not took or deadline - time.monotonic() < min(took.values()):
            return


# --- results --------------------------------------------------------------------------------------

def times(contestant, cell):
    """All turns of a cell: the median of their medians, or None."""
    turns = [t[cell] for t in contestant.turns.values() if cell in t] if contestant and cell else []
    return pooled(turns) if turns else None


def ratio(own, own_cell, other, other_cell):
    """Strobe's time over PyTorch's: a ratio for each round in which both had their turn."""
    if not own or not other:
        return None
    each = [own.turns[i][own_cell]["median"] / other.turns[i][other_cell]["median"]
            for i in sorted(set(own.turns) & set(other.turns))
            if own_cell in own.turns[i] and other_cell in other.turns[i]]
    if not each:
        return None
    return dict(median=statistics.median(each), min=min(each), max=max(each), rounds=len(each))


def step_rows(a, field):
    """One row per PyTorch rung, with the Strobe rung that has the same keys."""
    rows, ladder = [], field.ladder
    said = {r["rung"]: r for r in ladder.about.get("ladder", {}).get("rungs", [])} if ladder else {}
    for c in field.rungs:
        cell = ladder.cell_of(c.rung)
        row = dict(rung=c.rung.name, words=c.rung.words, torch_refused=c.refused, torch=c.about,
                   torch_ms=times(c, c.rung.name), strobe_rung=cell, strobe=said.get(cell),
                   strobe_ms=times(ladder, cell), strobe_refused=ladder.refused,
                   ratio=ratio(ladder, cell, c, c.rung.name))
        for who in ("torch", "strobe"):
            if row[who + "_ms"]:
                ms = row[who + "_ms"]["median"]
                row[who + "_tokens_per_second"] = gpu_peers.tokens_per_second(a, ms)
        rows.append(row)
    return rows


def other_rungs(field, rows):
    """Strobe's rungs without a PyTorch counterpart."""
    beside = {r["strobe_rung"] for r in rows}
    return {name: times(field.ladder, name) for name in field.ladder.keys if name not in beside}


def best(field, rows):
    """The fastest rung of each, and the ratio of their times."""
    own = {name: times(field.ladder, name) for name in field.ladder.keys}
    own = {name: ms for name, ms in own.items() if ms}
    others = {c: times(c, c.rung.name) for c in field.rungs if times(c, c.rung.name)}
    if not own or not others:
        return None
    name = min(own, key=lambda n: own[n]["median"])
    other = min(others, key=lambda c: others[c]["median"])
    return dict(strobe=name, strobe_ms=own[name], torch=other.rung.name, torch_ms=others[other],
                ratio=ratio(field.ladder, name, other, other.rung.name))


def attention_rows(a, field):
    """One row per shape and direction: PyTorch's two backends, and Strobe's packed flash
    attention."""
    rows, own = [], field.strobe_attention
    for s in gpu_peers.shapes(a):
        packed = ("backward packed",) if s.layout == "packed" else ()
        for what in ("forward", "backward") + packed:
            cell = s[:4] + (what.split()[0],)
            row = dict(shape=s.name, head_size=s.D, T=s.T, what=what, strobe_ms=times(own, cell))
            if row["strobe_ms"]:
                row["strobe_tflops"] = gpu_peers.attention_tflops(s, what,
                                                                  row["strobe_ms"]["median"])
            for backend in gpu_peers.BACKENDS:
                key = tuple(s) + (backend, what)
                ms = times(field.torch_attention, key)
                row[backend] = ms and dict(ms=ms,
                                           tflops=gpu_peers.attention_tflops(s, what, ms["median"]),
                                           ratio=ratio(own, cell, field.torch_attention, key))
            rows.append(row)
    return rows


def report_of(a, field, head):
    out = dict(head,
               contestants=[dict(name=c.name, refused=c.refused, about=c.about, longest_s=c.longest)
                            for c in field.everyone()])
    if field.ladder:
        rows = step_rows(a, field)
        out.update(steps=rows, strobe_alone=other_rungs(field, rows), best=best(field, rows))
    if field.torch_attention:
        out.update(attention=attention_rows(a, field),
                   errors=field.torch_attention.about.get("errors", []))
    out["turns"] = {c.name: {str(i): {str(cell): ms for cell, ms in t.items()}
                             for i, t in c.turns.items()}
                    for c in field.everyone()}
    return out


# --- tables ---------------------------------------------------------------------------------------

def ms_words(ms):
    return f"{ms['median']:.2f} ± {ms['std']:.2f}" if ms else ""


def ratio_words(q):
    return f"{q['median']:.3f} ({q['min']:.3f} to {q['max']:.3f})" if q else ""


def strobe_words(row):
    """The reason why Strobe has no time there, or the name of the rung."""
    if row["strobe_ms"]:
        return row["strobe_rung"]
    if row["strobe_rung"]:
        return (row["strobe"] or {}).get("note") or row["strobe_refused"] or "did not run"
    return row["strobe_refused"] or "no such rung"


def print_steps(report):
    print("\n| PyTorch rung | PyTorch ms | tokens/s | GiB | first loss | Strobe rung | "
          "Strobe ms | tokens/s "
          "| GiB | first loss | time of Strobe / PyTorch |\n" + "|---" * 11 + "|")
    for r in report["steps"]:
        torch, strobe = r["torch"], r["strobe"] or {}
        own = [ms_words(r["torch_ms"]), f"{r.get('torch_tokens_per_second', 0):,.0f}",
               gpu_peers.gib(torch.get("peak_bytes")), f"{torch.get('first_loss', 0):.3f}"]
        its = [ms_words(r["strobe_ms"]), f"{r.get('strobe_tokens_per_second', 0):,.0f}",
               gpu_peers.gib(strobe.get("memory_bytes")), f"{strobe.get('first_loss') or 0:.3f}"]
        if not r["torch_ms"]:
            own = [r["torch_refused"] or "did not run", "", "", ""]
        if not r["strobe_ms"]:
            its = [""] * 4
        columns = [r["words"], *own, strobe_words(r), *its, ratio_words(r["ratio"])]
        print(f"| {' | '.join(columns)} |")
    for name, ms in report["strobe_alone"].items():
        print("| |" + " |" * 4 + f" {name} | {ms_words(ms) or 'did not run'} |" + " |" * 4)
    if report["best"]:
        b = report["best"]
        print(f"\nFastest rungs: Strobe {b['strobe_ms']['median']:.2f} ms ({b['strobe']}), PyTorch "
              f"{b['torch_ms']['median']:.2f} ms ({b['torch']}); time of Strobe / PyTorch "
              f"{ratio_words(b['ratio'])}")


def print_attention(report):
    print("\n| attention | | Strobe ms | TFLOP/s | FA2 ms | TFLOP/s | time of Strobe / FA2 | "
          "cuDNN ms | TFLOP/s "
          "| time of Strobe / cuDNN |\n" + "|---" * 10 + "|")
    for r in report["attention"]:
        words = [f"{r['strobe_ms']['median']:.4f} | {r['strobe_tflops']:.0f}" if r["strobe_ms"]
                 else " | "]
        for backend in gpu_peers.BACKENDS:
            b = r[backend]
            words.append(f"{b['ms']['median']:.4f} | {b['tflops']:.0f} | {ratio_words(b['ratio'])}"
                         if b else " | | ")
        print(f"| {r['shape']} | {r['what']} | " + " | ".join(words) + " |")
    gpu_peers.print_errors(report["errors"])


def print_refusals(report):
    """Each failure reason once, with all contenders it applies to."""
    whom = {}
    for c in report["contestants"]:
        if c["refused"]:
            whom.setdefault(c["refused"], []).append(c["name"])
        for name, why in (c["about"].get("refused") or {}).items():
            whom.setdefault(why, []).append(f"{c['name']} {name}")
    for why, names in whom.items():
        print(f"\nRefused: {', '.join(names)}: {why}")


def print_report(report):
    print(f"\n### {report['gpu']}, {report['config']}, vocabulary {report['vocabulary']}, "
          f"{report['date']}\n")
    if "steps" in report:
        print_steps(report)
    if "attention" in report:
        print_attention(report)
    print_refusals(report)
    sys.stdout.flush()


def gpu_name(a):
    try:
        words = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm",
                 "--format=csv,noheader"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
        return done.stdout.strip().splitlines()[0] if done.stdout.strip() else a.device
    except (OSError, subprocess.SubprocessError):
        return a.device


def main():
    a = arguments()
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("compare_gpu.py: ended early"))
    head = dict(v=1, config=os.path.basename(a.config), keys=peers.keys_of(a, a.config),
                vocabulary=a.vocab,
                rounds=a.rounds, gpu=gpu_name(a), date=datetime.date.today().isoformat())
    with contextlib.ExitStack() as stack:
        a.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="compare_gpu."))
        field = Field(a)
        for c in field.everyone():
            stack.callback(c.stop)

        def each():
            write_json(a.json, report_of(a, field, head))

        try:
            start(a, field, started + START_SHARE * a.budget)
            each()
            run_rounds(a, field, started + a.budget - RESERVE, each)
        finally:
            print_report(report_of(a, field, head))
            each()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        raise SystemExit(f"compare_gpu.py: {e}") from e
