"""What a summary collector with all defaults takes of a training, on three workloads.

Ten steps of a training with the collector beside ten of the same one without, in pairs: one of
each ten is due. All that is recorded goes to a temporary folder; its writer's thread is measured
apart, alone, and so is a watched model of which nothing is collected.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

import notebook_probe as nbp
from benchmarks.pairs import Step, alone, paired
from benchmarks.table import Table
from benchmarks.workloads import WORKLOADS, Workload

COLUMNS = (
    "workload",
    "plain step",
    "with the collector",
    "half of the pairs",
    "all together",
    "pairs",
    "its threads",
    "watched alone",
)
FREQ = 10
"""Steps of a block, one of which is due."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be asked for."""
    parser.add_argument("--seconds", type=float, default=60.0, help="of pairs, for each workload")
    parser.add_argument("--only", choices=[*WORKLOADS], action="append", help="these workloads")


def run(options: argparse.Namespace) -> None:
    """Print one row for each workload."""
    torch.set_num_threads(1)
    table = Table(dict.fromkeys(COLUMNS, 10))
    for name in options.only or WORKLOADS:
        table.row(*_row(name, WORKLOADS[name], options.seconds))


def _row(name: str, make: Callable[[], Workload], seconds: float) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        plain, collected = make(), make()
        place = Path(folder) / "record.zarr"
        with nbp.watch(collected.model, collected.optimizer, store=place, probes=None) as run:
            following = nbp.SummaryCollector(folder, collect_freq=FREQ).attach(run)
            with_it, without = _block(collected), _block(plain)
            for _ in range(3):  # also past what is done once
                with_it()
                without()
            pairs = paired(with_it, without, seconds=seconds)
            _, others_s = alone(with_it, seconds=seconds / 6)
            following.remove()
    plain_ms = 1e3 * pairs.plain_s / FREQ
    percent, low, high = (100 * (pairs.ratio(quantile) - 1) for quantile in (0.5, 0.25, 0.75))
    threads = 100 * others_s / pairs.plain_s
    total = 100 * (pairs.total_ratio() - 1)
    cells = (
        f"{plain_ms:.1f} ms",
        f"{percent:+.1f} %",
        f"{low:+.1f} to {high:+.1f}",
        f"{total:+.1f} %",
        str(pairs.n),
    )
    return name, *cells, f"{threads:.1f} %", _watched_alone(make, seconds / 3)


def _watched_alone(make: Callable[[], Workload], seconds: float) -> str:
    """What a run takes of which nothing is due."""
    plain, watched = make(), make()
    with (
        tempfile.TemporaryDirectory() as folder,
        nbp.watch(
            watched.model, watched.optimizer, store=Path(folder) / "record.zarr", probes=None
        ),
    ):
        with_it, without = _block(watched), _block(plain)
        with_it()
        without()
        return f"{100 * (paired(with_it, without, seconds=seconds).ratio() - 1):+.1f} %"


def _block(workload: Workload) -> Step:
    def steps() -> None:
        for _ in range(FREQ):
            workload.step()

    return steps
