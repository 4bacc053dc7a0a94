"""Two long runs compared, from their pyramids, beside xarray that reads both whole.

Figures are CPU seconds of all threads, the first after opening and again with nothing new to read,
as a panel does. What is found is what was planted, or it raises.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks.table import Table
from notebook_probe.compare import PartingSearch, RatioGrid
from notebook_probe.record import OpenedRecord, RecordWriter, Variable

COLUMNS = {"what": 34, "first s": 9, "again s": 9}
N_NOISE = 4096
PLANTED, TIMES = 3, 4.0
"""Which module parts, and by how much."""
N_COLUMNS = 700
FLUSHED_ROWS = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=float, default=1e6, help="of each run (default 1e6)")
    parser.add_argument("--modules", type=int, default=100)


def run(chosen: argparse.Namespace) -> None:
    """Print what a comparison of two runs takes."""
    n, names = int(chosen.steps), [f"block{i}" for i in range(chosen.modules)]
    at = 6 * n // 10
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / f"{name}.zarr" for name in ("this", "other")]
        for place, begin in zip(places, (at, n), strict=True):
            _record(place, names, n, begin)
        print(f"two runs of {n:,} steps x {len(names)} modules, compared")
        table = Table(COLUMNS)
        this, other = map(OpenedRecord, places)
        grid = RatioGrid(this, [other], "grad_norm", n_columns=N_COLUMNS)
        table.row("ratio by module and column", *_twice(lambda: _cells(grid)))
        search = PartingSearch(this, [other], "grad_norm")
        table.row("where they part, to the row", *_twice(lambda: _found(search, at)))
        table.row("xarray: columns of both, all read", *_twice(lambda: _by_xarray(places, n)))


def _cells(grid: RatioGrid) -> None:
    grid.read_new()
    grid.grid()


def _found(search: PartingSearch, at: int) -> None:
    """Where they part is where it was planted."""
    found = search.found()
    if [(one.module, one.step) for one in found] != [(f"block{PLANTED}", at)]:
        raise AssertionError(f"planted at block{PLANTED} at step {at}: {found}")


def _by_xarray(places: list[Path], n: int) -> None:
    """The same cells from every value, a run at a time."""
    size = -(-n // N_COLUMNS)
    means = []
    for place in places:
        values = xr.open_zarr(place, group="scalars/every_1").grad_norm.to_numpy()
        whole = len(values) // size * size
        means.append(values[:whole].reshape(-1, size, values.shape[1]).mean(axis=1))
    rows = min(map(len, means))
    np.log10(means[0][:rows] / means[1][:rows])


def _twice(look: Callable[[], object]) -> tuple[str, str]:
    return _cpu_s(look), _cpu_s(look)


def _cpu_s(look: Callable[[], object]) -> str:
    begun = time.process_time()
    look()
    return f"{time.process_time() - begun:.2f}"


def _record(place: Path, names: list[str], n: int, begin: int) -> None:
    """Noise round 1; from step ``begin`` on one module is larger."""
    noise = np.random.default_rng(begin).lognormal(0, 0.2, (N_NOISE, 1, len(names)))
    rows = noise.astype(np.float32)
    larger = rows.copy()
    larger[:, 0, PLANTED] *= TIMES
    with RecordWriter(place, title=place.stem, modules=[], ring_bytes=256 << 20) as writer:
        stream = writer.stream("every_1")
        stream.extend(names, [Variable("grad_norm")])
        for step in range(n):
            row = (larger if step >= begin else rows)[step % N_NOISE]
            stream.record(step, step, row)
            if step % FLUSHED_ROWS == 0:
                writer.flush(60.0)
