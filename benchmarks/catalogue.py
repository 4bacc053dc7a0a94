"""A catalogue of many records: its first build, a question, one more, beside reading the records.

Records are commit records alone, of 13 quantities and 47 packages each, all noted. Figures are
seconds by the clock and of the processor, medians of the turns; the share is of parsing all root
files as JSON in the same process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import notebook_probe as nbp
from benchmarks.table import Table
from notebook_probe.catalogues import Catalogue
from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.finding.place import own_host
from notebook_probe.catalogues.index.index import Put
from notebook_probe.home import HOME
from notebook_probe.record import ModuleRow, RecordWriter, Variable
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.store.noted import note_place

COLUMNS = {"what": 40, "wall s": 9, "CPU s": 9, "of parsing": 11}
MODULES = [ModuleRow("", "Net", 10, 0, -1), ModuleRow("fc", "Linear", 10, 10, 0)]
LONG_AGO = 1_700_000_000
WHERE = "params.lr < 1e-3 and params.model.depth == 3 and state == 'finished'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--database", help="URL of one; by default SQLite in a temporary home")


def run(chosen: argparse.Namespace) -> None:
    """Print what a catalogue takes."""
    before = os.environ.get(HOME)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[HOME] = str(Path(folder, "home"))
        try:
            places = _records(Path(folder, "runs"), chosen.runs)
            _measure(places, chosen)
        finally:
            os.environ.pop(HOME)
            if before is not None:
                os.environ[HOME] = before


def _measure(places: list[Path], chosen: argparse.Namespace) -> None:
    print(
        f"{chosen.runs} records, root files of {(places[0] / 'zarr.json').stat().st_size:,} bytes"
    )
    table = Table(COLUMNS)
    parsing = 0.0

    def row(what: str, act: Callable[[], Any], turns: int = chosen.turns) -> float:
        wall, cpu = _taken(act, turns)
        table.row(what, f"{wall:.3f}", f"{cpu:.3f}", f"{cpu / (parsing or cpu):.3f}")
        return cpu

    def parse() -> None:
        for place in places:
            json.loads((place / "zarr.json").read_bytes())

    parsing = row("parse all root files as JSON", parse, 1)
    with nbp.catalogue(chosen.database) as cat:
        row("the first build", cat.refresh, 1)
        row("a look, nothing has changed", cat.refresh)
        row("a question with its look", lambda: cat.runs(WHERE, sort="best.loss", limit=20))
        found = len(cat.runs(WHERE))
        if not found:
            raise AssertionError("the question finds nothing")
        row("every run", cat.runs)
        _beyond_a_look(cat, places, row)


def _beyond_a_look(cat: Catalogue, places: list[Path], row: Callable[..., float]) -> None:
    """What one record costs: of a catalogue that asks for nothing else."""
    index, said_of = cat._index, dict[str, Any](tags=[], note="", archived=False)
    numbers = itertools.count()

    def keep(place: Path, name: str, **more: Any) -> None:
        read = read_document(place).row
        index.put([Put(own_host(), name, "1.1.1", False, {**read, **said_of, **more})])

    def add() -> None:
        keep(places[0], f"/new/{next(numbers)}")

    def alter() -> None:
        n = next(numbers)
        keep(places[n], str(places[n]), **{"last.loss": n + 0.5, "steps": n})

    row("to add one, beside the look", add)
    row("to change one, beside the look", alter)


def _taken(act: Callable[[], Any], turns: int) -> tuple[float, float]:
    taken = []
    for _ in range(turns):
        wall, cpu = time.perf_counter(), time.process_time()
        act()
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    walls, cpus = zip(*taken, strict=True)
    return median(walls), median(cpus)


def _records(folder: Path, n: int) -> list[Path]:
    """The commit record of one real run, with other settings each time."""
    real = folder / "real.zarr"
    _record(real)
    root = json.loads((real / "zarr.json").read_text())
    shutil.rmtree(real)
    shutil.rmtree(os.environ[HOME])
    places = [folder / f"{i}.zarr" for i in range(n)]
    for i, place in enumerate(places):
        settings = {"lr": 10.0 ** -(i % 5), "model": {"depth": i % 7, "width": 64}, "seed": i}
        root["attributes"] |= {"config": json.dumps(settings), "run_id": f"{i:032d}"}
        place.mkdir(parents=True)
        (place / "zarr.json").write_text(json.dumps(root, separators=(",", ":")))
        os.utime(place, (LONG_AGO, LONG_AGO))
        note_place(place)
    return places


def _record(place: Path) -> None:
    packages = {f"package{i}": "1.0" for i in range(47)}
    logged = [Variable(name, "1", LOGGED_BY) for name in ("loss", "lr", "eval_accuracy")]
    with RecordWriter(place, title="run", modules=MODULES) as writer:
        writer.annotate(packages=json.dumps(packages), git=json.dumps({"commit": "a" * 40}))
        stream = writer.stream("every_1")
        stream.extend([ROOT, "fc"], [*logged, *(Variable(f"q{i}") for i in range(10))])
        for step in range(50):
            stream.record(step, step, np.full(stream.shape, 1 / (step + 1), np.float32))
