"""Accumulation over more batches as training continues."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from notebook_probe.checks import is_whole
from notebook_probe.train.loop.loop import Loop

__all__ = ["AccumulateByEpoch"]


class AccumulateByEpoch:
    """Set the number of batches per update by epoch.

    Parameters
    ----------
    by_epoch : dict of int to int
        Number of batches per update from each epoch on.

    Examples
    --------
    >>> loop.add(AccumulateByEpoch({0: 1, 5: 2, 10: 4}))  # doctest: +SKIP
    """

    def __init__(self, by_epoch: Mapping[int, int]) -> None:
        if not by_epoch or any(
            not (is_whole(epoch) and is_whole(n) and epoch >= 0 and n >= 1)
            for epoch, n in by_epoch.items()
        ):
            raise ValueError(
                f"AccumulateByEpoch({by_epoch!r}); allowed: epochs from 0, each with a number of "
                f"batches from 1"
            )
        self._by_epoch = dict(sorted(by_epoch.items()))

    def on_start(self, loop: Loop, data: Any) -> None:
        """Set the accumulation of the first epoch."""
        self.on_epoch(loop)

    def on_epoch(self, loop: Loop) -> None:
        """Set the accumulation of the next epoch."""
        epochs = [*self._by_epoch]
        place = bisect_right(epochs, loop.epoch)
        if place:
            loop.trainer.accumulate = self._by_epoch[epochs[place - 1]]
