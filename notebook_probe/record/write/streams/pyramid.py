"""Minimum, maximum and mean of every 64, 1024 and 16384 rows of a stream, as the rows come.

Only complete blocks are returned. The state of the unfinished ones is an immutable value:
feeding rows returns a new pyramid, and a writer keeps the old one until its writes have succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED, measured
from notebook_probe.record.format.reductions import SIZES
from notebook_probe.record.format.source import Floats, Steps

__all__ = ["NOTHING", "Pyramid", "Totals"]

NO_STEP = np.int64(np.iinfo(np.int64).max)

Doubles: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of consecutive blocks; arrays (block, variable, module)."""

    steps: Steps
    """(block,) step of the first row of each."""
    minimum: Floats
    """Least value that is not NaN; NaN where there is none."""
    maximum: Floats
    total: Doubles
    """Sum of the measured values, not finite if any of them is not."""
    count: Counts
    """Cells that were measured."""

    @classmethod
    def of_rows(cls, steps: Steps, values: Floats, per_block: int) -> Totals:
        """Every ``per_block`` rows of ``values`` (row, variable, module) as one block."""
        rows = _grouped(values, per_block)
        known = measured(rows)
        counts = known.sum(axis=1, dtype=np.int32)
        # Nearly always: then the copy is saved.
        summed = rows if known.all() else np.where(known, rows, np.float32(0))
        with np.errstate(invalid="ignore"):  # inf - inf is not finite, which is what it says
            total = summed.sum(axis=1, dtype=np.float64)
        return cls(_first(steps, per_block), _least(rows), _greatest(rows), total, counts)

    @classmethod
    def nothing(cls, n_blocks: int, n_variables: int, n_modules: int) -> Totals:
        """Blocks in which nothing was measured."""
        shape = n_blocks, n_variables, n_modules
        least, greatest = np.full((2, *shape), np.nan, np.float32)
        steps = np.full(n_blocks, NO_STEP)
        return cls(steps, least, greatest, np.zeros(shape), np.zeros(shape, np.int32))

    @classmethod
    def after_each_other(cls, parts: Sequence[Totals]) -> Totals:
        """Blocks in order of their rows; all become as wide as the widest."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        shape = np.max([part.total.shape[1:] for part in parts], axis=0)
        return cls._joined([part._widened(*shape) for part in parts], 0)

    @classmethod
    def side_by_side(cls, parts: Sequence[Totals], axis: int) -> Totals:
        """Return the same blocks, with their variables (1) or modules (2) joined."""
        return replace(cls._joined(parts, axis), steps=parts[0].steps)

    @classmethod
    def _joined(cls, parts: Sequence[Totals], axis: int) -> Totals:
        columns = {
            one.name: np.concatenate(
                [getattr(part, one.name) for part in parts], 0 if one.name == "steps" else axis
            )
            for one in fields(cls)
        }
        return cls(**columns)

    def plus(self, later: Totals) -> Totals:
        """Merge each block with the one of later rows, which may be wider."""
        wide = self._widened(*later.total.shape[1:])
        with np.errstate(invalid="ignore"):
            return Totals(
                wide.steps,
                np.fmin(wide.minimum, later.minimum),
                np.fmax(wide.maximum, later.maximum),
                wide.total + later.total,
                wide.count + later.count,
            )

    def merged(self, per_block: int) -> Totals:
        """Every ``per_block`` blocks as one."""
        with np.errstate(invalid="ignore"):
            return Totals(
                _first(self.steps, per_block),
                _least(_grouped(self.minimum, per_block)),
                _greatest(_grouped(self.maximum, per_block)),
                _grouped(self.total, per_block).sum(axis=1),
                _grouped(self.count, per_block).sum(axis=1, dtype=np.int32),
            )

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(getattr(self, one.name).nbytes for one in fields(self))

    def __getitem__(self, blocks: slice) -> Totals:
        return Totals(*(getattr(self, one.name)[blocks] for one in fields(self)))

    def arrays(self) -> dict[str, Floats]:
        """Return stored arrays by suffix; a measured NaN and an empty block differ in bits."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = (self.total / self.count).astype(np.float32)
        return {
            "min": self._marked(self.minimum),
            "max": self._marked(self.maximum),
            "mean": self._marked(mean),
        }

    def _marked(self, values: Floats) -> Floats:
        lost = np.isnan(values)
        if not lost.any():
            return values
        # Readers tell a value that was NaN from one that was not measured by the bits.
        return np.where(lost, np.where(self.count > 0, MEASURED_NAN, NOT_MEASURED), values)

    def _widened(self, n_variables: int, n_modules: int) -> Totals:
        n_blocks, *old = self.total.shape
        if old == [n_variables, n_modules]:
            return self
        wide = Totals.nothing(n_blocks, n_variables, n_modules)
        for name in ("minimum", "maximum", "total", "count"):
            getattr(wide, name)[:, : old[0], : old[1]] = getattr(self, name)
        return replace(wide, steps=self.steps)


