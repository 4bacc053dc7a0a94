"""All series of a collector, thinned by one policy, on the host or on their way there."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from notebook_probe.train.collector.policies import Policy, in_words
from notebook_probe.train.collector.saved import Saved
from notebook_probe.train.collector.series import Collected, Series
from notebook_probe.train.collector.transfer import Flight, Transfer

__all__ = ["CollectedSeries"]


class CollectedSeries:
    """Series by name, in the order of their first values; any thread may add and read.

    Attributes
    ----------
    policy : Policy or None
        By which they are kept; None before anything can be added.
    next_step : int
        The first after those that were added.
    """

    def __init__(self) -> None:
        self.policy: Policy | None = None
        self.next_step = 0
        self._series: dict[str, Series] = {}
        self._transfer = Transfer()
        self._lock = threading.RLock()  # a collection of garbage may end an attachment inside

    def use(self, policy: Policy) -> None:
        """Keep what comes by this policy.

        Raises
        ------
        ValueError
            There are series that were kept by another.
        """
        if self._series and self.policy not in (None, policy):
            raise ValueError(
                f"{in_words(policy.asked)} on series of another policy; allowed: what has kept "
                f"them, {in_words(self.policy.asked)}, or another collector"
            )
        self.policy = policy

    def hold(self, number: float | Tensor) -> Collected:
        """Take a number, without waiting for the device that it is on."""
        if not isinstance(number, Tensor):
            return number
        with self._lock:
            return self._transfer.take(number)

    def add(self, step: int, values: Iterable[tuple[str, Collected]]) -> None:
        """Add what a step has collected, in this order."""
        policy = self.policy
        if policy is None:
            return
        with self._lock:
            for name, value in values:
                self._series.setdefault(name, Series()).add(step, value, policy)
            self.next_step = max(self.next_step, step + 1)
            if self._transfer.is_full:
                self._take_in(self._transfer.under_way)  # which has long come
                self._transfer.depart()

    def names(self) -> list[str]:
        """Return the names in the order of their first values."""
        with self._lock:
            return [*self._series]

    def read(self, name: str) -> tuple[list[int], list[float]]:
        """Return steps and values of a series; empty for an unknown name."""
        with self._lock:
            series = self._series.get(name)
            if series is None:
                return [], []
            self._transfer.depart()
            under_way = [*self._transfer.under_way]
            steps, values = series.steps.tolist(), series.values()
        for flight in under_way:  # no other thread waits meanwhile
            flight.land()
        with self._lock:
            self._take_in(under_way)
        return steps, [*map(float, values)]

    def save(self) -> dict[str, Any]:
        """Return everything as written by `Saved`."""
        with self._lock:
            self._transfer.depart()
            self._take_in(self._transfer.under_way)
            return Saved(self.policy, self.next_step, self._series).written()

    def restore(self, saved: Saved) -> None:
        """Replace the contents by a saved state."""
        with self._lock:
            self.policy, self.next_step = saved.policy or self.policy, saved.next_step
            self._series, self._transfer = dict(saved.series), Transfer()

    def _take_in(self, flights: Sequence[Flight]) -> None:
        if flights:
            self._transfer.land(flights)
            for series in self._series.values():
                series.settle()
