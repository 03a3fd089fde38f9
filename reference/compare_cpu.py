#!/usr/bin/python3
"""Runs Strobe, PyTorch and llm.c in turn on the same cores and prints their times and ratios.

usage: compare_cpu.py [--threads=2] [--strobe=./strobe] [--torch=/usr/bin/python3] [--llmc=CLONE]
       [CONFIG ...] [--key=value ...]
Each round gives every contender a turn of some whole training steps, in alternating order. A ratio
is taken within a round; the median over the rounds is printed with the minimum and the maximum.
Changes of the machine's clock and other load thus affect all contenders alike. A contender that
fails is listed with its reason.
"""
import argparse
import contextlib
import datetime
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import peers

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = [os.path.join(HERE, "..", "configs", name + ".conf")
           for name in ("shakespeare_char_cpu", "shakespeare_char")]
ROWS = ("strobe:float32:flash,strobe:bfloat16:flash,torch:float32:slow,torch:float32:flash,"
        "torch:bfloat16:slow,torch:bfloat16:flash")
LEAST_STEPS = 20  # of a contender, over all rounds


def arguments():
    a = argparse.ArgumentParser(description="compare Strobe with PyTorch and llm.c on the CPU",
                                allow_abbrev=False)
    a.add_argument("configs", nargs="*", metavar="CONFIG", default=CONFIGS)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--cores", help="cores to use, such as 0,1; default: the first physical cores")
    a.add_argument("--strobe", default=os.path.join(HERE, "..", "strobe"))
    a.add_argument("--torch", default=sys.executable, help="Python interpreter with PyTorch")
    a.add_argument("--llmc", metavar="CLONE", help="a clone of llm.c, whose trainer is included")
    a.add_argument("--rows", default=ROWS, help="WHO:DTYPE:ATTENTION[:compile],... (%(default)s)")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--turn", type=float, default=1.0,
                   help="minimum seconds of a turn")
    a.add_argument("--least", type=int, default=LEAST_STEPS,
                   help="minimum steps of a contender over all rounds (%(default)s)")
    a.add_argument("--budget", type=float, default=0,
                   help="seconds for each configuration; reduces steps and rounds")
    a.add_argument("--json", metavar="FILE", help="write all results to FILE after each turn")
    a, a.overrides = a.parse_known_args()
    a.configs = [os.path.abspath(c) for c in a.configs]
    if a.rounds < 1 or a.least < 1:
        raise SystemExit("compare_cpu.py: --rounds and --least must be at least 1")
    return a


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def pin(a):
    """Binds this process, and so its children, to as many cores as threads, using one hardware
    thread of each physical core first. Returns the cores."""
    allowed = sorted(os.sched_getaffinity(0))
    if a.cores:
        cores = [int(c) for c in a.cores.split(",")]
    else:
        siblings = {}
        for c in allowed:
            topology = f"/sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list"
            siblings.setdefault(read(topology).strip() or c, []).append(c)
        turns = max(len(group) for group in siblings.values())
        cores = [g[i] for i in range(turns) for g in siblings.values() if i < len(g)][:a.threads]
    if len(cores) < a.threads or not set(cores) <= set(allowed):
        raise SystemExit(f"compare_cpu.py: {a.threads} threads exceed the allowed cores {allowed}")
    os.sched_setaffinity(0, cores)
    return cores


def machine(cores):
    lines = read("/proc/cpuinfo").splitlines()
    model = next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), "unknown")
    flags = next((s.split() for s in lines if s.startswith("flags")), [])
    known = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    return dict(cpu=model, isa=[f for f in known if f in flags], cores=cores,
                cores_of_machine=os.cpu_count(),
                load_at_start=os.getloadavg()[0], kernel=os.uname().release,
                date=datetime.date.today().isoformat())


def start(a, config, stack):
    """The contenders of one configuration, started and warmed up; those that fail keep the
    reason."""
    rows = [peers.make(spec, a, config) for spec in a.rows.split(",")]
    if a.llmc:
        rows.append(peers.make("llmc:float32:slow", a, config))
    for row in rows:
        stack.callback(row.stop)
        say(f"starting {row.name}")
        row.start()
        if row.refused:
            say(f"{row.name}: {row.refused}")
    return rows


def say(text):
    print(text, file=sys.stderr, flush=True)


