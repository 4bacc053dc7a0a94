"""A table of many runs, beside opening their records.

Figures are CPU seconds of all threads; opening and reading take turns, and the share is the median
of those of the turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from benchmarks.table import Table
from notebook_probe.figures import parallel
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import view_of
from notebook_probe.record import ModuleRow, OpenedRecord, RecordWriter, Variable
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import ROOT

COLUMNS = {"what": 34, "CPU s": 9, "of opening": 12}
MODULES = [ModuleRow("", "Net", 10, 0, -1), ModuleRow("fc", "Linear", 10, 10, 0)]

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2000, help="of each run (default 2000)")
    parser.add_argument("--turns", type=int, default=5)


def run(chosen: argparse.Namespace) -> None:
    """Print what a table of many runs takes."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / f"{n}.zarr" for n in range(chosen.runs)]
        for n, place in enumerate(places):
            _record(place, n, chosen.steps)
        print(f"{chosen.runs} runs of {chosen.steps:,} steps")
        table = Table(COLUMNS)
        steps: dict[str, list[float]] = {}
        for _ in range(chosen.turns):
            _turn(places, steps)
        opening = steps["open the records"]
        for what, taken in steps.items():
            shares = [one / whole for one, whole in zip(taken, opening, strict=True)]
            table.row(what, f"{median(taken):.2f}", f"{median(shares):.2f}")


def _turn(places: list[Path], steps: dict[str, list[float]]) -> None:
    def taken(what: str, act: Callable[[], T]) -> T:
        begun = time.process_time()
        found = act()
        steps.setdefault(what, []).append(time.process_time() - begun)
        return found

    records = taken("open the records", lambda: [OpenedRecord(place) for place in places])
    rows = taken("read their rows", lambda: LineageTable.read(records))
    best = rows.sort("eval.accuracy", descending=True)
    if best["eval.accuracy"] != sorted(rows["eval.accuracy"], reverse=True):
        raise AssertionError("the table is not in order")
    taken("as HTML", best._repr_html_)
    taken("what its widget shows", lambda: view_of(rows))
    columns = {one: rows[one] for one in ("config.lr", "loss.last", "eval.accuracy")}
    taken("parallel coordinates", lambda: parallel(columns, "eval.accuracy"))


def _record(place: Path, n: int, n_steps: int) -> None:
    """A loss that falls, a config, and what came of an evaluation."""
    losses = 1 / np.arange(1, n_steps + 1, dtype=np.float32)
    packages = {f"package{i}": "1.0" for i in range(40)}
    lineage = {
        "train": {"network": "Net", "epoch": n % 5},
        "eval": {"metrics": {"accuracy": n / 7}},
    }
    with RecordWriter(place, title=place.stem, modules=MODULES, ring_bytes=32 << 20) as writer:
        notes = {"config": {"lr": 10.0 ** -(n % 5), "depth": n % 3}, "packages": packages}
        texts = {name: json.dumps(one) for name, one in {**notes, "lineage": lineage}.items()}
        writer.annotate(**texts)
        stream = writer.stream("every_1")
        stream.extend([ROOT], [Variable("loss", "1", LOGGED_BY)])
        for step, loss in enumerate(losses):
            stream.record(step, step, np.full((1, 1), loss))
        writer.event(0, "dataset_graph", "data")
