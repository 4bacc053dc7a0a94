"""Rounds: rows in which modules took turns, joined so that each has a value of every module.

A run that keeps to a budget measures a part of the modules in one step and another part in a later
one. A rule compares modules, and rows with those before them: it sees one row for each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.alerts.rolling import Doubles
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["JoinedRows", "Rounds", "joined"]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Rows of a stream, those of a round joined.

    Attributes
    ----------
    steps : (row,)
        Step of the last row of each round.
    values : (row, module)
    at : (row, module)
        Step at which each value was measured.
    first : (row, module)
        First values, as far as they are known.
    """

    steps: Steps
    values: Floats
    at: npt.NDArray[np.int64]
    first: Doubles


@dataclass(slots=True)
class _Round:
    step: int
    values: Floats
    at: npt.NDArray[np.int64]
    first: Doubles

    def widen(self, n_modules: int) -> None:
        """Make room for modules that are new."""
        new = (0, n_modules - len(self.values))
        self.values = np.pad(self.values, new, constant_values=NOT_MEASURED)
        self.at = np.pad(self.at, new, constant_values=self.step)
        self.first = np.pad(self.first, new, constant_values=np.nan)

    def add(self, other: _Round, present: Mask) -> None:
        """Take the values of a later row."""
        self.step, self.first = other.step, other.first
        self.values = np.where(present, other.values, self.values)
        self.at = np.where(present, other.at, self.at)


class Rounds:
    """The joined rows of one series, and the round that is not complete yet."""

    def __init__(self) -> None:
        self._open: _Round | None = None
        self._usual: Mask = np.zeros(0, bool)
        """Modules of the last round."""

    def join(self, steps: Steps, values: Floats, first: Doubles, in_turns: Mask) -> JoinedRows:
        """Return the rounds that are complete with these rows; a row without turns is one."""
        at = np.repeat(steps[:, None], values.shape[1], axis=1)
        if self._open is None and not in_turns.any():
            return JoinedRows(steps, values, at, first)
        done: list[_Round] = []
        for i, takes_turns in enumerate(in_turns):
            row = _Round(int(steps[i]), values[i], at[i], first[i])
            done += self._add(row) if takes_turns else [*self.end(), row]
        return joined(done, values.shape[1])

    def end(self) -> list[_Round]:
        """Return the open round, which is not continued, if there is one."""
        if self._open is None:
            return []
        ended, self._open = self._open, None
        self._usual = measured(ended.values)
        return [ended]

    def _add(self, row: _Round) -> list[_Round]:
        """Add a row to the open round, and return the rounds that are complete."""
        present = measured(row.values)
        if not present.any():  # a row of other series
            return []
        done: list[_Round] = []
        if self._open is not None:
            self._open.widen(len(present))
            again = present & measured(self._open.values)
            if 2 * again.sum() >= present.sum():  # it is the turn of the same modules
                done += self.end()
        if self._open is None:
            self._open = row
        else:
            self._open.add(row, present)
        known = measured(self._open.values)
        if self._usual.any() and known[: len(self._usual)][self._usual].all():
            done += self.end()
        return done


def joined(rows: Sequence[Any], n_modules: int) -> JoinedRows:
    """Return rounds as tables."""
    for row in rows:
        row.widen(n_modules)
    shape = len(rows), n_modules
    return JoinedRows(
        np.array([row.step for row in rows], np.int64),
        np.array([row.values for row in rows], np.float32).reshape(shape),
        np.array([row.at for row in rows], np.int64).reshape(shape),
        np.array([row.first for row in rows], np.float64).reshape(shape),
    )
