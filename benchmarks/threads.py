"""What watching costs where torch has all cores, as it has for whoever sets nothing.

Every other benchmark is on one thread, so that CPU time can be compared. Here it is wall time, of
blocks of steps in turns, since a thread that waits for work goes on turning for a while: numpy's
own would be in the way of torch's. Beside the watched model stands its plain twin.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from threadpoolctl import ThreadpoolController
from torch import nn

from benchmarks.pairs import Step
from benchmarks.peers.ours import begin
from benchmarks.probe_sets import Probes, leaf
from benchmarks.selection import add_selection
from benchmarks.small_workloads import SIZES
from benchmarks.table import Table
from benchmarks.workloads import Workload, twins
from notebook_probe.run.attach.presets import Preset, presets

__all__ = ["add_arguments", "run"]


def sigmoids() -> Workload:
    """An MLP of width 512 whose activations lie far from 0, so that their spread is read anew."""
    torch.manual_seed(0)
    kinds = nn.Sigmoid(), nn.Sigmoid(), nn.Softmax(-1)
    layers = [layer for kind in kinds for layer in (nn.Linear(512, 512), kind)]
    model = nn.Sequential(*layers, nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return Workload(model, optimizer, torch.randn(128, 512), torch.randint(0, 10, (128,)))


MODELS = {"sigmoids": sigmoids, **SIZES}
USUAL = "sigmoids", "MLP", "LeNet", "small ViT"
SETS: dict[str, Probes | Preset] = {
    "default": presets["default"],
    "alerts": presets["alerts"],
    "spectra": {leaf: ["input_cov_max_eig", "effective_rank"]},
}
COLUMNS = {"model": 11, "probes": 8, "threads": 7, "step ms": 7, "watched": 8}
BLOCK, REST_S = 10, 0.1
WARM_STEPS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, workloads=MODELS, sets=SETS)
    parser.set_defaults(workloads=list(USUAL))
    parser.add_argument("--blocks", type=int, default=10, help="of each variant (default 10)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per model, set of probes and number of threads."""
    table = Table(COLUMNS)
    blas = ThreadpoolController().select(user_api="blas")  # as a process has it that sets nothing
    for name in chosen.workloads:
        for which in chosen.sets:
            for n_threads in (os.cpu_count() or 1, 1):
                torch.set_num_threads(n_threads)
                watched, plain = twins(MODELS[name])
                with (
                    blas.limit(limits=n_threads),
                    tempfile.TemporaryDirectory() as folder,
                    begin(watched, SETS[which], Path(folder)),
                ):
                    ratio, plain_s = _in_turns(watched.step, plain.step, chosen.blocks)
                table.row(name, which, f"{n_threads}", f"{1e3 * plain_s:.2f}", f"{ratio:.2f}")


def _in_turns(watched: Step, plain: Step, n_blocks: int) -> tuple[float, float]:
    """Ratio of the medians, and seconds of the plain step."""
    for step in (watched, plain):
        _seconds(step, WARM_STEPS)
    both = [(_seconds(watched, BLOCK), _seconds(plain, BLOCK)) for _ in range(n_blocks)]
    ours, bare = (median(seconds) for seconds in zip(*both, strict=True))
    return ours / bare, bare


def _seconds(step: Step, n_steps: int) -> float:
    """Of a step, on average over some that follow each other, once all threads have rested."""
    time.sleep(REST_S)
    begun = time.perf_counter()
    for _ in range(n_steps):
        step()
    return (time.perf_counter() - begun) / n_steps
