"""Rows of one quantity in the order of steps, from all streams that have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats, Steps, StreamView

__all__ = ["Part", "merged_rows"]

Part = tuple[StreamView, int, int]
"""Rows ``first:stop`` of a stream."""


def merged_rows(
    parts: Sequence[Part], quantity: str, modules: Sequence[str]
) -> tuple[Steps, Floats]:
    """Return steps and values, (row,) and (row, module); unmeasured if a stream lacks a module."""
    read = [
        (stream.steps(a, b), _values(stream, a, b, quantity, modules)) for stream, a, b in parts
    ]
    if len(read) == 1:
        return read[0]
    steps = np.concatenate([np.empty(0, np.int64), *(steps for steps, _ in read)])
    values = np.concatenate([np.empty((0, len(modules)), np.float32), *(v for _, v in read)])
    # Stable: at one step, the first stream's row stays first.
    order = np.argsort(steps, kind="stable")
    return steps[order], values[order]


def _values(
    stream: StreamView, first: int, stop: int, quantity: str, modules: Sequence[str]
) -> Floats:
    known = set(stream.modules)
    held = [place for place, module in enumerate(modules) if module in known]
    if len(held) == len(modules):
        return stream.values(quantity, first, stop, modules)
    values = np.full((stop - first, len(modules)), NOT_MEASURED, np.float32)
    values[:, held] = stream.values(quantity, first, stop, [modules[place] for place in held])
    return values
