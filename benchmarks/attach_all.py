"""What a click on all modules of a model costs the step it acts in, and what `watch` takes.

A request is put, one by one as a panel marks modules or as a glob; the CPU time from the beginning
of the next forward call to the first module inside is what its boundary takes. That of an ordinary
boundary is taken off. Beside it stands a bare training step of the same model, measured there and
then. Garbage is collected before, as Python may do so at any moment anyway.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers.ours import begin
from benchmarks.selection import add_selection
from benchmarks.table import Table
from benchmarks.workloads import Workload
from notebook_probe.run.attach.presets import presets
from notebook_probe.run.attach.requests import Attach

__all__ = ["add_arguments", "run"]

SIZES = ("150", "450", "1200", "2400")
QUANTITIES = ("weight_norm", "output_norm")
MARKED = ("one by one", "by glob")
LIMIT_MS = 50.0
MANY, WATCH_LIMIT_S = 10_000, 2.0
COLUMNS = {
    "quantity": 11,
    "modules": 7,
    "marked": 10,
    "ms": 6,
    "bare steps": 10,
    "target": 8,
    "met": 3,
}


class _First(nn.Module):
    """Notes when the call of the model has come as far as its first module."""

    reached = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.reached = time.thread_time()
        return x


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, sizes=SIZES, quantities=QUANTITIES)
    parser.add_argument("--repeats", type=int, default=7, help="models for each line (default 7)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per quantity, size and way of marking, then that of `watch`."""
    torch.set_num_threads(1)
    print("a click on all modules of a model, CPU time of the boundary that applies it\n")
    table = Table(COLUMNS)
    for quantity in chosen.quantities:
        for size in map(int, chosen.sizes):
            for marked in MARKED:
                measured = [_click(size, quantity, marked) for _ in range(chosen.repeats)]
                ms, steps = np.median(measured, axis=0)
                judged = f"<= {LIMIT_MS:.0f} ms", "yes" if ms <= LIMIT_MS else "NO"
                table.row(quantity, str(size), marked, f"{ms:.1f}", f"{steps:.1f}", *judged)
    seconds = float(np.median([_watch_s() for _ in range(chosen.repeats)]))
    judged = f"<= {WATCH_LIMIT_S:.0f} s", "yes" if seconds <= WATCH_LIMIT_S else "NO"
    table.row("watch", str(MANY), "", f"{1e3 * seconds:.0f}", "", *judged)


def _model(n_modules: int) -> nn.Sequential:
    """Blocks of three modules each, the first of which is the block itself."""
    blocks = (nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(n_modules // 3))
    return nn.Sequential(_First(), *blocks)


def _click(n_modules: int, quantity: str, marked: str) -> tuple[float, float]:
    """Milliseconds that a click adds to a boundary, and how many bare steps that is."""
    model = _model(n_modules)
    inputs = torch.ones(1, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    training = Workload(model, optimizer, inputs, inputs, lambda outputs, _: outputs.sum())
    bare_s = min(_step_s(training) for _ in range(5))
    paths = tuple(path for path, _ in model.named_modules() if path)
    with tempfile.TemporaryDirectory() as folder, begin(training, None, Path(folder)) as run:
        ordinary_s = min(_boundary_s(training) for _ in range(5))
        ticket = run.controls.put(Attach(paths if marked == MARKED[0] else ("*",), quantity))
        gc.collect()
        added_s = _boundary_s(training) - ordinary_s
        assert ticket.state == "applied", ticket.text
    return 1e3 * added_s, added_s / bare_s


def _step_s(training: Workload) -> float:
    begun = time.thread_time()
    training.step()
    return time.thread_time() - begun


def _boundary_s(training: Workload) -> float:
    first = next(module for module in training.model.children() if isinstance(module, _First))
    begun = time.thread_time()
    training.step()
    return first.reached - begun


def _watch_s() -> float:
    """`watch` with the default preset."""
    model = _model(MANY)
    inputs = torch.ones(1, 2)
    training = Workload(model, torch.optim.SGD(model.parameters(), lr=0.0), inputs, inputs)
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        begun = time.thread_time()
        run = begin(training, presets["default"], Path(folder))
        seconds = time.thread_time() - begun
        run.close()
    return seconds
