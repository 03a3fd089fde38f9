"""The contenders of compare_cpu.py: each starts, runs turns of whole training steps, and stops.

A contender that cannot run keeps the reason in `refused` and is left out of the rounds.
"""
import json
import math
import os
import re
import select
import signal
import statistics
import subprocess
import tempfile
import time

import llmc_model
import strobe_config

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_MS = 300  # of untimed steps before a turn in a new process


def keys_of(a, config):
    known = [x for x in a.overrides if x.lstrip("-").partition("=")[0] in strobe_config.DEFAULTS]
    return strobe_config.read(config, known)


def summary(ms):
    return dict(n=len(ms), median=statistics.median(ms), mean=statistics.fmean(ms),
                std=statistics.stdev(ms) if len(ms) > 1 else 0.0, min=min(ms))


class Contestant:
    cost = 1  # time of a step of a turn, in steps

    def __init__(self, a, config, who, dtype, attention, compiled):
        self.a, self.config = a, config
        self.who, self.dtype, self.attention, self.compiled = who, dtype, attention, compiled
        short = {"float32": "fp32", "bfloat16": "bf16"}[dtype]
        self.name = f"{who} {short} {attention}" + (" compiled" if compiled else "")
        self.refused, self.about = None, {}
        self.turns = []  # results of turn(), one per round
        self.estimate_ms = math.inf  # per step, once it is known

    def start(self):
        """Prepares the contender and sets `estimate_ms` or `refused`."""
        try:
            self.begin()
        except (OSError, ValueError, subprocess.SubprocessError) as e:
            self.refused = str(e).strip() or type(e).__name__

    def warm(self):
        """The number of untimed steps in a turn of a new process, after its first step."""
        return min(20, int(WARM_MS / self.estimate_ms))

    def begin(self):
        raise NotImplementedError

    def turn(self, steps):
        """Milliseconds per step over that many steps: n, median, mean, std, min."""
        raise NotImplementedError

    def stop(self):
        pass


def reason(text):
    """The error message of a failed program: the last line that mentions an error, else the last
    line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines)[-1]


class Served:
    """A process that answers each line of its input with one line of JSON, and sleeps in between.
    It has a separate process group, so that its children end with it."""

    def __init__(self, command, environment=None):
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, start_new_session=True, env=environment)
        self.rest = b""

    def line(self, deadline):
        while b"\n" not in self.rest:
            seconds = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                raise ValueError("time is up")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                self.process.wait()
                self.said.seek(0)
                raise ValueError(reason(self.said.read()))
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def answer(self, seconds=math.inf):
        """The next line that is JSON; libraries may print others."""
        deadline = time.monotonic() + seconds
        while True:
            line = self.line(deadline)
            if line[:1] in (b"{", b"["):
                return json.loads(line)

    def ask(self, words, seconds=math.inf):
        try:
            self.process.stdin.write(f"{words}\n".encode())
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended: the failure of the answer has the reason
        return self.answer(seconds)

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Strobe(Contestant):
    """One process per turn, because it starts quickly. `strobe bench` runs the matmuls of the step
    between the steps, so a step does not find data of the previous one in the cache."""

    cost = 2

    def run(self, steps, warmup):
        command = [self.a.strobe, "bench", self.config, "--json", f"--steps={steps}",
                   f"--warmup={warmup}", f"--threads={self.a.threads}", f"--dtype={self.dtype}",
                   f"--flash={'true' if self.attention == 'flash' else 'false'}", *self.a.overrides]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(reason(done.stderr))
        return json.loads(done.stdout)

    def begin(self):
        if self.compiled:
            raise ValueError("compile is only for torch")
        self.estimate_ms = self.run(1, 0)["step_ms"]["median"]

    def turn(self, steps):
        found = self.run(steps, self.warm())
        self.about.setdefault("bench", []).append(found)
        return found["step_ms"]


class Torch(Contestant):
    """One process for all turns, warm from the first to the last; it sleeps while the others
    run."""

    served = None

    def begin(self):
        keys = [x for x in self.a.overrides
                if x.lstrip("-").partition("=")[0] in strobe_config.DEFAULTS]
        self.served = Served([self.a.torch, os.path.join(HERE, "bench_torch.py"), self.config,
                              "--serve",
                              f"--threads={self.a.threads}", f"--dtype={self.dtype}",
                              f"--attention={self.attention}", *["--compile"] * self.compiled,
                              *keys])
        self.about = self.served.answer()
        self.estimate_ms = self.turn(1)["min"]
        if self.warm():
            self.estimate_ms = self.turn(self.warm())["median"]

    def turn(self, steps):
        """Runs a few untimed steps first, because other contenders have used the caches since."""
        warm = min(self.warm(), 3)
        return summary(self.served.ask(warm + steps)[warm:])

    def stop(self):
        if self.served:
            self.served.stop()


class LlmC(Contestant):
    """llm.c's train_gpt2, one process per turn, stopped once it has printed enough steps. It has no
    dropout and no clipping, so it does less work than the others."""

    MOST = 20  # it generates a slow text sample before its 20th step

    def begin(self):
        keys = keys_of(self.a, self.config)
        if keys["dropout"] > 0:
            raise ValueError("llm.c has no dropout")
        self.folder = os.path.join(self.a.folder, "llm.c")
        llmc_model.prepare(self.a.llmc, self.folder, keys)
        self.estimate_ms = min(self.run(2))

    def run(self, steps):
        line_buffered = ["stdbuf", "-oL", "./train_gpt2"]
        process = subprocess.Popen(line_buffered, cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        found = []
        try:
            for line in process.stdout:
                match = re.match(r"step \d+: .*\(took ([0-9.]+) ms\)", line)
                if match:
                    found.append(float(match[1]))
                if len(found) == steps:
                    return found
        finally:
            process.kill()
            process.wait()
        raise ValueError(f"llm.c ended after {len(found)} steps")

    def turn(self, steps):
        warm = min(1 + self.warm(), 3)
        return summary(self.run(min(steps + warm, self.MOST))[warm:])


KINDS = {"strobe": Strobe, "torch": Torch, "llmc": LlmC}


def make(spec, a, config):
    """WHO:DTYPE:ATTENTION[:compile]"""
    who, dtype, attention, *more = spec.split(":")
    if who not in KINDS or dtype not in ("float32", "bfloat16") \
            or attention not in ("slow", "flash") or more not in ([], ["compile"]):
        raise ValueError(f"{spec}: expected strobe, torch or llmc:float32 or bfloat16:slow or "
                         f"flash[:compile]")
    return KINDS[who](a, config, who, dtype, attention, bool(more))
