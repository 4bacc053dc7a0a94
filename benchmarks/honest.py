"""Whether what a run says that watching costs is what pairs of steps measure.

Pairs of a watched step and its plain twin; what the run adds up of the watched ones, over the
twin's time, should be by how much pairs differ. Clocks are of the thread's CPU time, the run's own
as well, so that other load on the machine counts nowhere.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest import mock

import torch

from benchmarks.pairs import IN_A_ROW, paired
from benchmarks.peers.ours import begin
from benchmarks.selection import add_selection
from benchmarks.small_workloads import OPTIMIZERS, SIZES, small_workload
from benchmarks.table import Table
from benchmarks.workloads import Workload, twins
from notebook_probe.run.attach.presets import presets

__all__ = ["add_arguments", "run"]

PRESETS = "default", "alerts"
COLUMNS = {
    "model": 11,
    "optimizer": 9,
    "preset": 8,
    "budget": 6,
    "step ms": 7,
    "n": 5,
    "pairs": 6,
    "the run says": 12,
    "said / measured": 15,
}
NEAR = 0.9, 1.1
BUDGET = 5.0
WARM_S, WARM_STEPS, SETTLED_STEPS = 0.4, 40, 400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, workloads=SIZES, optimizers=OPTIMIZERS, presets=PRESETS)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of pairs for each line (default 2)"
    )
    parser.add_argument(
        "--budget",
        action="store_true",
        help=f"with a budget of {BUDGET:g} %%, after it has settled, in place of every due step",
    )


def run(chosen: argparse.Namespace) -> None:
    """Print a line per model, optimizer and preset, and how many of them are near 1."""
    torch.set_num_threads(1)
    percent = BUDGET if chosen.budget else None
    table, near = Table(COLUMNS), []
    for name in chosen.workloads:
        for optimizer in chosen.optimizers:
            for preset in chosen.presets:
                watched, plain = twins(small_workload, name, optimizer)
                figures, share = _line(watched, plain, preset, percent, chosen.seconds)
                near.append(share)
                table.row(name, optimizer, preset, f"{percent or 'none'}", *figures)
    within = sum(NEAR[0] <= share <= NEAR[1] for share in near)
    print(f"\n{within} of {len(near)} within 10 %; median {median(near):.2f}")


def _line(
    watched: Workload, plain: Workload, preset: str, percent: float | None, seconds: float
) -> tuple[list[str], float]:
    with (
        _cpu_clock(),
        tempfile.TemporaryDirectory() as folder,
        begin(watched, presets[preset], Path(folder), percent) as run,
    ):
        _warm(watched, plain, SETTLED_STEPS if percent else WARM_STEPS, percent is not None)
        before = run.status().total_cost_s
        in_a_row = IN_A_ROW if percent else 1
        pairs = paired(watched.step, plain.step, seconds=seconds, at_most=10**9, in_a_row=in_a_row)
        run.controls.settle()
        said = (run.status().total_cost_s - before) / float(in_a_row * pairs.plain.sum())
    ratio = pairs.total_ratio()
    share = said / (ratio - 1)
    figures = f"{1e3 * pairs.plain_s:.2f}", f"{pairs.n}", f"{ratio:.3f}", f"{1 + said:.3f}"
    return [*figures, f"{share:.2f}"], share


def _warm(watched: Workload, plain: Workload, n_steps: int, all_of_them: bool) -> None:
    begun = time.monotonic()
    for n in range(n_steps):
        watched.step()
        if n < WARM_STEPS:
            plain.step()
        if n >= 2 and time.monotonic() - begun > WARM_S and not all_of_them:
            return


@contextmanager
def _cpu_clock() -> Iterator[None]:
    """Have a run take the CPU time of the thread for the time."""
    with mock.patch("time.perf_counter", time.thread_time):
        yield
