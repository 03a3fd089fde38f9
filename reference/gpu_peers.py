"""The contenders of compare_gpu.py, bench_gpu.py and attention_gpu.py, and what they run: THE
rungs, THE shapes.

A contender starts, takes turns and stops. A turn gives the times of all its cells: {cell: {n,
median, std, min, ...}}. A contender that fails keeps the reason in `refused` and its earlier
measurements. This module does not need PyTorch.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from peers import HERE, Served, keys_of, reason, summary
from strobe_config import DEFAULTS

CONFIG = os.path.join(HERE, "gpt2_b16.conf")
VOCAB = 50257  # GPT-2's

# The changes of each PyTorch rung over the one before, and the keys with which Strobe runs the same
# step. Strobe's AdamW is one kernel at fusion=full and its attention is its own, so two rungs share
# the counterpart of the one before.
_RUNGS = [
    ("fp32", "fp32, slow attention, eager, plain AdamW",
     dict(dtype="float32", tf32=False, compile=None, attention="slow", pad_vocab=0, fused=False,
          graph=False),
     dict(dtype="float32", fusion="op", flash="false", pad_vocab="0", replay="false")),
    ("tf32", "+ TF32", dict(tf32=True), dict(dtype="tfloat32")),
    ("bf16", "+ bf16 autocast", dict(dtype="bfloat16"), dict(dtype="bfloat16")),
    ("compile", "+ torch.compile", dict(compile="default"), dict(fusion="full")),
    ("flash", "+ flash attention", dict(attention="flash"), dict(flash="true")),
    ("vocab", "+ vocabulary a multiple of 64", dict(pad_vocab=64), dict(pad_vocab="64")),
    ("adamw", "+ fused AdamW", dict(fused=True), {}),
    ("cudnn", "+ cuDNN attention", dict(attention="cudnn"), {}),
    ("graph", "+ whole step as one CUDA graph", dict(graph=True), dict(replay="true")),
    ("reduce", "reduce-overhead instead", dict(graph=False, compile="reduce-overhead"), {}),
]
DEFAULT_RUNGS = "fp32,tf32,bf16,compile,flash,vocab,adamw,cudnn,graph"


class Rung(NamedTuple):
    name: str
    words: str
    torch: dict  # options of the PyTorch step
    strobe: dict  # keys of the same step in Strobe

def _all_rungs():
    torch, strobe, found = {}, {}, {}
    for name, words, changes, keys in _RUNGS:
        torch, strobe = {**torch, **changes}, {**strobe, **keys}
        found[name] = Rung(name, words, torch, strobe)
    return found


RUNGS = _all_rungs()


def pick_rungs(names):
    unknown = [n for n in names.split(",") if n not in RUNGS]
    if unknown:
        raise ValueError(f"unknown rung {', '.join(unknown)}; the rungs are {', '.join(RUNGS)}")
    return [r for r in RUNGS.values() if r.name in names.split(",")]


class Shape(NamedTuple):
    """Attention over q, k, v of shape (B,H,T,D), each contiguous, or views of one (B,T,3,H,D)."""
    B: int
    H: int
    T: int
    D: int
    layout: str = "contiguous"

    @property
    def name(self):
        return f"B{self.B} H{self.H} T{self.T} D{self.D} {self.layout}"

    @property
    def flops(self):
        """FLOPs of a causal forward pass; the backward pass has 2.5 times as many."""
        return 4 * self.B * self.H * self.T**2 * self.D / 2


def shapes(a):
    """THE shapes: the same number of tokens at each length, two head sizes; GPT-2's, in both
    layouts."""
    lengths = [T for T in (512, 1024, 2048, 4096, 8192, 16384) if a.tokens % T == 0]
    found = [Shape(a.tokens // T, a.columns // D, T, D) for D in (64, 128) for T in lengths]
    return found + [Shape(max(1, a.tokens // 1024), 12, 1024, 64, layout)
                    for layout in ("contiguous", "packed")]


BACKENDS = ["flash", "cudnn"]

"""The error of PyTorch's attention against double precision."""
def attention_tflops(shape, what, ms):
    return shape.flops * (1 if what == "forward" else 2.5) / ms * 1e-9


def print_errors(rows):
    """How far PyTorch's attention is from double precision."""
    print("\n| PyTorch's error | | y | dq | dk | dv |\n" + "|---" * 6 + "|")
    for r in rows:
        said = [r["refused"], "", "", ""]
        if "y" in r:
            said = [f"{r[x]:.2e}" for x in ("y", "dq", "dk", "dv")]
        print(f"| {r['shape']} | {r['backend']} | " + " | ".join(said) + " |")


