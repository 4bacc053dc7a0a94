"""Row of a run in a list: its start, steps, loss, and what it differs in."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from notebook_probe.errors import ProbeError
from notebook_probe.json_numbers import json_number
from notebook_probe.lineage.progress import begun_ms, n_steps, scalar_of
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["RunRow", "run_row", "unread_row"]

N_POINTS = 54
"""Points of the loss line, which is as wide in pixels."""


class RunRow(TypedDict):
    """Row of one record."""

    run: str
    """Location of the run, by which it is chosen."""
    name: str
    begun_ms: int
    """Start in milliseconds since 1970; 0 if the record does not say."""
    steps: int
    finished: bool
    scalar: str
    """Scalar that the line shows; empty if none was logged."""
    line: list[float | None]
    last: float | None
    """Last value of the line; None if NaN or infinite."""
    differs: str
    problem: str
    """Reason why the record cannot be read; the other fields are empty then."""


def unread_row(location: str, name: str, problem: str = "") -> RunRow:
    """Return the row of a record that is not read yet, or cannot be."""
    return {
        "run": location,
        "name": name,
        "begun_ms": 0,
        "steps": 0,
        "finished": True,
        "scalar": "",
        "line": [],
        "last": None,
        "differs": "",
        "problem": problem,
    }


def run_row(location: str, name: str, run: RunSource, differs: str, problem: str = "") -> RunRow:
    """Return the row of a record, reading only a few of its numbers."""
    scalar = scalar_of(run)
    line, last = line_of(run, scalar) if scalar else ([], None)
    return {
        "run": location,
        "name": name,
        "begun_ms": begun_ms(run.snapshot().attrs),
        "steps": n_steps(run),
        "finished": run.finished,
        "scalar": scalar,
        "line": line,
        "last": last,
        "differs": differs,
        "problem": problem,
    }


def line_of(source: Source, scalar: str) -> tuple[list[float | None], float | None]:
    """Return a few points of a scalar, and its last value; None where it is not finite."""
    try:
        found = source.thinned("", scalar, n_points=N_POINTS)
    except ProbeError:  # it has a column, and no value in it
        return [], None
    lost = found.nonfinite
    # Lost values are put back at their steps: a run that ended in NaN must not look healthy.
    x = np.concatenate([found.x, lost])
    y = np.concatenate([found.y, np.full(len(lost), np.nan)])[np.argsort(x, kind="stable")]
    kept = y[-2 * N_POINTS :]
    values = [json_number(one) for one in kept]
    return values, values[-1] if values else None
