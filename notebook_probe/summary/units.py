"""Due units of a training: a rule on numbers alone.

A unit is a step or an epoch, counted from 1 over the whole training, also a resumed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from notebook_probe.schedules import KeepN

__all__ = ["MOST_TENSOR_UNITS", "NOTHING", "Due", "DueRule", "automatic_units"]

MOST_TENSOR_UNITS = 20
"""Default maximum of units with tensors per training."""


@dataclass(frozen=True, slots=True)
class Due:
    """Content to collect for a unit: tensors, all but tensors, both, or nothing."""

    data: bool
    tensors: bool

    def __bool__(self) -> bool:
        return self.data or self.tensors


NOTHING = Due(data=False, tensors=False)


@dataclass(frozen=True, slots=True)
class DueRule:
    """Rule for due units.

    Data: the first unit that was seen and every multiple of ``freq``. Tensors: that unit, and every
    multiple of ``tensor_freq``; by default, `automatic_units`.

    Parameters
    ----------
    freq : int
    tensor_freq : int or None

    Examples
    --------
    >>> rule = DueRule(10)
    >>> [unit for unit in range(1, 601) if rule.due(unit, 1, 600).data] == [1, *range(10, 601, 10)]
    True
    >>> sum(rule.due(unit, 1, 600).tensors for unit in range(1, 601))
    20
    >>> rule.due(30, 1, 600)
    Due(data=True, tensors=False)
    """

    freq: int
    tensor_freq: int | None = None

    def due(self, unit: int, first: int, total: int | None) -> Due:
        """Return what is due at a unit.

        Parameters
        ----------
        unit : int
            Unit, from 1.
        first : int
            First unit in this process.
        total : int or None
            Last unit of the training; None if unknown.
        """
        is_first = unit == first
        return Due(
            data=is_first or unit % self.freq == 0,
            tensors=is_first or self._tensors(unit, first, total),
        )

    def _tensors(self, unit: int, first: int, total: int | None) -> bool:
        if self.tensor_freq is not None:
            return unit % self.tensor_freq == 0
        if total is None:
            # The end is unknown, so that fewer and fewer units keep the number bounded.
            return _ever_fewer(first)(unit)
        return unit in automatic_units(total, self.freq)


@lru_cache
def _ever_fewer(first: int) -> KeepN:
    """Return the schedule of a training with unknown end; called at each of its steps."""
    return KeepN(MOST_TENSOR_UNITS, first)


def automatic_units(total: int, freq: int) -> range:
    """Return at most 20 units whose tensors are stored, and 0, which is no unit.

    The multiples of ``freq``, if these are few enough; else those of ``total // 19``, and for
    one every unit.

    Examples
    --------
    >>> automatic_units(180, 10), automatic_units(600, 10), automatic_units(30, 1)
    (range(0, 181, 10), range(0, 620, 31), range(0, 21))
    """
    if total // freq + 1 <= MOST_TENSOR_UNITS:
        return range(0, total + 1, freq)
    apart = total // (MOST_TENSOR_UNITS - 1)
    return range(0, MOST_TENSOR_UNITS * apart, apart) if apart > 1 else range(21)
