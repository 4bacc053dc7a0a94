"""A small model's module table, and rows whose every value tells where it belongs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings

from notebook_probe.axis import Axis
from notebook_probe.record import ModuleRow, RecordWriter, StreamWriter, Variable
from notebook_probe.record.format.source import Floats

MODULES = (
    ModuleRow("", "Net", 30, 0, -1),
    ModuleRow("conv1", "Conv2d", 10, 10, 0),
    ModuleRow("conv2", "Conv2d", 15, 15, 0),
    ModuleRow("fc", "Linear", 5, 5, 0),
)
GRAD, WEIGHT = Variable("grad_norm", "1", "norm of the gradient"), Variable("weight_norm")
LAW = settings(
    deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
"""The same examples every time, on a busy machine too."""
BINS = Axis(
    "bin",
    {"bin": (-1.0, 0.0, math.inf), "bin_lo": (-2.0, -0.5, math.nan), "bin_hi": (-0.5, 0.5, 1e30)},
    group="hist",
)
COUNTS = Variable("counts", "1", "elements per bin")
NEVER_S = 3600.0
"""A flush interval that does not come by itself."""


def new_writer(
    folder: Path,
    flush_s: float = NEVER_S,
    ring_bytes: int = 32 << 20,
    resume: bool | int | str | None = None,
) -> RecordWriter:
    return RecordWriter(
        folder,
        title="run",
        modules=MODULES,
        flush_s=flush_s,
        ring_bytes=ring_bytes,
        resume=resume,
    )


def row(stream: StreamWriter, step: int) -> Floats:
    """The row of ``step``: value (variable, module) = step + 1000 * variable + 100 * module."""
    n_variables, n_modules, *_ = stream.shape
    places = 1000 * np.arange(n_variables)[:, None] + 100 * np.arange(n_modules)
    return (places + step).astype(np.float32)


def vectors(stream: StreamWriter, step: int) -> Floats:
    """As `row`, and each bin adds 1 / 1024: the values of a stream with an axis."""
    n_bins = stream.shape[2]
    places = 1000 * np.arange(stream.shape[0])[:, None] + 100 * np.arange(stream.shape[1])
    return (places[..., None] + np.arange(n_bins) / 1024 + step).astype(np.float32)


def fill(stream: StreamWriter, steps: range) -> None:
    for step in steps:
        assert stream.record(step, 1_700_000_000_000 + step, row(stream, step))


def fill_vectors(stream: StreamWriter, steps: range) -> None:
    for step in steps:
        assert stream.record(step, 1_700_000_000_000 + step, vectors(stream, step))
