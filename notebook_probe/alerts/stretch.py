"""How long a condition has held at one module, and whether that was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_probe.alerts.rule import Rule

__all__ = ["Stretch"]


@dataclass(slots=True)
class Stretch:
    """Measured rows in a row that fulfil a condition."""

    reported: bool = False
    rows: int = 0
    since: int = -1
    """Step of the first of them."""
    after: int = -1
    """Step of the measured row before it, which did not fulfil it; -1 where there was none."""
    rows_since: int = 0
    """Measured rows since the last that fulfilled it."""

    def rest(self, n_rows: int) -> None:
        """So many measured rows do not fulfil it."""
        self.rows_since += n_rows
        if n_rows:
            self.rows = 0

    @property
    def began(self) -> tuple[int, int]:
        """The steps between which it began: after the last row without it, up to the first."""
        return (self.since if self.after < 0 else self.after + 1), self.since

    def hold(self, step: int, after: int, rule: Rule, *, tells: bool) -> bool:
        """One measured row fulfils it, the one ``after`` that of another step.

        True when that is to be said, which it is once.
        """
        if not self.rows:
            self.since, self.after = step, after
            self.reported = self.reported and not rule.is_new_after(self.rows_since)
        self.rows_since = 0
        self.rows += 1
        long_enough = self.rows >= rule.rows and step - self.since >= rule.steps
        if self.reported or not (tells and long_enough):
            return False
        self.reported = True
        return True
