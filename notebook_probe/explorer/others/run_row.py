"""One run of a list in a row: when it was begun, how far it came, its loss, what it differs in."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from notebook_probe.compare.axes import Run
from notebook_probe.errors import ProbeError
from notebook_probe.lineage.progress import begun_ms, n_steps, scalar_of
from notebook_probe.record.format.source import Source

__all__ = ["RunRow", "run_row", "unread_row"]

N_POINTS = 54
"""Of the line of the loss, which is as wide in pixels."""


class RunRow(TypedDict):
    """One record."""

    run: str
    """Its location, by which it is chosen."""
    name: str
    begun_ms: int
    """Since 1970; 0 where the record does not say."""
    steps: int
    finished: bool
    scalar: str
    """Of which scalar the line is; empty where none was logged."""
    line: list[float | None]
    last: float | None
    """Of the line; None where it is NaN or infinite."""
    differs: str
    problem: str
    """Why it cannot be read; the rest says nothing then."""


def unread_row(location: str, name: str, problem: str = "") -> RunRow:
    """Of a record that is not read yet, or cannot be."""
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


def run_row(location: str, name: str, run: Run, differs: str, problem: str = "") -> RunRow:
    """Of one that can be read; a few numbers of it are read, and no more."""
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
    """The scalar in few points of its rows, and its last value; None for what is not finite."""
    try:
        found = source.thinned("", scalar, n_points=N_POINTS)
    except ProbeError:  # it has a column, and no value in it
        return [], None
    lost = found.nonfinite
    x = np.concatenate([found.x, lost])
    y = np.concatenate([found.y, np.full(len(lost), np.nan)])[np.argsort(x, kind="stable")]
    kept = y[-2 * N_POINTS :]
    values = [float(one) if np.isfinite(one) else None for one in kept]
    return values, values[-1] if values else None