def add_arguments(a):
    """The options of all three programs."""
    a.add_argument("--torch", default=sys.executable, help="Python interpreter with PyTorch")
    a.add_argument("--device", default="cuda")
    a.add_argument("--limit", type=float, default=100,
                   help="maximum seconds for a contender to start, including compilation "
                        "(%(default)s)")
    a.add_argument("--turn", type=float, default=1.0, help="approximate seconds of a turn")
    a.add_argument("--budget", type=float, default=330,
                   help="total seconds; contenders that do not fit are skipped and listed "
                        "(%(default)s)")
    a.add_argument("--json", metavar="FILE", help="write all results to FILE")


def add_step_arguments(a):
    """The additional options of the programs that time training steps."""
    a.add_argument("config", nargs="?", default=CONFIG, metavar="CONFIG")
    a.add_argument("--vocab", type=int, default=VOCAB,
                   help="vocabulary size of the random tokens (%(default)s)")
    a.add_argument("--rungs", default=DEFAULT_RUNGS, help=f"of {','.join(RUNGS)} (%(default)s)")


def add_shape_arguments(a):
    a.add_argument("--tokens", type=int, default=16384,
                   help="B x T of attention alone (%(default)s)")
    a.add_argument("--columns", type=int, default=2048,
                   help="heads x head size there (%(default)s)")


def parse(parser):
    """The parsed options, and the remaining arguments for the configuration."""
    a, a.overrides = parser.parse_known_args()
    a.config = os.path.abspath(a.config)
    if keys_of(a, a.config)["gradient_accumulation_steps"] != 1:
        raise ValueError("only one micro-batch is timed: add --gradient_accumulation_steps=1")
    return a


def tokens_per_second(a, ms):
    keys = keys_of(a, a.config)
    return 1e3 * keys["batch_size"] * keys["block_size"] / ms


def gib(count):
    return f"{count / 2**30:.1f}" if count else ""


class Contestant:
    """Launches run concurrently until all are ready; `begin`, up to the first turn, and turns run
    alone."""

    def __init__(self, a, name):
        self.a, self.name = a, name
        self.refused, self.about, self.turns, self.longest = None, {}, {}, 0.0

    def guarded(self, work, seconds):
        """Returns True on success; otherwise keeps the reason and ends this contender."""
        if self.refused:
            return False
        t0 = time.monotonic()
        try:
            work(seconds)
        except subprocess.TimeoutExpired:
            self.refused = f"took longer than {seconds:.0f} s"
        except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as e:
            self.refused = str(e).strip() or type(e).__name__
        if self.refused:
            self.stop()
        self.longest = max(self.longest, time.monotonic() - t0)
        return not self.refused

    def refuse(self, why):
        self.refused = why
        self.stop()

    def launch(self, seconds):
        pass

    def ready(self, seconds):
        """Waits until the launched process is ready."""

    def turn_of(self, number, seconds):
        """Runs a turn and stores it under the number of its round."""
        self.turns[number] = self.turn(seconds)

    def begin(self, seconds):
        raise NotImplementedError

    def turn(self, seconds):
        """{cell: times}"""
        raise NotImplementedError

    def stop(self):
        pass


class TorchRung(Contestant):
    """PyTorch at one rung, in a process that stays warm between turns and releases its unused
    memory."""

    MOST, LEAST, WARM = 40, 3, 3  # maximum and minimum steps of a turn; untimed warm-up steps

    def __init__(self, a, rung):
        super().__init__(a, f"torch {rung.name}")
        self.rung, self.served, self.steps = rung, None, self.LEAST

    def launch(self, _seconds):
        """The cache of compiled graphs ignores which attention they were compiled for (pytorch
        issue 185449), so each kind of attention has a separate cache."""
        known = [x for x in self.a.overrides if x.lstrip("-").partition("=")[0] in DEFAULTS]
        cache = f"strobe_reference_inductor.{os.getuid()}.{self.rung.torch['attention']}"
        environment = dict(os.environ,
                           TORCHINDUCTOR_CACHE_DIR=os.path.join(tempfile.gettempdir(), cache))
        self.served = Served([self.a.torch, os.path.join(HERE, "gpu_steps.py"), self.rung.name,
                              self.a.config,
                              str(self.a.vocab), self.a.device, *known,
                              f"--pad_vocab={self.rung.torch['pad_vocab']}"], environment)

    def ready(self, seconds):
        self.about = self.served.answer(seconds)

    def begin(self, seconds):
        """Compiles in the first step."""
        t0 = time.monotonic()
        first = self.served.ask(1, seconds)
        self.about.update(first_ms=first["ms"][0], first_loss=first["loss"])
        some = self.served.ask(self.WARM + 2, seconds)["ms"][self.WARM:]
        self.steps = max(self.LEAST, min(self.MOST, int(1e3 * self.a.turn / min(some))))
        self.about["start_s"] = time.monotonic() - t0

    def turn(self, seconds):
        found = self.served.ask(self.WARM + self.steps, seconds)
        if not math.isfinite(found["loss"]):
            raise ValueError(f"the loss went from {self.about['first_loss']:.3f} to "
                             f"{found['loss']:.3f}")
        self.about.update(loss=found["loss"], peak_bytes=found["peak_bytes"])
        return {self.rung.name: summary(found["ms"][self.WARM:])}

    def stop(self):
        if self.served:
            self.served.stop()


