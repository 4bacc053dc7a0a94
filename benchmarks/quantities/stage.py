"""Steps of a kind: those of a preset's schedules, without the many in between.

A preset with something every step, every ten and every hundred steps has four kinds of steps at
most. A few of each are measured, and weighed by how many of a hundred are of that kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from notebook_probe.run.attach.presets import Preset
from notebook_probe.schedules import Schedule, schedule

__all__ = ["Stage", "played"]

PERIOD = 100
"""Steps after which the presets' schedules come again from the beginning."""


@dataclass(frozen=True)
class Stage:
    """Which schedules are due now; changed between two steps."""

    due: set[Schedule] = field(default_factory=set)

    def set(self, kind: Iterable[Schedule]) -> None:
        """From the next step on exactly these are due."""
        self.due.clear()
        self.due.update(kind)


@dataclass(frozen=True)
class Played:
    """Due when the stage says that ``meant`` is."""

    meant: Schedule
    stage: Stage = field(compare=False)

    def __call__(self, step: int) -> bool:
        return self.meant in self.stage.due

    @property
    def stream(self) -> str:
        return self.meant.stream

    def __str__(self) -> str:
        return str(self.meant)


def played(preset: Preset, stage: Stage) -> tuple[Preset, dict[frozenset[Schedule], float]]:
    """The preset on a stage, and the share of each kind of step; the kinds with most due last.

    What is due is asked ahead: the first step after a change may be of the kind before, and then
    is no more than that step.
    """
    schedules = {schedule(row.schedule) for row in preset.rows}
    kinds = Counter(frozenset(s for s in schedules if s(step)) for step in range(PERIOD))
    rows = tuple(
        replace(row, schedule=Played(schedule(row.schedule), stage)) for row in preset.rows
    )
    return replace(preset, rows=rows), {
        kind: kinds[kind] / PERIOD for kind in sorted(kinds, key=len)
    }
