"""Keeping the cost of watching inside a budget: schedules become due less often."""

from __future__ import annotations

import math

from notebook_probe.probes.step.sink import Events
from notebook_probe.schedules import Schedule

__all__ = ["Budget"]

LARGEST = 1024
SETTLED_STEPS = 32
"""Steps to look at before the factor is changed again; more while rarely anything is due."""
ROOM = 0.4
"""Below this share of the budget the factor is taken back by half."""


class Budget:
    """Lets every n-th due step of a schedule pass; n follows the cost.

    Parameters
    ----------
    events : Events, optional
        Every change is one, of kind ``"budget"``.

    Attributes
    ----------
    budget : float
        Per cent of step time that watching may cost; infinite until it is set.
    factor : int
        Of so many due steps one is measured.
    """

    def __init__(self, events: Events | None = None) -> None:
        self.budget = math.inf
        self.factor = 1
        self._events = events
        self._n_due: dict[Schedule, int] = {}
        self._seconds = self._cost = 0.0
        self._n_steps = 0

    @property
    def text(self) -> str:
        """The state in words; empty without a budget."""
        if self.budget == math.inf:
            return ""
        often = "every due step" if self.factor == 1 else f"one of {self.factor} due steps"
        return f"budget {self.budget:g} % of step time: {often} is measured"

    def set_budget(self, percent: float) -> None:
        """Stay below ``percent`` of step time from now on."""
        self.budget, self.factor = percent, 1
        self._begin()

    def passes(self, schedule: Schedule, step: int) -> bool:
        """Tell whether a due step is measured; to be asked once per due step."""
        if self.factor == 1:
            return True
        n_due = self._n_due.get(schedule, 0)
        self._n_due[schedule] = n_due + 1
        return n_due % self.factor == 0

    def add(self, step: int, seconds: float, cost: float) -> None:
        """A step took ``seconds``, ``cost`` of them in our own code."""
        if self.budget == math.inf:
            return
        self._seconds += seconds
        self._cost += cost
        self._n_steps += 1
        if self._n_steps < max(SETTLED_STEPS, 4 * self.factor):
            return
        percent = 100.0 * self._cost / max(self._seconds, 1e-9)
        wanted = self._wanted(percent)
        if wanted != self.factor:
            self._note_change(step, percent, wanted)
            self.factor = wanted
            self._n_due = {}
        self._begin()

    def _wanted(self, percent: float) -> int:
        """The power of two that brings the cost below the budget."""
        if percent > self.budget:
            needed = self.factor * percent / self.budget if self.budget > 0 else LARGEST
            return min(LARGEST, 1 << max(1, math.ceil(math.log2(needed))))
        if percent < ROOM * self.budget and self.factor > 1:
            return self.factor // 2
        return self.factor

    def _note_change(self, step: int, percent: float, wanted: int) -> None:
        if self._events is None:
            return
        often = "every due step is" if wanted == 1 else f"one of {wanted} due steps is"
        self._events.event(
            step,
            "budget",
            f"watching cost {percent:.1f} % of step time, budget {self.budget:g} %: "
            f"{often} measured from here on",
        )

    def _begin(self) -> None:
        self._seconds = self._cost = 0.0
        self._n_steps = 0
