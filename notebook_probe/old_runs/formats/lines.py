"""Lines of a text file of unknown origin, and the columns in which steps and times are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from notebook_probe.old_runs.allowance import SpentError
from notebook_probe.old_runs.points import Points

__all__ = ["STEP_NAMES", "lines_of", "milliseconds", "step_column", "step_of", "time_column"]

LONGEST_LINE = 1 << 20
STEP_NAMES = (
    "_step",
    "step",
    "global_step",
    "trainer/global_step",
    "train/global_step",
    "iteration",
    "iter",
    "update",
    "epoch",
)
"""Names of the column with the steps, in lower case, in the order of preference."""
TIME_NAMES = ("_timestamp", "timestamp", "wall_time", "wall time", "time", "created_at")
SECONDS = (1e9, 1e11)
"""Range of seconds since 1970 that are believed: from 2001 on; the same in milliseconds."""


def lines_of(path: Path, points: Points) -> Iterator[str]:
    """Yield the complete lines of a file.

    A last line without an end may be cut anywhere while the file grows, so it is left out then.

    Raises
    ------
    SpentError
        The file is too large, or has a line that is.
    """
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            points.allowance.take_bytes(len(line))
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE:
                    raise SpentError(f"a line is longer than {LONGEST_LINE:,} bytes")
                if points.is_growing:
                    return
            yield line.decode("utf-8-sig", errors="replace")


def step_column(names: Iterable[str]) -> str | None:
    """Return the name of the column with the steps; None if there is none.

    Examples
    --------
    >>> step_column(["loss", "Epoch", "Step"]), step_column(["loss"])
    ('Step', None)
    """
    return _first(names, STEP_NAMES)


def time_column(names: Iterable[str]) -> str | None:
    """Return the name of the column that may have wall times."""
    return _first(names, TIME_NAMES)


def _first(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    folded = {name.strip().lower(): name for name in reversed([*names])}
    return next((folded[one] for one in wanted if one in folded), None)


def step_of(value: Any) -> int | None:
    """Return a step; None for what is no whole number.

    Examples
    --------
    >>> step_of("12"), step_of(3.0), step_of("x"), step_of(True), step_of(0.5)
    (12, 3, None, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None


def milliseconds(value: Any) -> float:
    """Return a wall time in milliseconds since 1970; 0 for anything else.

    Examples
    --------
    >>> milliseconds(1.7e9), milliseconds("2023-11-14T22:13:20+00:00"), milliseconds(12.5)
    (1700000000000.0, 1700000000000.0, 0.0)
    """
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp() * 1000.0
        except (ValueError, OverflowError, OSError):
            pass
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    low, high = SECONDS
    if low <= number < high:
        return number * 1000.0
    return number if low * 1000.0 <= number < high * 1000.0 else 0.0
