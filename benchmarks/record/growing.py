"""A long run: what a flush costs and writes at its beginning and at its end, and the memory."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.record.made import Made, Noise
from benchmarks.table import Table

__all__ = ["run"]

SHAPE = (2, 4)
FLUSH_ROWS = 1_000
N_PARTS = 5
COLUMNS = {"steps": 10, "flush CPU ms": 12, "written/value": 13, "files": 6, "MB resident": 11}


@dataclass(frozen=True)
class Reading:
    """Of this process."""

    cpu_s: float
    written: int

    @classmethod
    def now(cls) -> Reading:
        io = Path("/proc/self/io").read_text().splitlines()
        fields = dict(line.split(": ") for line in io)
        return cls(time.process_time(), int(fields["wchar"]))


def run(chosen: argparse.Namespace) -> None:
    """Print a line per part of the run."""
    n_steps = int(chosen.steps)
    print(f"{n_steps:,} steps of {SHAPE[0] * SHAPE[1]} series, a flush every {FLUSH_ROWS:,}: CPU, ")
    print("bytes written per value (4 is the payload; compressing a full chunk writes it again)\n")
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        made, noise = Made(Path(folder) / "a.zarr", SHAPE), Noise(SHAPE)
        for _ in range(N_PARTS):
            table.row(*_part(made, noise, n_steps // N_PARTS))
        made.writer.close()


def _part(made: Made, noise: Noise, n_steps: int) -> list[str]:
    before, flushes = Reading.now(), []
    for _ in range(n_steps // FLUSH_ROWS):
        rows = noise.rows(FLUSH_ROWS)
        begun = time.process_time()
        made.append(rows)
        flushes.append(time.process_time() - begun)
    n_values = len(flushes) * FLUSH_ROWS * SHAPE[0] * SHAPE[1]
    n_files = sum(len(files) for _, _, files in os.walk(made.folder))
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return [
        f"{made.stream.n_rows:,}",
        f"{1e3 * float(np.median(flushes)):.2f}",
        f"{(Reading.now().written - before.written) / n_values:.2f}",
        f"{n_files}",
        f"{resident / 1e6:.0f}",
    ]
