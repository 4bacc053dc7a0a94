"""When each probe fired last and what it costs: numbers of every step, told once a second."""

from __future__ import annotations

import time
from collections.abc import Sequence

from notebook_probe.explorer.messages.wire import Tally
from notebook_probe.run.health.status import ProbeStatus

__all__ = ["Tallies", "rounded"]

EVERY_S = 1.0


class Tallies:
    """One per probe, in their order; the same list until it is time for another."""

    def __init__(self) -> None:
        self._rows: list[Tally] = []
        self._keys: list[tuple[str, str, str]] = []
        self._told_s = 0.0

    def of(self, probes: Sequence[ProbeStatus]) -> list[Tally]:
        """The tallies of these probes."""
        keys = [(probe.module, probe.quantity, probe.schedule) for probe in probes]
        now_s = time.monotonic()
        if keys != self._keys or now_s - self._told_s > EVERY_S:
            self._keys, self._told_s = keys, now_s
            self._rows = [
                (probe.last_step, rounded(probe.cost_us), rounded(probe.cost_percent))
                for probe in probes
            ]
        return self._rows


def rounded(cost: float) -> float:
    """Two significant digits: a number that trembles is not told again and again.

    Examples
    --------
    >>> [rounded(cost) for cost in (0.0, 8.4321, 123.4)]
    [0.0, 8.4, 120.0]
    """
    return float(f"{cost:.2g}")
