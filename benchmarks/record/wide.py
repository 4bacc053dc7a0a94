"""Opening a record of 50 quantities of 10,000 modules, and publishing a row of it."""

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

SHAPE = (50, 10_000)
N_TIMES = 7
COLUMNS = {"what": 30, "p50 ms": 8, "target": 7, "met": 3}


def run(chosen: argparse.Namespace) -> None:
    """Print a line per way of opening."""
    print(f"{SHAPE[0]} quantities x {SHAPE[1]:,} modules\n")
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zarr"
        made, rows = Made(path, SHAPE), Noise(SHAPE).rows(1)
        made.append(rows)
        flush_ms = _p50_ms(lambda: made.append(rows))
        ways: dict[str, Callable[[], object]] = {
            "open_record": lambda: open_record(path),
            "xarray.open_zarr": lambda: xr.open_zarr(path, group="scalars/every_1"),
        }
        for name, open_it in ways.items():
            p50 = _p50_ms(open_it)
            table.row(name, f"{p50:.0f}", "<= 200", "yes" if p50 <= 200 else "NO")
        table.row("one more row published", f"{flush_ms:.0f}")
        size = (path / "zarr.json").stat().st_size
        table.row(f"root metadata: {size / 1e3:.0f} kB")
        begun = time.perf_counter()
        made.writer.close()
        table.row("closing", f"{1e3 * (time.perf_counter() - begun):.0f}")


def _p50_ms(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(N_TIMES):
        begun = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - begun))
    return float(np.median(taken))
