"""Records of noisy series, of any number of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from notebook_probe.record import ModuleRow, RecordWriter, StreamWriter, Variable
from notebook_probe.record.format.source import Floats

__all__ = ["SHAPES", "Made", "Noise"]

SHAPES = {100: (10, 10), 1_000: (10, 100), 10_000: (10, 1_000)}
"""(quantities, modules) by the number of series."""
RING_BYTES = 256 << 20
NEVER_S = 3600.0


class Noise:
    """Values about 1, as of a noisy metric, never the same twice: a codec finds no repetition."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._random = np.random.default_rng(0)

    def rows(self, n: int) -> Floats:
        """The next rows, (row, quantity, module)."""
        return self._random.normal(1.0, 0.1, (n, *self._shape)).astype(np.float32)


class Made:
    """A record that is being made, flushed when told to."""

    def __init__(self, folder: Path, shape: tuple[int, int]) -> None:
        n_quantities, n_modules = shape
        names = [f"layers.{i}" for i in range(n_modules)]
        self.folder = folder
        self.writer = RecordWriter(
            folder,
            title="benchmark",
            modules=[ModuleRow(name, "Linear", 1, 1, -1) for name in names],
            flush_s=NEVER_S,
            flush_rows=10**9,
            ring_bytes=RING_BYTES,
        )
        self.stream: StreamWriter = self.writer.stream("every_1")
        self.stream.extend(names, [Variable(f"quantity_{i}") for i in range(n_quantities)])

    def append(self, rows: Floats) -> None:
        """Record rows and wait until they are published."""
        first = self.stream.n_rows
        for step, row in enumerate(rows, first):
            self.stream.record(step, step, row)
        if not self.writer.flush(600):
            raise RuntimeError(self.writer.last_error)
