"""Reading a long run with plain xarray, and thinned."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks.record.made import Made, Noise
from benchmarks.table import Table
from notebook_probe.record import open_record

__all__ = ["run"]

SHAPE = (1, 100)
GROUP, QUANTITY, MODULE = "scalars/every_1", "quantity_0", 57
N_POINTS, ZOOM = 1_000, 20_000
N_TIMES = 15
COLUMNS = {"read": 34, "p50 ms": 6, "best": 6, "target": 6, "met": 3}


def run(chosen: argparse.Namespace) -> None:
    """Print a line per way of reading."""
    n_steps = int(chosen.steps)
    print(
        f"{n_steps:,} steps x {SHAPE[1]} series, closed; the disk's cache is warm, ours is empty\n"
    )
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        made, noise = Made(Path(folder) / "a.zarr", SHAPE), Noise(SHAPE)
        while made.stream.n_rows < n_steps:
            made.append(noise.rows(min(50_000, n_steps - made.stream.n_rows)))
        made.writer.close()
        for name, (read, limit) in _reads(made.folder, n_steps).items():
            taken = [_taken_ms(read) for _ in range(N_TIMES)]
            p50 = float(np.median(taken))
            met = "yes" if p50 <= limit else "NO"
            table.row(name, f"{p50:.1f}", f"{min(taken):.1f}", f"<= {limit:g}", met)


def _reads(folder: Path, n_steps: int) -> dict[str, tuple[Callable[[], object], float]]:
    data = xr.open_dataset(folder, engine="zarr", group=GROUP, cache=False)
    record, values = open_record(folder), data[QUANTITY]
    middle = n_steps // 2

    def thinned(start: int, stop: int) -> object:
        return record.thinned(f"layers.{MODULE}", QUANTITY, start, stop, N_POINTS)

    return {
        "open, plain xarray": (lambda: xr.open_zarr(folder, group=GROUP), 40.0),
        "one series, plain xarray": (lambda: values[:, MODULE].to_numpy(), 60.0),
        f"{ZOOM:,} steps of it": (lambda: values[middle : middle + ZOOM, MODULE].to_numpy(), 6.0),
        "one step of all": (lambda: values[middle].to_numpy(), 40.0),
        f"thinned to {N_POINTS:,} points": (lambda: thinned(0, n_steps), 10.0),
        f"{ZOOM:,} steps, thinned": (lambda: thinned(middle, middle + ZOOM), 10.0),
    }


def _taken_ms(read: Callable[[], object]) -> float:
    begun = time.perf_counter()
    read()
    return 1e3 * (time.perf_counter() - begun)
