"""Cost of reading inside compiled graphs: steps of a small GPT and of ResNet-18, by Inductor.

A watched model and its plain twin, both compiled whole, alternate in one process. Nothing is due,
or sums over the outputs and output gradients of the default preset at every step. The time of the
first calls of each is that of the compiler. Needs a C++ compiler; takes minutes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import notebook_probe as nbp
from benchmarks.pairs import paired
from benchmarks.table import Table
from benchmarks.workloads import Workload, resnet, small_gpt

__all__ = ["add_arguments", "run"]

WORKLOADS = {
    "small GPT": lambda: small_gpt(width=256, n_blocks=2, batch=8, context=128),
    "ResNet-18": resnet,
}
QUANTITIES = (
    "output_mean",
    "output_std",
    "output_norm",
    "output_grad_norm",
    "zero_fraction",
    "nonfinite_fraction",
)
SETS = {"nothing due": ("steps(0)", 1.03), "every step": ("every(1)", 1.12)}
COLUMNS = {"model": 9, "due": 11, "ratio": 6, "plain ms": 8, "n": 4, "compile s": 9, "plain": 6,
           "equal": 5, "target": 6, "met": 3}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20.0, help="for each line (default 20)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per model and set of readings."""
    torch.set_num_threads(1)
    print("sums inside compiled graphs, CPU\n")
    table = Table(COLUMNS)
    for name, workload in WORKLOADS.items():
        for due, (schedule, limit) in SETS.items():
            row = _row(workload, schedule, limit, chosen.seconds)
            table.row(name, due, *row)


def _row(
    workload: Callable[[], Workload], schedule: str, limit: float, seconds: float
) -> list[str]:
    torch._dynamo.reset()
    plain, watched = workload(), workload()
    plain_s = _compiled(plain)
    with tempfile.TemporaryDirectory() as folder:
        layers = {kind: [[one, schedule] for one in QUANTITIES] for kind in _layers(watched)}
        record = Path(folder) / "run.zarr"
        run = nbp.watch(
            watched.model,
            watched.optimizer,
            record,
            probes=layers,
            budget=None,
            on_compiled="inside",
        )
        watched_s = _compiled(watched)
        pairs = paired(watched.step, plain.step, seconds=seconds)
        run.close()
    parameters = zip(watched.model.parameters(), plain.model.parameters(), strict=True)
    equal = all(torch.equal(one, other) for one, other in parameters)
    ratio = pairs.ratio()
    return [
        f"{ratio:.3f}",
        f"{1e3 * pairs.plain_s:.1f}",
        str(pairs.n),
        f"{watched_s:.0f}",
        f"{plain_s:.0f}",
        "yes" if equal else "no",
        f"{limit}",
        "yes" if ratio <= limit else "no",
    ]


def _layers(workload: Workload) -> list[Any]:
    """Return the classes of modules without children."""
    leaves = (module for module in workload.model.modules() if not [*module.children()])
    return [*{type(module): None for module in leaves}]


def _compiled(workload: Workload) -> float:
    """Compile the model whole and train three steps; return the seconds."""
    begun = time.perf_counter()
    workload.model.compile(fullgraph=True)
    for _ in range(3):
        workload.step()
    return time.perf_counter() - begun