def steps_of(a, running, seconds):
    """Steps of each contender's turn: as many as fit in it, and enough over all rounds; fewer if
    the rounds would exceed `seconds`."""
    steps = {r: max(min(int(1e3 * a.turn / r.estimate_ms), 200), -(-a.least // a.rounds))
             for r in running}
    needed = a.rounds * sum(n * r.cost * r.estimate_ms / 1e3 for r, n in steps.items())
    share = min(1.0, seconds / needed) if needed else 1.0
    return {r: max(1, int(n * share)) for r, n in steps.items()}


def run_rounds(a, rows, deadline, each):
    """Runs rounds in alternating order until all are done or the time is up; calls `each`
    after every turn."""
    running = [r for r in rows if not r.refused]
    steps = steps_of(a, running, deadline - time.monotonic())
    took = dict.fromkeys(running, 0.0)
    for i in range(a.rounds):
        for row in running if i % 2 == 0 else running[::-1]:
            t0 = time.monotonic()
            if i and t0 + took[row] > deadline:
                say(f"time is up in round {i + 1} of {a.rounds}")
                return
            row.turns.append(row.turn(steps[row]))
            took[row] = max(took[row], time.monotonic() - t0)
            each()
        say(f"round {i + 1} of {a.rounds} done")


def pooled(turns):
    """All turns of a contender: the median of their medians, and the spread within a turn."""
    n = sum(t["n"] for t in turns)
    variance = sum(t["n"] * (t["std"] or 0) ** 2 for t in turns) / n
    return dict(n=n, median=statistics.median(t["median"] for t in turns), std=math.sqrt(variance),
                min=min(t["min"] for t in turns))


def ratio(row, other):
    """row / other: a ratio of medians in each round."""
    each = [x["median"] / y["median"] for x, y in zip(row.turns, other.turns)]
    return dict(median=statistics.median(each), min=min(each), max=max(each), rounds=len(each))


def result_of(config, keys, rows):
    """The results of a configuration so far, for JSON and for the tables. An interrupted round
    counts for the contenders that finished their turn."""
    ran = [r for r in rows if r.turns]
    tokens = keys["batch_size"] * keys["block_size"]
    out = dict(config=os.path.basename(config), keys=keys, rows=[], ratios=[])
    for r in rows:
        line = dict(name=r.name, who=r.who, dtype=r.dtype, attention=r.attention,
                    compiled=r.compiled,
                    refused=r.refused, about=r.about)
        if r.turns:
            ms = pooled(r.turns)
            line.update(step_ms=ms, tokens_per_second=1e3 * tokens / ms["median"], turns=r.turns)
        out["rows"].append(line)
    for r in ran:
        out["ratios"] += [dict(of=r.name, over=o.name, **ratio(r, o))
                          for o in ran if r.who == "strobe" and o is not r]
    return out


def print_times(result):
    print("| | median ms | std | min | steps | tokens/s |\n|---|---|---|---|---|---|")
    for r in result["rows"]:
        if r["refused"] or "step_ms" not in r:
            print(f"| {r['name']} | {r['refused'] or 'did not run'} | | | | |")
            continue
        ms = r["step_ms"]
        print(f"| {r['name']} | {ms['median']:.2f} | {ms['std']:.2f} | {ms['min']:.2f} | {ms['n']} "
              f"| {r['tokens_per_second']:.0f} |")


def print_ratios(result):
    """The time of Strobe divided by that of the others."""
    own = list(dict.fromkeys(q["of"] for q in result["ratios"]))
    if not own:
        return
    print("\n| time of / over | " + " | ".join(own) + " |\n|---" + "|---" * len(own) + "|")
    cell = {(q["of"], q["over"]): f"{q['median']:.3f} ({q['min']:.3f} to {q['max']:.3f})"
            for q in result["ratios"]}
    for r in result["rows"]:
        if any((x, r["name"]) in cell for x in own):
            print(f"| {r['name']} | "
                  + " | ".join(cell.get((x, r["name"]), "") for x in own) + " |")


def print_result(result, threads):
    k = result["keys"]
    print(f"\n### {result['config']}: {k['n_layer']}/{k['n_head']}/{k['n_embd']}, context "
          f"{k['block_size']}, batch {k['batch_size']}, dropout {k['dropout']:g}, {threads} "
          f"threads\n")
    print_times(result)
    print_ratios(result)
    sys.stdout.flush()


def write_json(path, report):
    if path:
        with open(path + ".part", "w", encoding="utf-8") as f:
            json.dump(report, f, indent=1)
            f.write("\n")
        os.replace(path + ".part", path)


def compare(a, config, report):
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        a.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="compare_cpu."))
        rows = start(a, config, stack)
        keys = peers.keys_of(a, config)
        report["configs"].append(result_of(config, keys, rows))

        def each():
            report["configs"][-1] = result_of(config, keys, rows)
            write_json(a.json, report)

        try:
            run_rounds(a, rows, started + a.budget if a.budget else math.inf, each)
        finally:
            print_result(report["configs"][-1], a.threads)


def main():
    a = arguments()
    cores = pin(a)
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("compare_cpu.py: ended early"))
    report = dict(v=1, threads=a.threads, rounds=a.rounds, machine=machine(cores), configs=[])
    m = report["machine"]
    print(f"{m['cpu']} ({', '.join(m['isa'])}), cores {','.join(map(str, cores))} of "
          f"{m['cores_of_machine']}, "
          f"{a.threads} threads, load before: {m['load_at_start']:.2f}", flush=True)
    for config in a.configs:
        compare(a, config, report)
    write_json(a.json, report)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        raise SystemExit(f"compare_cpu.py: {e}") from e
