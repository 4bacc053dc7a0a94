"""Accounts of the time that is spent for probes, in all sets of due probes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.step.probe import Probe
from notebook_probe.schedules import Schedule, can_foresee

__all__ = ["ProbeAccounts"]

HORIZON = 64
"""Steps over which it is counted how often a schedule will be due."""


class ProbeAccounts:
    """Accounts of one track, for its budget; see `Accounts`.

    Parameters
    ----------
    current : callable
        Returns the readings of the sets that are due now and then.
    """

    def __init__(self, current: Callable[[], Iterable[Readings]]) -> None:
        self._current = current
        self._per_value: dict[Probe, float] = {}
        self._spent = 0.0
        self.step = 0
        """The next one that opens."""

    def keep_only(self, probes: Collection[Probe]) -> None:
        """Forget the costs of all other probes."""
        known = self._per_value
        self._per_value = {probe: known[probe] for probe in probes if probe in known}

    def settle(self, spent: Mapping[Readings, Mapping[Probe, float]]) -> None:
        """Note what was spent in the present readings: other ones are made from now on."""
        self._per_value |= _per_value(spent)
        self._spent += sum(sum(one.values()) for one in spent.values())

    def look(self) -> tuple[dict[Probe, float], float]:
        """Implement the Accounts."""
        spent = {one: one.seconds() for one in self._current()}  # of thousands of probes: only once
        seconds = self._per_value | _per_value(spent)
        rates: dict[Schedule, float] = {}
        for probe in seconds:
            if probe.armed not in rates:
                rates[probe.armed] = _rate(probe.armed, self.step)
        expected = {p: one * rates[p.armed] / p.every for p, one in seconds.items()}
        return expected, self._spent + sum(sum(one.values()) for one in spent.values())


def _per_value(spent: Mapping[Readings, Mapping[Probe, float]]) -> dict[Probe, float]:
    """Return the average seconds for each measurement of a probe."""
    seconds: defaultdict[Probe, float] = defaultdict(float)
    n_steps: defaultdict[Probe, int] = defaultdict(int)
    for readings, of_probes in spent.items():
        if readings.n_steps:
            for probe in readings.due:
                seconds[probe] += of_probes.get(probe, 0.0)
                n_steps[probe] += readings.n_steps
    return {probe: one / n_steps[probe] for probe, one in seconds.items()}


def _rate(schedule: Schedule, step: int) -> float:
    """Return how often a schedule is due in a step; 0 if that is unknown."""
    if not can_foresee(schedule):  # no preset has such a one: it is measured as asked
        return 0.0
    n_due = 0
    with suppress(Exception):  # a user's schedule
        due = schedule.next_due(step)
        while due is not None and due < step + HORIZON:
            n_due, due = n_due + 1, schedule.next_due(due + 1)
    return n_due / HORIZON