class TorchAttention(Contestant):
    """PyTorch's attention alone, over all shapes, in a separate process."""

    def __init__(self, a):
        super().__init__(a, "torch attention")
        self.served = None

    def launch(self, _seconds):
        self.served = Served([self.a.torch, os.path.join(HERE, "attention_gpu.py"), "--serve",
                              f"--device={self.a.device}", f"--tokens={self.a.tokens}",
                              f"--columns={self.a.columns}"])

    def ready(self, seconds):
        self.about = self.served.answer(seconds)

    def begin(self, seconds):
        """Builds cuDNN's plans in the first pass."""
        self.turn(seconds)

    def turn(self, seconds):
        found = self.served.ask("pass", seconds)
        self.about["refused"] = found["refused"]
        return {tuple(c.pop("cell")): c for c in found["cells"]}

    def stop(self):
        if self.served:
            self.served.stop()


def run_strobe(a, words, seconds):
    command = [a.strobe, *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=max(1.0, seconds),
                          cwd=a.folder)
    # it fails if nothing ran, and its rows give the reasons
    if done.returncode and not done.stdout.strip():
        raise ValueError(reason(done.stderr))
    return json.loads(done.stdout)


class StrobeLadder(Contestant):
    """`strobe ladder`: all rungs in turn, one process per turn. Cells are the names of the
    rungs."""

    STEPS = 10

    def __init__(self, a):
        super().__init__(a, "strobe ladder")
        self.keys = {}  # per rung

    def run(self, steps, seconds):
        found = run_strobe(self.a,
                           ["ladder", self.a.config, *self.a.overrides, f"--device={self.a.device}",
                            f"--vocab={self.a.vocab}", f"--steps={steps}",
                            f"--limit={max(1, round(2 * self.a.turn))}"], seconds)
        keys = {}
        for rung in found["rungs"]:
            words = (rung["differs"] or "").split()
            keys = {**keys, **dict(w.lstrip("-").split("=", 1) for w in words)}
            self.keys[rung["rung"]] = keys
        return found

    def begin(self, seconds):
        """Compiles its kernels."""
        t0 = time.monotonic()
        self.run(1, seconds)
        self.about["start_s"] = time.monotonic() - t0

    def turn(self, seconds):
        found = self.run(self.STEPS, seconds)
        self.about["ladder"] = found
        return {r["rung"]: dict(n=r["steps"], median=r["ms_median"], std=r["ms_std"] or 0.0,
                                min=r["ms_median"])
                for r in found["rungs"] if r["ms_median"] is not None}

    def cell_of(self, rung):
        """The Strobe rung with the keys of a rung, or None."""
        default = dict(replay="false", pad_vocab="0")
        for name, keys in self.keys.items():
            if all({**default, **keys}.get(k) == v for k, v in rung.strobe.items()):
                return name
        return None


class StrobeAttention(Contestant):
    """`strobe bench attention`, once per number of heads and head size: bf16, packed. Cells are (B,
    H, T, D)."""

    SAMPLES = 20

    def __init__(self, a):
        super().__init__(a, "strobe bench attention")

    def calls(self):
        lengths = {}
        for s in shapes(self.a):
            lengths.setdefault((s.H, s.D, s.B * s.T), set()).add(s.T)
        return lengths.items()

    def run(self, samples, seconds):
        cells, deadline = {}, time.monotonic() + seconds
        for (heads, size, tokens), lengths in self.calls():
            found = run_strobe(self.a, [
                "bench", "attention", "--flash_only", f"--device={self.a.device}",
                f"--heads={heads}", f"--head_size={size}", f"--tokens={tokens}", "--dtype=bfloat16",
                f"--T={','.join(map(str, sorted(lengths)))}", f"--samples={samples}",
                f"--limit={max(1, round(4 * self.a.turn))}"], deadline - time.monotonic())
            for row in found["rows"]:
                if row["attention"] == "flash" and row["forward_ms"] is not None:
                    cells[row["B"], heads, row["T"], size] = row
                elif row["attention"] == "flash":
                    self.about[f"H{heads} T{row['T']} D{size}"] = row["note"]
        return cells

    def begin(self, seconds):
        self.run(1, seconds)

    def turn(self, seconds):
        cells = self.run(self.SAMPLES, seconds)
        if not cells:
            raise ValueError("no flash attention ran: "
                             + "; ".join(sorted(set(self.about.values()))))
        turn = {}
        for cell, row in cells.items():
            for way in ("forward", "backward"):
                turn[cell + (way,)] = dict(n=row["samples"], median=row[way + "_ms"],
                                           std=row[way + "_std"] or 0.0,
                                           min=row[way + "_ms"])
        return turn
