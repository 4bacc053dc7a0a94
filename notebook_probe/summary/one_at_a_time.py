"""Ownership of a run: one collector at a time."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from typing import Protocol

from notebook_probe.run.run import Run

__all__ = ["Follower", "take"]


class Follower(Protocol):
    """A collector of a run's training.

    `Course`, which imports this module, is one.
    """

    @property
    def run(self) -> Run | None:
        """The followed run."""

    @property
    def is_busy(self) -> bool:
        """True if further steps of its training may follow."""

    def remove(self) -> None:
        """Follow no run any more."""


_followers: MutableMapping[Run, weakref.ref[Follower]] = weakref.WeakKeyDictionary()


def take(run: Run, follower: Follower) -> None:
    """Claim a run; an idle former collector gives way, as when a cell is run again.

    Raises
    ------
    ValueError
        Another one is at work.
    """
    known = _followers.get(run)
    before = None if known is None else known()
    if before is not None and before is not follower and before.run is run:
        if before.is_busy:
            raise ValueError(f"another collector follows this run, {run!r}; allowed: one")
        before.remove()
    _followers[run] = weakref.ref(follower)