def _grouped(units: npt.NDArray[Any], per_block: int) -> npt.NDArray[Any]:
    """Reshape (unit, ...) to (block, unit of the block, ...); no units make one empty block."""
    n_blocks = len(units) // per_block if per_block else 1
    return units.reshape(n_blocks, per_block, *units.shape[1:])


def _first(steps: Steps, per_block: int) -> Steps:
    return np.asarray(np.min(_grouped(steps, per_block), axis=1, initial=NO_STEP))


def _least(values: Floats) -> Floats:
    return np.asarray(np.fmin.reduce(values, axis=1, initial=np.nan))


def _greatest(values: Floats) -> Floats:
    return np.asarray(np.fmax.reduce(values, axis=1, initial=np.nan))


Reduce: TypeAlias = Callable[[slice, int], Totals]
"""Function of a range of units and the number of them per block."""


NOTHING = Totals.nothing(0, 0, 0)
"""Totals without blocks."""


@dataclass(frozen=True, slots=True)
class _Level:
    """Blocks of ``factor`` units: of rows, or of the blocks of the level below."""

    factor: int
    n_open: int
    """Units in the unfinished block."""
    open: Totals

    def fed(self, n_units: int, reduce: Reduce) -> tuple[_Level, Totals]:
        """Return the level after ``n_units`` more, and the completed blocks."""
        if n_units == 0:
            return self, NOTHING
        head = min(n_units, self.factor - self.n_open)
        first = reduce(slice(head), head)
        # An open block has its first rows already: the first part completes it.
        if self.n_open:
            first = self.open.plus(first)
        if self.n_open + head < self.factor:
            return _Level(self.factor, self.n_open + head, first), first[:0]
        n_left = (n_units - head) % self.factor
        whole = reduce(slice(head, n_units - n_left), self.factor)
        rest = reduce(slice(n_units - n_left, n_units), n_left)
        return _Level(self.factor, n_left, rest), Totals.after_each_other([first, whole])


_FACTORS = (SIZES[0], *(size // below for below, size in pairwise(SIZES)))


@dataclass(frozen=True, slots=True)
class Pyramid:
    """The unfinished block of every level.

    Examples
    --------
    >>> rows = np.arange(100, dtype=np.float32).reshape(100, 1, 1)  # (row, variable, module)
    >>> pyramid, (by64, by1024, by16384) = Pyramid().fed(np.arange(100), rows)
    >>> {name: blocks.ravel().tolist() for name, blocks in by64.arrays().items()}
    {'min': [0.0], 'max': [63.0], 'mean': [31.5]}
    >>> len(by1024), len(by16384)
    (0, 0)
    """

    levels: tuple[_Level, ...] = tuple(
        _Level(factor, 0, Totals.nothing(1, 0, 0)) for factor in _FACTORS
    )

    def fed(self, steps: Steps, values: Floats) -> tuple[Pyramid, tuple[Totals, ...]]:
        """Return the pyramid after more rows, and the completed blocks of each level.

        Parameters
        ----------
        steps : int array, (row,)
        values : float32 array, (row, variable, module)
            Values as stored, where an unmeasured cell differs from a NaN by its bits. May be wider
            than before: variables and modules are only ever appended.
        """
        levels, done = [], []
        n_units, reduce = len(values), _reduce(steps, values)
        for level in self.levels:
            grown, blocks = level.fed(n_units, reduce)
            levels.append(grown)
            done.append(blocks)
            n_units, reduce = len(blocks), _merge(blocks)
        return Pyramid(tuple(levels)), tuple(done)

    @classmethod
    def side_by_side(cls, parts: Sequence[Pyramid], axis: int) -> Pyramid:
        """Pyramids of the same rows as one, along variables (1) or modules (2)."""
        levels = zip(*(part.levels for part in parts), strict=True)
        return cls(
            tuple(
                replace(same[0], open=Totals.side_by_side([level.open for level in same], axis))
                for same in levels
            )
        )


def _reduce(steps: Steps, values: Floats) -> Reduce:
    return lambda units, per_block: Totals.of_rows(steps[units], values[units], per_block)


def _merge(blocks: Totals) -> Reduce:
    return lambda units, per_block: blocks[units].merged(per_block)
