"""What the training thread feels: one row recorded, and a step with the writer at work beside."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.pairs import paired
from benchmarks.record.made import SHAPES, Made, Noise
from benchmarks.table import Table

__all__ = ["run"]

LIMITS_US = {100: 3.0, 1_000: 4.0, 10_000: 15.0}
LIMIT_RATIO = 1.03
BYTES = 200e6
"""Recorded for a median: much more than the writer keeps, whose memory is used again."""
FLUSH_CALLS = 500
COLUMNS = {"series": 6, "record() us": 11, "target": 6, "met": 3, "step ratio": 10, "bound": 5}


def run(chosen: argparse.Namespace) -> None:
    """Print a line per number of series."""
    print("one row recorded, p50; and a step of 1 ms that records one, against one that does not\n")
    table = Table({**COLUMNS, "met ": 3})
    for n_series, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            made, rows = Made(Path(folder) / "a.zarr", shape), Noise(shape).rows(64)
            microseconds, ratio = _call_us(made, rows), _step_ratio(made, rows)
            made.writer.close()
        limit = LIMITS_US[n_series]
        table.row(
            f"{n_series}",
            f"{microseconds:.2f}",
            f"<= {limit:g}",
            "yes" if microseconds <= limit else "NO",
            f"{ratio:.3f}",
            f"<= {LIMIT_RATIO}",
            "yes" if ratio <= LIMIT_RATIO else "NO",
        )


def _call_us(made: Made, rows: np.ndarray) -> float:
    """Median of single calls; the writer is asked to flush now and then, outside the clock."""
    n_calls = min(100_000, int(BYTES / rows[0].nbytes))
    record, taken = made.stream.record, np.empty(n_calls)
    for step in range(n_calls):
        row = rows[step % len(rows)]
        begun = time.perf_counter_ns()
        record(step, step, row)
        taken[step] = time.perf_counter_ns() - begun
        if step % FLUSH_CALLS == 0:
            made.writer.flush(600)
    return float(np.median(taken)) / 1e3


def _step_ratio(made: Made, rows: np.ndarray) -> float:
    """Of a step of about a millisecond, both with the writer's thread flushing beside it."""
    matrix = np.random.default_rng(0).random((160, 160))
    stream = made.stream

    def plain() -> None:
        for _ in range(4):
            matrix @ matrix

    def recording() -> None:
        plain()
        step = stream.n_rows
        stream.record(step, step, rows[step % len(rows)])

    return paired(recording, plain, seconds=3, at_most=3_000).ratio()
