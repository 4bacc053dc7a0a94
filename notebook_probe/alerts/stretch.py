"""Duration of a condition at one module, and whether it was reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_probe.alerts.rule import Rule

__all__ = ["Stretch"]

FEW_ROWS, MANY_STEPS = 3, 100
"""Rows that are enough, however many a rule wants, if they span so many steps: the budget of a run
may leave one row in dozens of steps."""


@dataclass(slots=True)
class Stretch:
    """Measured rows in a row that fulfil a condition."""

    reported: bool = False
    rows: int = 0
    since: int = -1
    """Step of the first row of the stretch."""
    after: int = -1
    """Step of the measured row before it, which did not fulfil it; -1 where there was none."""
    rows_since: int = 0
    """Measured rows since the last that fulfilled it."""

    def rest(self, n_rows: int) -> None:
        """Count measured rows that do not fulfil the condition."""
        self.rows_since += n_rows
        if n_rows:
            self.rows = 0

    @property
    def began(self) -> tuple[int, int]:
        """The steps between which it began: after the last row without it, up to the first."""
        return (self.since if self.after < 0 else self.after + 1), self.since

    def hold(self, step: int, after: int, rule: Rule, *, tells: bool) -> bool:
        """Count a measured row that fulfils the condition; ``after`` is the row before it.

        Return True if this is to be reported, which happens once.
        """
        if not self.rows:
            self.since, self.after = step, after
            self.reported = self.reported and not rule.is_new_after(self.rows_since)
        self.rows_since = 0
        self.rows += 1
        if self.reported or not (tells and self._is_long_enough(step, rule)):
            return False
        self.reported = True
        return True

    def _is_long_enough(self, step: int, rule: Rule) -> bool:
        n_steps = step - self.since
        is_sparse = self.rows >= FEW_ROWS and n_steps >= MANY_STEPS
        return (self.rows >= rule.rows or is_sparse) and n_steps >= rule.steps
