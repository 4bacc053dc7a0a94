"""A series: some of the values of one name, each with its step, thinned by a policy."""

from __future__ import annotations

from array import array
from itertools import takewhile
from typing import TypeAlias

from notebook_probe.train.collector.policies import Policy
from notebook_probe.train.collector.transfer import OnDevice

__all__ = ["Collected", "Series"]

Collected: TypeAlias = "float | OnDevice"
"""A value: on the host, or still on an accelerator."""


class Series:
    """Steps as 64-bit integers, values as 64-bit floats, in the order in which they came.

    Attributes
    ----------
    count : int
        Number of values collected, kept or not.
    stride : int
        Interval of the kept values.
    """

    def __init__(self) -> None:
        self.count, self.stride = 0, 1
        # Eight bytes for a number, where a list of floats takes four times as many.
        self.steps, self._on_host = array("q"), array("d")
        self._coming: list[Collected] = []  # begins with the first that is not on the host

    def add(self, step: int, value: Collected, policy: Policy) -> None:
        """Take the next value, and thin if there are too many."""
        index = self.count
        self.count += 1
        if not policy.takes(index, self.stride):
            return
        self.steps.append(step)
        if self._coming or isinstance(value, OnDevice):
            self._coming.append(value)
        else:
            self._on_host.append(value)
        if policy.is_over(len(self.steps)):
            self._thin()

    def settle(self) -> None:
        """Move values that have arrived from the device to the host's."""
        # In their order: one that has landed behind one that has not must wait.
        here = [*takewhile(_is_here, self._coming)]
        self._on_host.extend(map(float, here))
        del self._coming[: len(here)]

    def values(self) -> list[Collected]:
        """Return the stored values; ``float()`` of one on a device waits for it."""
        return [*self._on_host, *self._coming]

    @classmethod
    def of(cls, steps: list[int], values: list[float], count: int, stride: int) -> Series:
        """Return a series with these values so far."""
        made = cls()
        made.steps, made._on_host = array("q", steps), array("d", values)
        made.count, made.stride = count, stride
        return made

    def _thin(self) -> None:
        """Keep every second one: positions 0, 2, 4, … of steps and values alike."""
        self.stride *= 2
        self.steps = self.steps[::2]
        # Positions continue after those on the host: with an odd number of these, the first is odd.
        self._coming = self._coming[len(self._on_host) % 2 :: 2]
        self._on_host = self._on_host[::2]


def _is_here(value: Collected) -> bool:
    return not isinstance(value, OnDevice) or value.is_here
