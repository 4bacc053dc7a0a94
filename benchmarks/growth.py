"""Growth of the costs of watching with the number of modules: each should grow as the number does.

A process per size, each with a chain of small linear layers that is trained a few steps: what
``watch``, the first step, a step in which all default probes are due, one in which none is, a
flush, ``close`` and opening the record take, and the memory that the watched process has on top of
an unwatched one. Under each figure stands what that is per module.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import torch
from torch import nn

import notebook_probe as nbp
from benchmarks.memory import resident_mb
from benchmarks.table import Table
from notebook_probe.probes.calibration import calibrate

__all__ = ["add_arguments", "run"]

SIZES = (200, 1000, 5000, 10_000)
QUANTITIES = (
    *("weight_norm", "grad_norm", "update_ratio", "output_mean", "output_std", "output_norm"),
    *("output_grad_norm", "zero_fraction", "nonfinite_fraction", "grad_rms"),
    "silent_input_fraction",
)
"""Quantities of the default preset, at every step."""
WIDTH = 4
N_DUE, N_IDLE = 5, 5
CLOSE_LIMIT_S = 2.0
"""For the largest size."""
COLUMNS = {"modules": 10, "watch": 8, "first": 8, "due": 8, "idle": 8, "flush": 8, "close": 8}
COLUMNS |= {"open": 8, "MB": 6}


@dataclass(frozen=True)
class _Costs:
    """Seconds, and megabytes of memory."""

    watch: float
    first: float
    due: float
    idle: float
    flush: float
    close: float
    open: float
    mb: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="numbers of modules")


def run(chosen: argparse.Namespace) -> None:
    """Print two lines per size: the whole, and per module."""
    print("ms in all, and us per module below; what is added to the plain step, CPU\n")
    table = Table(COLUMNS)
    for n_modules in chosen.sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            costs = process.submit(_measured, n_modules).result()
        seconds = [value for name, value in asdict(costs).items() if name != "mb"]
        table.row(str(n_modules), *(f"{1e3 * one:.1f}" for one in seconds), f"{costs.mb:.0f}")
        table.row("", *(f"{1e6 * one / n_modules:.1f}" for one in seconds))
    is_met = costs.close <= CLOSE_LIMIT_S
    print(f"\nclose <= {CLOSE_LIMIT_S:g} s for {n_modules} modules: {'yes' if is_met else 'NO'}")


def _measured(n_modules: int) -> _Costs:
    torch.set_num_threads(1)
    calibrate()
    plain = _stepping(n_modules)[1]
    plain_first, plain_s = _seconds(plain), median(_seconds(plain) for _ in range(N_DUE))
    before = resident_mb()
    model, step = _stepping(n_modules)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "a.zarr"
        begun = time.perf_counter()
        watched = nbp.watch(model, store=store, probes=[], budget=None)
        handle = watched.attach("*", QUANTITIES)
        watch = time.perf_counter() - begun
        first = _seconds(step) - plain_first
        due = median(_seconds(step) for _ in range(N_DUE)) - plain_s
        mb = resident_mb() - before
        flush = _seconds(watched.flush)
        handle.reschedule("every(1000000)")
        step()
        idle = median(_seconds(step) for _ in range(N_IDLE)) - plain_s
        close = _seconds(watched.close)
        opening = _seconds(lambda: nbp.open_run(store).series("0", "weight_norm"))
    return _Costs(watch, first, due, idle, flush, close, opening, mb)


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _stepping(n_modules: int) -> tuple[nn.Module, Callable[[], None]]:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(n_modules)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.ones(8, WIDTH)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return model, step
