"""Runs PyTorch's training steps at one rung; gpu_peers.TorchRung starts this process and
communicates with it.

usage: gpu_steps.py RUNG CONFIG VOCABULARY DEVICE [--key=value ...]
It reports that it is ready, then answers each line N of its input with the milliseconds of N steps.
"""
import argparse
import gc
import json
import sys
import time

import torch

import bench_torch
import gpu_peers
import strobe_config


def choose_attention(backend):
    """Enables one backend of scaled_dot_product_attention only; called once, before compilation."""
    switch = torch.backends.cuda
    switch.enable_math_sdp(False)
    switch.enable_mem_efficient_sdp(False)
    switch.enable_flash_sdp(backend == "flash")
    switch.enable_cudnn_sdp(backend == "cudnn")


def check(how):
    """Raises an error if this torch lacks a required feature."""
    if how["compile"] and not hasattr(torch, "compile"):
        raise ValueError(f"torch {torch.__version__} has no torch.compile")
    if how["attention"] != "slow" and not hasattr(torch.nn.functional,
                                                  "scaled_dot_product_attention"):
        raise ValueError(f"torch {torch.__version__} has no scaled_dot_product_attention")


class Training(bench_torch.Training):
    """Consecutive steps on the GPU without waiting for the host in between."""

    def __init__(self, how, keys, vocab, device):
        check(how)
        self.cuda = device == "cuda"
        if self.cuda and how["attention"] != "slow":
            choose_attention(how["attention"])
        torch.set_float32_matmul_precision("high" if how["tf32"] else "highest")
        super().__init__(argparse.Namespace(
            keys=keys, vocab_size=vocab, device=device, dtype=how["dtype"], compile=False,
            attention="slow" if how["attention"] == "slow" else "flash"))
        flags = dict(fused=how["fused"], capturable=how["graph"] and self.cuda)
        self.opt = bench_torch.adamw(self.parameters, keys,
                                     **{k: True for k, wanted in flags.items() if wanted})
        if how["compile"]:
            self.model = torch.compile(self.model, mode=how["compile"])
        self.captures, self.graph = how["graph"] and self.cuda, None
        self.loss, self.steps, self.peak = None, 0, 0

    def one(self):
        if self.graph:
            self.graph.replay()
            return
        self.loss = None
        loss = self.forward()
        loss.backward()
        self.update()
        self.loss = loss.detach()

    def capture(self):
        """Runs a few steps on a side stream, as capture requires, then captures one, including the
        gradients."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.one()
        torch.cuda.current_stream().wait_stream(side)
        self.clean()
        torch.cuda.reset_peak_memory_stats()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.one()
        self.graph, self.peak = graph, torch.cuda.max_memory_allocated()

    def clean(self):
        """Releases the memory of a step for the next contender."""
        if self.cuda:
            torch.cuda.synchronize()
            gc.collect()
            torch.cuda.empty_cache()

    def timed(self, n):
        """Milliseconds of each step; on a GPU measured between the ends of consecutive steps, by
        its own clock."""
        if not self.cuda:
            times = [time.perf_counter()]
            for _ in range(n):
                self.one()
                times.append(time.perf_counter())
            return [1e3 * (y - x) for x, y in zip(times, times[1:])]
        events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
        torch.cuda.synchronize()
        events[0].record()
        for event in events[1:]:
            self.one()
            event.record()
        torch.cuda.synchronize()
        return [x.elapsed_time(y) for x, y in zip(events, events[1:])]

    def answer(self, n):
        if self.captures and not self.graph and self.steps:  # the very first step compiles
            self.capture()
        if self.cuda and not self.graph:
            torch.cuda.reset_peak_memory_stats()
        ms = self.timed(n)
        if self.cuda and not self.graph:
            self.peak = torch.cuda.max_memory_allocated()
        self.steps += n
        loss = float(self.loss)
        self.clean()
        return dict(ms=ms, loss=loss, peak_bytes=self.peak)


def main():
    name, config, vocab, device, *overrides = sys.argv[1:]
    training = Training(gpu_peers.RUNGS[name].torch, strobe_config.read(config, overrides),
                        int(vocab), device)
    print(json.dumps(dict(
        torch=torch.__version__, device=torch.cuda.get_device_name() if training.cuda else device,
        cudnn=torch.backends.cudnn.version() if training.cuda else None,
        parameters=sum(x.numel() for x in training.parameters))), flush=True)
    for line in sys.stdin:
        print(json.dumps(training.answer(int(line))), flush=True)


if __name__ == "__main__":
    try:
        main()
    except ValueError as e:
        raise SystemExit(str(e)) from e
