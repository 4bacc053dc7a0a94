"""What every preset and every quantity costs in training steps of different length.

Each is measured alone, wherever it fits, by what the run says that it takes: microseconds per step
in which it is due, over all modules, and per cent of the step without it. What several quantities
share, such as a covariance, each of them pays here in full. A preset is measured with its own
schedules, on average over a hundred steps. Where there is nothing to measure, it is said why.

Presets are measured on a small model and beside AdamW, too, whose step is longer.

``--save`` keeps every figure as soon as it is there; begun again, only what is missing is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch

from benchmarks.quantities.cells import Make, of_preset, of_quantity
from benchmarks.quantities.saved import Saved
from benchmarks.selection import add_selection
from benchmarks.small_workloads import SIZES, with_optimizer
from benchmarks.table import Table
from benchmarks.workloads import WORKLOADS
from notebook_probe.quantities.define.costs import FILE, Cell, MeasuredCost
from notebook_probe.quantities.table import built_in
from notebook_probe.run.attach.presets import presets

__all__ = ["OF_PRESETS", "add_arguments", "run"]


OF_PRESETS: dict[str, Make] = {
    **WORKLOADS,
    "MLP AdamW": lambda: with_optimizer(WORKLOADS["MLP"](), "AdamW"),
    "LeNet": SIZES["LeNet"],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser, workloads=OF_PRESETS, kinds=("presets", "quantities"))
    parser.add_argument("--names", default="*", help="glob of the names (default all)")
    parser.add_argument(
        "--save",
        type=Path,
        nargs="?",
        const=FILE,
        metavar="FILE",
        help="keep the results in a file, by default the package's own",
    )
    parser.add_argument("--again", action="store_true", help="measure what is in the file, too")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per preset, then one per quantity; the file is as far as the table is."""
    torch.set_num_threads(1)
    print("cost of presets and quantities, CPU, one thread: us per step and per cent of it\n")
    table = Table({"name": 32} | dict.fromkeys(chosen.workloads, 18))
    saved = Saved(chosen.save)
    for kind, measures in _measures().items():
        workloads = {"presets": OF_PRESETS, "quantities": WORKLOADS}[kind]
        saved.keep(kind, [*measures], [*workloads])
        for name in measures if kind in chosen.kinds else ():
            if fnmatchcase(name, chosen.names):
                cells = [
                    _cell(saved, chosen.again, kind, name, each) if each in workloads else ""
                    for each in chosen.workloads
                ]
                table.row(name, *map(_told, cells))
        saved.keep(kind, [*measures], [*workloads])


Measure: TypeAlias = "Callable[[Make], Cell]"


def _measures() -> dict[str, dict[str, Measure]]:
    """How each one is measured, in the order of the table."""
    return {
        "presets": {name: partial(of_preset, name) for name in presets},
        "quantities": {each.name: partial(of_quantity, each) for each in built_in()},
    }


def _cell(saved: Saved, again: bool, kind: str, name: str, workload: str) -> Cell:
    cell = None if again else saved.get(kind, name, workload)
    if cell is None:
        cell = _measures()[kind][name]((OF_PRESETS | WORKLOADS)[workload])
        saved.put(kind, name, workload, cell)
    return cell


def _told(cell: Cell) -> str:
    return f"{cell.us:9.3g} {cell.percent:6.2f} %" if isinstance(cell, MeasuredCost) else cell
