"""Schedules of due probes: which groups of them are measured at which due steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from notebook_probe.probes.step.probe import Probe
from notebook_probe.schedules import Schedule, can_foresee, has_clock

__all__ = ["FORESIGHT", "Rhythm", "grouped"]

FORESIGHT, MOST_SKIPPED = 1024, 64
"""Maximum number of steps, and of due steps of one schedule, for which it is known ahead that
nothing is due."""


@dataclass(slots=True, eq=False)
class Rhythm:
    """A schedule, and which groups are measured at which of its due steps.

    Attributes
    ----------
    groups : dict
        Number n of due steps, of which one is measured -> turn, which is the remainder of the due
        step by n -> number of the group.
    keeps_time : bool
        It is restarted when the work of a due step is done.
    n_due : int
        Due steps so far.
    skipped : list of int
        Due steps that the budget skips, of those in which nothing is due.
    """

    schedule: Schedule
    keeps_time: bool
    groups: dict[int, dict[int, int]] = field(default_factory=dict)
    n_due: int = 0
    skipped: list[int] = field(default_factory=list)

    def measures(self, n_due: int) -> bool:
        """Return whether something is measured at the due step of this number."""
        return any(n_due % every in turns for every, turns in self.groups.items())

    def skips(self, step: int) -> tuple[list[int], int]:
        """Return the due steps after ``step`` that the budget skips, and the one after them."""
        schedule, skipped = self.schedule, list[int]()
        if not can_foresee(schedule):
            return skipped, step + 1
        end = step + FORESIGHT
        while len(skipped) < MOST_SKIPPED:
            due = schedule.next_due(skipped[-1] + 1 if skipped else step + 1)
            if due is None or due >= end:
                return skipped, end
            if self.measures(self.n_due + len(skipped)):
                return skipped, due
            skipped.append(due)
        return skipped, skipped[-1] + 1


def grouped(probes: Iterable[Probe]) -> tuple[tuple[Rhythm, ...], dict[Probe, int]]:
    """Return the rhythms of some probes, and the number of each one's group."""
    rhythms: dict[Schedule, Rhythm] = {}
    groups: dict[Probe, int] = {}
    number = itertools.count()
    for probe in probes:
        rhythm = rhythms.get(probe.armed)
        if rhythm is None:
            rhythm = rhythms[probe.armed] = Rhythm(probe.armed, has_clock(probe.armed))
        turns = rhythm.groups.setdefault(probe.every, {})
        if probe.turn not in turns:
            turns[probe.turn] = next(number)
        groups[probe] = turns[probe.turn]
    return tuple(rhythms.values()), groups
