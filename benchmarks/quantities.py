"""What every quantity costs, and every preset, in three training steps of different length.

Each is measured alone, wherever it fits, by what the run says of itself: microseconds per step in
which it is due, over all modules, and per cent of the step time. A preset is measured with its own
schedules, over enough steps for each to be due, per step. What several quantities share, such as a
covariance, each of them pays here in full. ``-``: needs what the step does not have.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import torch

import notebook_probe as nbp
from benchmarks.peers.ours import begin
from benchmarks.selection import add_selection
from benchmarks.table import Table
from benchmarks.workloads import WORKLOADS, Workload
from notebook_probe.probes.selectors import default_places
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.table import built_in
from notebook_probe.run.presets import presets

__all__ = ["add_arguments", "run"]

WARM_UP = 2
PRESET_STEPS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, workloads=WORKLOADS)
    parser.add_argument("--names", default="*", help="glob of the quantities (default all)")
    parser.add_argument("--steps", type=int, default=4, help="measured of each (default 4)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per preset, then one per quantity."""
    torch.set_num_threads(1)
    print("cost of presets and quantities, CPU, one thread: us per step and per cent of it\n")
    heads = {"name": 30, "class": 13} | dict.fromkeys(chosen.workloads, 18)
    table = Table(heads)
    for name in filter(lambda name: fnmatchcase(name, chosen.names), presets):
        cells = [_preset(WORKLOADS[workload](), name) for workload in chosen.workloads]
        table.row(name, "preset", *cells)
    for quantity in built_in():
        if fnmatchcase(quantity.name, chosen.names):
            cells = [_alone(WORKLOADS[each](), quantity, chosen.steps) for each in chosen.workloads]
            table.row(quantity.name, quantity.cost, *cells)


def _preset(workload: Workload, name: str) -> str:
    with tempfile.TemporaryDirectory() as folder, begin(workload, name, Path(folder)) as watched:
        for _ in range(PRESET_STEPS):
            workload.step()
        return _told(watched)


def _alone(workload: Workload, quantity: Quantity, steps: int) -> str:
    with tempfile.TemporaryDirectory() as folder, begin(workload, None, Path(folder)) as watched:
        _attach(watched, quantity, ["", *default_places(workload.model)])
        if quantity.cost in ("forward", "backward"):
            watched.probe_batch(workload.inputs, workload.targets, workload.loss_fn)
        for _ in range(WARM_UP + steps):
            watched.batch(targets=workload.targets)
            workload.step()
        return _told(watched)


def _attach(watched: nbp.Run, quantity: Quantity, places: Sequence[str]) -> None:
    """At the layers where it fits, at the model where it fits none."""
    for place in places[1:]:
        with suppress(nbp.NotApplicableError):
            watched.attach(place, quantity)
    if not watched.probes():
        with suppress(nbp.NotApplicableError):
            watched.attach("", quantity)


def _told(watched: nbp.Run) -> str:
    status = watched.status()
    if not any(probe.n_values for probe in status.probes):
        return "-"
    us = sum(probe.cost_us for probe in status.probes)
    return f"{us:9.0f} {status.cost_percent:6.2f} %"
