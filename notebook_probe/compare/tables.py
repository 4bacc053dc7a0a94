"""Position of a run at each of its steps, along one axis: a function that never decreases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FAR", "Doubles", "Envelope", "Places", "Table", "line"]

Doubles = npt.NDArray[np.float64]

FAR = 2.0**53
"""Bound on steps up to which every step is a float."""


class Places(Protocol):
    """Position of a run at a step, and the step of a position."""

    def at(self, steps: npt.ArrayLike) -> Doubles:
        """Places at steps; NaN where they are not known."""

    def steps_at(self, places: npt.ArrayLike) -> Doubles:
        """First steps at which places were reached; NaN where they were not."""

    @property
    def end(self) -> float:
        """The last step whose place is known."""


@dataclass(frozen=True, slots=True)
class Table:
    """Places between which the run went evenly.

    Examples
    --------
    >>> table = Table(np.array([0, 10, 20]), np.array([0.0, 1.0, 3.0]))
    >>> table.at([5, 15, 21]).tolist(), table.steps_at([2.0, 3.0]).tolist()
    ([0.5, 2.0, nan], [15.0, 20.0])
    """

    steps: npt.NDArray[np.int64]
    """Increasing."""
    places: Doubles
    """Never falling."""

    def at(self, steps: npt.ArrayLike) -> Doubles:
        return _between(steps, self.steps, self.places)

    def steps_at(self, places: npt.ArrayLike) -> Doubles:
        rises = np.diff(self.places, prepend=-np.inf) > 0  # of equal places the first
        return _between(places, self.places[rises], self.steps[rises].astype(np.float64))

    @property
    def end(self) -> float:
        return float(self.steps[-1]) if len(self.steps) else -np.inf


@dataclass(frozen=True, slots=True)
class Envelope:
    """The running minimum of a series: it holds until a smaller value comes.

    Places are the values themselves; a smaller one is further on.

    Examples
    --------
    >>> envelope = Envelope.of(np.array([0, 1, 2, 3]), np.array([4.0, 2.0, 3.0, 1.0]))
    >>> envelope.at([2, 9]).tolist(), envelope.steps_at([3.0, 2.0, 0.5]).tolist()
    ([2.0, 1.0], [1.0, 1.0, nan])
    """

    steps: npt.NDArray[np.int64]
    """Steps at which a smaller value was reached; increasing."""
    places: Doubles
    """Falling."""

    @classmethod
    def of(cls, steps: npt.NDArray[np.int64], values: npt.NDArray[np.floating]) -> Envelope:
        """Return the envelope of a series, without values that are not finite."""
        finite = np.isfinite(values)
        steps, found = steps[finite], values[finite].astype(np.float64)
        lowest = np.minimum.accumulate(found) if len(found) else found
        falls = np.diff(lowest, prepend=np.inf) < 0
        return cls(steps[falls], lowest[falls])

    def at(self, steps: npt.ArrayLike) -> Doubles:
        rows = np.searchsorted(self.steps, np.asarray(steps, np.float64), "right") - 1
        return np.where(rows >= 0, np.append(self.places, np.nan)[rows], np.nan)

    def steps_at(self, places: npt.ArrayLike) -> Doubles:
        wanted = np.asarray(places, np.float64)
        rows = np.searchsorted(-self.places, -wanted)
        return np.where(np.isnan(wanted), np.nan, np.append(self.steps, np.nan)[rows])

    @property
    def end(self) -> float:
        return np.inf if len(self.steps) else -np.inf


def line(per_step: float) -> Table:
    """Return the table of a run with constant increments, from 0 at step 0.

    Examples
    --------
    >>> line(64).at([3]).tolist(), line(64).steps_at([192]).tolist()
    ([192.0], [3.0])
    """
    return Table(np.array([0, int(FAR)]), np.array([0.0, FAR * per_step]))


def _between(
    x: npt.ArrayLike, known_x: npt.NDArray[np.int64] | Doubles, known_y: Doubles
) -> Doubles:
    """Interpolate linearly between known points; NaN outside."""
    wanted = np.asarray(x, np.float64)
    if not len(known_x):
        return np.full(wanted.shape, np.nan)
    return np.interp(wanted, known_x, known_y, left=np.nan, right=np.nan)
