"""Retention of checkpoints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from notebook_probe.checks import is_whole
from notebook_probe.train.checkpoints.index import Checkpoint

__all__ = ["Best", "Keep"]

Best: TypeAlias = "tuple[str, Literal['min', 'max'], int]"


@dataclass(frozen=True, slots=True)
class Keep:
    """Retain the last and the best checkpoints; all if neither is given.

    Parameters
    ----------
    last : int, optional
    best : (name, "min" or "max", n), optional
        Metric, direction and number of the best to keep; a checkpoint without the metric, or with
        NaN, is never among the best.

    Examples
    --------
    >>> saved = [Checkpoint(k, f"{k}.pt", {"eval_loss": loss}) for k, loss in enumerate([3, 1, 2])]
    >>> [one.step for one in Keep(1, ("eval_loss", "min", 1)).gone(saved)]
    [0]
    """

    last: int | None = None
    best: Best | None = None

    def __post_init__(self) -> None:
        if self.last is not None and not _is_number(self.last):
            raise ValueError(f"keep_last={self.last!r}; allowed: a whole number from 1, or None")
        if self.best is not None:
            _check_best(self.best)

    def gone(self, saved: Sequence[Checkpoint]) -> list[Checkpoint]:
        """Return the checkpoints to delete; pinned ones and the newest are retained."""
        if self.last is None and self.best is None:
            return []
        ruled = [one for one in saved if not one.pinned]
        kept = [*ruled[-(self.last or 1) :], *self._best(ruled)]
        return [one for one in ruled if one not in kept]

    def _best(self, ruled: Sequence[Checkpoint]) -> list[Checkpoint]:
        if self.best is None:
            return []
        name, which, n = self.best
        # NaN compares as false with everything, so that a sort may leave it in front.
        known = [one for one in ruled if not math.isnan(one.metrics.get(name, math.nan))]
        sign = 1 if which == "min" else -1
        return sorted(known, key=lambda one: sign * one.metrics[name])[:n]


def _is_number(value: object) -> bool:
    return is_whole(value) and value >= 1


def _check_best(best: object) -> None:
    match best:
        case (str(), "min" | "max", n) if _is_number(n):
            return
    raise ValueError(
        f'keep_best={best!r}; allowed: (name, "min" or "max", how many), such as '
        f'("eval_loss", "min", 1)'
    )
