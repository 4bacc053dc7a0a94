"""Sustained writing beside xarray's append, in the same chunks and codec, and TensorBoard.

The writers take turns, batch by batch, in one process; what each took is its processor time, of
all its threads. Ours includes the pyramid, compressing full chunks, and closing.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from zarr.codecs import BloscCodec

from benchmarks.record.made import SHAPES, Made, Noise
from benchmarks.table import Table
from notebook_probe.record.format.chunk_sizes import LARGE
from notebook_probe.record.format.schema import width
from notebook_probe.record.format.source import Floats

__all__ = ["run"]

BATCH_VALUES = 100_000
OF_XARRAY = {100: 8.0, 1_000: 8.0, 10_000: 40.0}
OF_TENSORBOARD = 100.0
SUSTAINED = 5e6
BYTES_PER_VALUE = 3.6
PEER_BATCHES = 5
BOARD_VALUES = 20_000
COLUMNS = {
    "series": 6,
    "values/s": 8,
    "per CPU s": 9,
    "bytes/value": 11,
    "x xarray": 8,
    "x TensorBoard": 13,
    "x its bytes": 11,
    "met": 3,
}


@dataclass
class Taken:
    """What writing took, batch by batch."""

    n_values: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    per_value: list[float] = field(default_factory=list)

    def measure(self, n_values: int, write: Callable[[], None]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        write()
        cpu_s = time.process_time() - cpu
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += cpu_s
        self.n_values += n_values
        if n_values:
            self.per_value.append(cpu_s / n_values)

    @property
    def median(self) -> float:
        """CPU seconds per value."""
        return float(np.median(self.per_value)) if self.per_value else math.nan


def run(chosen: argparse.Namespace) -> None:
    """Print a line per number of series."""
    print(f"{chosen.values:.0e} noisy values in batches of {BATCH_VALUES:,}, each published; ")
    print(f"targets: values/s >= {SUSTAINED:.0e}, bytes/value <= {BYTES_PER_VALUE}, x xarray >=")
    print(
        f"{'/'.join(f'{n:g}' for n in OF_XARRAY.values())}, x TensorBoard >= {OF_TENSORBOARD:g}\n"
    )
    table = Table(COLUMNS)
    for n_series, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            table.row(f"{n_series}", *_figures(Path(folder), n_series, shape, chosen.values))


def _figures(folder: Path, n_series: int, shape: tuple[int, int], n_values: float) -> list[str]:
    noise, n_rows = Noise(shape), BATCH_VALUES // n_series
    made, append = Made(folder / "ours.zarr", shape), XarrayAppend(folder / "xarray.zarr", shape)
    made.append(noise.rows(n_rows))  # both have made their files
    append(noise.rows(n_rows))
    ours, xarrays, boards = Taken(), Taken(), Taken()
    for batch in range(int(n_values) // BATCH_VALUES):
        rows = noise.rows(n_rows)
        ours.measure(BATCH_VALUES, partial(made.append, rows))
        if batch < PEER_BATCHES:
            xarrays.measure(BATCH_VALUES, partial(append, rows))
    ratio = xarrays.median / ours.median
    ours.measure(0, made.writer.close)
    if find_spec("tensorboard"):
        rows = noise.rows(max(1, BOARD_VALUES // n_series))
        boards.measure(rows.size, partial(_tensorboard, folder / "board", rows))
    bytes_per_value = made.writer.nbytes / (ours.n_values + BATCH_VALUES)
    board_bytes = _nbytes(folder / "board") / max(1, boards.n_values)
    met = (
        ratio >= OF_XARRAY[n_series]
        and ours.n_values / ours.wall_s >= SUSTAINED
        and bytes_per_value <= BYTES_PER_VALUE
        and not boards.median < OF_TENSORBOARD * ours.cpu_s / ours.n_values
    )
    return [
        f"{ours.n_values / ours.wall_s:.1e}",
        f"{ours.n_values / ours.cpu_s:.1e}",
        f"{bytes_per_value:.2f}",
        f"{ratio:.0f}",
        f"{boards.median * ours.n_values / ours.cpu_s:.0f}" if boards.n_values else "absent",
        f"{bytes_per_value / board_bytes:.3f}" if boards.n_values else "",
        "yes" if met else "NO",
    ]


class XarrayAppend:
    """Appends rows as `xarray.Dataset.to_zarr` does it."""

    def __init__(self, folder: Path, shape: tuple[int, int]) -> None:
        self._folder = folder
        self._names = [f"quantity_{i}" for i in range(shape[0])]
        self._n_rows = 0
        chunk_width = width(shape[1])
        chunks = LARGE.values // chunk_width, chunk_width
        codec = BloscCodec(cname="zstd", clevel=1, shuffle="shuffle", typesize=4)
        encoding: dict[str, Any] = {
            name: {"chunks": chunks, "compressors": [codec]} for name in self._names
        }
        self._how: dict[str, Any] = {"encoding": {**encoding, "step": {"chunks": (LARGE.index,)}}}

    def __call__(self, rows: Floats) -> None:
        steps = np.arange(self._n_rows, self._n_rows + len(rows))
        variables = {name: (("step", "module"), rows[:, i]) for i, name in enumerate(self._names)}
        data = xr.Dataset(variables, coords={"step": steps})
        data.to_zarr(self._folder, consolidated=False, **self._how)
        self._how = {"append_dim": "step"}
        self._n_rows += len(rows)


def _tensorboard(folder: Path, rows: Floats) -> None:
    """A call per number, as there is no other."""
    from torch.utils.tensorboard import SummaryWriter

    _, n_quantities, n_modules = rows.shape
    names = [f"q{i}/layers.{j}" for i in range(n_quantities) for j in range(n_modules)]
    writer = SummaryWriter(str(folder))
    for step, row in enumerate(rows):
        for name, value in zip(names, row.ravel().tolist(), strict=True):
            writer.add_scalar(name, value, step)
    writer.close()


def _nbytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
