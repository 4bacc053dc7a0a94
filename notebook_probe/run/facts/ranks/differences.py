"""First difference between two ranks, in what should be equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from notebook_probe.run.facts.ranks.replica import Replica, ReplicaState

__all__ = ["RankDifference", "differences"]

TOLERANCE = 3e-7
"""Relative difference of two norms: less is the last digit, which differs between processors."""


@dataclass(frozen=True)
class RankDifference:
    """First difference of one kind between two ranks.

    Attributes
    ----------
    kind : str
        ``"weights"``, ``"rates"`` or ``"dtypes"``.
    step : int
        First step at which it is seen.
    modules : tuple of str
        Modules whose weights differ.
    text : str
        Difference, as a part of a sentence.
    """

    kind: str
    step: int
    modules: tuple[str, ...]
    text: str


def differences(mine: Replica, other: Replica, rank: int) -> Iterator[RankDifference]:
    """Yield the first difference of each kind; nothing for modules that only one rank has.

    Examples
    --------
    >>> import numpy as np
    >>> def replica(norm):
    ...     state = ReplicaState(3, 0.0, np.array([norm]), (0.1,))
    ...     return Replica(("fc.weight",), ("float32",), (8,), (state,), 3, 0.0, None, "")
    >>> [one.modules for one in differences(replica(1.0), replica(1.5), 1)]
    [('fc',)]
    """
    theirs = {name: place for place, name in enumerate(other.names)}
    pairs = [
        (place, theirs[name])
        for place, name in enumerate(mine.names)
        if name in theirs and mine.sizes[place] == other.sizes[theirs[name]]
    ]
    states = {one.step: one for one in other.states}
    common = sorted(
        ((one, states[one.step]) for one in mine.states if one.step in states),
        key=lambda both: both[0].step,
    )
    if not pairs or not common:
        return
    mixed = [here for here, there in pairs if mine.dtypes[here] != other.dtypes[there]]
    if mixed:
        here = mixed[0]
        there = theirs[mine.names[here]]
        text = f"{mine.dtypes[here]} on rank 0 and {other.dtypes[there]} on rank {rank}"
        yield RankDifference("dtypes", common[0][0].step, _modules(mine, mixed), text)
    yield from _of_rates(common, rank)
    yield from _of_weights(mine, other, common, pairs, rank)


def _of_rates(
    common: list[tuple[ReplicaState, ReplicaState]], rank: int
) -> Iterator[RankDifference]:
    for here, there in common:
        if len(here.rates) == len(there.rates):
            for rate, its in zip(here.rates, there.rates, strict=True):
                if not np.isclose(rate, its, rtol=1e-9, atol=0.0, equal_nan=True):
                    text = f"{rate:.4g} on rank 0 and {its:.4g} on rank {rank}"
                    yield RankDifference("rates", here.step, ("",), text)
                    return


def _of_weights(
    mine: Replica,
    other: Replica,
    common: list[tuple[ReplicaState, ReplicaState]],
    pairs: list[tuple[int, int]],
    rank: int,
) -> Iterator[RankDifference]:
    first, second = (np.array(places) for places in zip(*pairs, strict=True))
    for here, there in common:
        norms, its = here.norms[first], there.norms[second]
        differ = ~np.isclose(norms, its, rtol=TOLERANCE, atol=0.0, equal_nan=True)
        if differ.any():
            places = [pairs[one][0] for one in np.flatnonzero(differ)]
            text = f"{len(places)} of {len(pairs)} weights"
            yield RankDifference("weights", here.step, _modules(mine, places), text)
            return


def _modules(mine: Replica, places: list[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mine.names[one].rpartition(".")[0] for one in places))
