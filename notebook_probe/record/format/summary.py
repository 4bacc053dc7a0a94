"""Summary of a run, in one small attribute of the root.

A reader of thousands of runs reads one file of each. A writer updates the summary with the rows
that it publishes, at a cost that does not grow with them, and publishes it in the same commit, so
that it describes exactly the rows that a reader finds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from notebook_probe.json_numbers import json_value
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.notes import ALERT, CHECKPOINT
from notebook_probe.record.format.source import Event, Floats, Steps

__all__ = ["MOST_SCALARS", "SUMMARY", "Scalar", "Summary", "scalars_of"]

SUMMARY = "summary"
"""Attribute of the root: a JSON text."""
MOST_READ = 2**22
"""Maximum characters of a summary that is read: one with the maximum of names is shorter."""
MOST_SCALARS = 200
"""Maximum number of names in a summary; the root is written again at each flush."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """Ends and extremes of a scalar over the steps at which it was measured."""

    first_step: int
    first: float
    last_step: int
    last: float
    low: float
    """The least that is finite; NaN where none is."""
    high: float

    def joined(self, other: Scalar) -> Scalar:
        """Merge the scalar over two ranges of steps; where both have a step, ``other`` counts.

        Examples
        --------
        >>> Scalar(0, 3.0, 4, 1.0, 1.0, 3.0).joined(Scalar(5, 2.0, 6, math.nan, 2.0, 2.0))
        Scalar(first_step=0, first=3.0, last_step=6, last=nan, low=1.0, high=3.0)
        """
        begun = other if other.first_step <= self.first_step else self
        ended = other if other.last_step >= self.last_step else self
        # fmin and fmax ignore NaN, which means "nothing finite".
        low = float(np.fmin(self.low, other.low))
        high = float(np.fmax(self.high, other.high))
        return Scalar(begun.first_step, begun.first, ended.last_step, ended.last, low, high)


@dataclass(frozen=True, slots=True)
class Summary:
    """A run as of one commit.

    Attributes
    ----------
    n_rows : int
        Rows of all streams that were published with it: a summary of another number is of another
        commit, such as one of a writer that knows of no summaries.
    steps : int
        Updates completed.
    updated_ms : int
        Time of the last row, in milliseconds since 1970; 0 if there is none.
    alerts : mapping of str to int
        Number of alerts, by rule.
    scalars, states : mapping of str to Scalar
        Logged scalars of steps and of states, by name.
    """

    n_rows: int = 0
    steps: int = 0
    updated_ms: int = 0
    size_bytes: int = 0
    n_checkpoints: int = 0
    alerts: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    states: Mapping[str, Scalar] = field(default_factory=dict)

    def with_scalars(self, found: Mapping[str, Scalar], *, of_states: bool) -> Summary:
        """Merge further scalars, up to `MOST_SCALARS` names."""
        known = dict(self.states if of_states else self.scalars)
        for name, scalar in found.items():
            before = known.get(name)
            if before is not None:
                known[name] = before.joined(scalar)
            elif len(known) < MOST_SCALARS:
                known[name] = scalar
        return replace(self, states=known) if of_states else replace(self, scalars=known)

    def with_ends(self, ends: Iterable[tuple[int, int]]) -> Summary:
        """Merge pairs of completed updates and the time of that row."""
        steps, times = zip((self.steps, self.updated_ms), *ends, strict=True)
        return replace(self, steps=max(steps), updated_ms=max(times))

    def with_events(self, events: Iterable[Event]) -> Summary:
        """Merge further events."""
        alerts, n_checkpoints = dict(self.alerts), self.n_checkpoints
        for event in events:
            n_checkpoints += event.kind == CHECKPOINT
            if event.kind == ALERT:
                rule = _rule(event.detail)
                alerts[rule] = alerts.get(rule, 0) + 1
        return replace(self, alerts=alerts, n_checkpoints=n_checkpoints)

    def text(self) -> str:
        """Return the summary as the text of the root's attribute."""
        parts = {
            "rows": self.n_rows,
            "steps": self.steps,
            "updated": self.updated_ms,
            "bytes": self.size_bytes,
            "checkpoints": self.n_checkpoints,
            "alerts": dict(self.alerts),
            "scalars": {name: _written(one) for name, one in self.scalars.items()},
            "states": {name: _written(one) for name, one in self.states.items()},
        }
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def read(cls, attrs: Mapping[str, Any]) -> Self | None:
        """Read the summary in a root's attributes; None if there is none or it is invalid."""
        try:
            if len(attrs[SUMMARY]) > MOST_READ:
                return None
            found = json.loads(attrs[SUMMARY])
            return cls(
                n_rows=int(found["rows"]),
                steps=int(found["steps"]),
                updated_ms=int(found["updated"]),
                size_bytes=int(found["bytes"]),
                n_checkpoints=int(found["checkpoints"]),
                alerts={str(rule): int(n) for rule, n in found["alerts"].items()},
                scalars={str(name): _read(one) for name, one in found["scalars"].items()},
                states={str(name): _read(one) for name, one in found["states"].items()},
            )
        # A summary from elsewhere may hold anything; a record is readable without it.
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def scalars_of(names: Sequence[str], steps: Steps, values: Floats) -> dict[str, Scalar]:
    """Return the summary of each name, from values (row, name) in rows of growing steps.

    Examples
    --------
    >>> scalars_of(["loss"], np.array([0, 2]), np.array([[0.5], [0.25]], np.float32))["loss"]
    Scalar(first_step=0, first=0.5, last_step=2, last=0.25, low=0.25, high=0.5)
    """
    if not len(steps) or not len(names):
        return {}
    there, finite = measured(values), np.isfinite(values)
    # argmax finds the first True of each column.
    begun, ended = there.argmax(0), len(steps) - 1 - there[::-1].argmax(0)
    low = np.where(finite, values, np.inf).min(0)
    high = np.where(finite, values, -np.inf).max(0)
    return {
        name: Scalar(
            int(steps[begun[i]]),
            _short(values[begun[i], i]),
            int(steps[ended[i]]),
            _short(values[ended[i], i]),
            _short(low[i] if finite[:, i].any() else np.float32(math.nan)),
            _short(high[i] if finite[:, i].any() else np.float32(math.nan)),
        )
        for i, name in enumerate(names)
        if there[:, i].any()
    }


def _rule(detail: str) -> str:
    try:
        return str(json.loads(detail)["rule"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _short(value: np.float32) -> float:
    """Return the shortest decimal of this float32: mostly the number that was logged."""
    return float(str(np.float32(value)))


def _written(scalar: Scalar) -> list[float | str]:
    values = (scalar.first, scalar.last, scalar.low, scalar.high)
    return [scalar.first_step, scalar.last_step, *map(json_value, values)]


def _read(parts: list[float | str]) -> Scalar:
    first_step, last_step, first, last, low, high = parts
    values = float(first), float(last), float(low), float(high)
    return Scalar(int(first_step), values[0], int(last_step), *values[1:])
