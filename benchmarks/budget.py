"""What watching with default probes costs once a budget has stretched them, on many models.

Pairs of some watched steps and as many of the plain twin, over whole periods of what is stretched:
the ratio of the sums, of which a median would see only the steps in which nothing is due. Before
that the watched model trains by itself until its budget has settled. Beside it stands what the same
probes cost without a budget.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import product
from pathlib import Path

import torch

import notebook_probe as nbp
from benchmarks.pairs import IN_A_ROW, paired
from benchmarks.peers.ours import begin
from benchmarks.selection import add_selection
from benchmarks.small_workloads import OPTIMIZERS, SIZES, small_workload
from benchmarks.table import Table
from benchmarks.workloads import twins
from notebook_probe.run.attach.presets import presets

__all__ = ["add_arguments", "run"]

LIMIT = 1.06
PERCENT = 5.0
COLUMNS = {
    "model": 11,
    "optimizer": 9,
    "step ms": 7,
    "whole": 6,
    "budget": 6,
    "target": 7,
    "met": 3,
    "settled": 60,
}
WARM_STEPS, MOST_STEPS = 400, 3000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, workloads=SIZES, optimizers=OPTIMIZERS)
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of pairs for each ratio (default 20)"
    )


def run(chosen: argparse.Namespace) -> None:
    """Print a line per model and optimizer."""
    torch.set_num_threads(1)
    print(f"default probes, CPU time beside the plain twin; a budget of {PERCENT:g} %\n")
    table = Table(COLUMNS)
    for name, optimizer in product(chosen.workloads, chosen.optimizers):
        step_ms, whole, _ = _ratio(name, optimizer, None, chosen.seconds / 4)
        _, ratio, settled = _ratio(name, optimizer, PERCENT, chosen.seconds)
        met = "yes" if ratio <= LIMIT else "NO"
        figures = f"{step_ms:.2f}", f"{whole:.3f}", f"{ratio:.3f}", f"<= {LIMIT}", met
        table.row(name, optimizer, *figures, settled)


def _ratio(
    name: str, optimizer: str, percent: float | None, seconds: float
) -> tuple[float, float, str]:
    """Milliseconds of the plain step, the ratio, and what the budget says."""
    watched, plain = twins(small_workload, name, optimizer)
    with (
        tempfile.TemporaryDirectory() as folder,
        begin(watched, presets["default"], Path(folder), percent) as run,
    ):
        _settle(run, watched.step, seconds)
        for _ in range(20):
            plain.step()
        pairs = paired(watched.step, plain.step, seconds=seconds, at_most=10**9, in_a_row=IN_A_ROW)
        said = run.status().budget
    return 1e3 * pairs.plain_s, pairs.total_ratio(), said


def _settle(run: nbp.Run, step: object, seconds: float) -> None:
    """Train until nothing has changed in the budget for as long again."""
    assert callable(step)
    begun, said, since = time.monotonic(), "", 0
    for n in range(MOST_STEPS):
        step()
        now = run.controls.status_head().budget if n % 32 == 0 else said
        if now != said:
            said, since = now, n
        late = time.monotonic() - begun > 4 * seconds
        if n >= max(WARM_STEPS, 2 * since) or (late and n > 200):
            return
