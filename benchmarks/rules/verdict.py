"""Which alerts of a training are right, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.rules.recipe import Case
from benchmarks.rules.runner import Outcome, Said

__all__ = ["AT_MOST", "WITHIN", "Verdict", "judged"]

WITHIN = 50
"""Steps after the cause in which it should be named."""
AT_MOST = 100
"""Steps after which a name comes too late to be of use."""


@dataclass(frozen=True)
class Verdict:
    """The alerts of one training, sorted.

    Attributes
    ----------
    right : tuple of Said
        Names of the cause, since it was planted.
    remarked : tuple of Said
        The same, as remarks: what may be intended is no alert.
    false : tuple of Said
        Whatever is said of a training that is healthy, or not yet spoiled.
    follows : tuple of Said
        Consequences of the cause.
    also : tuple of Said
        Said of a spoiled training, and neither.
    """

    case: Case
    outcome: Outcome
    right: tuple[Said, ...]
    remarked: tuple[Said, ...]
    false: tuple[Said, ...]
    follows: tuple[Said, ...]
    also: tuple[Said, ...]

    @property
    def is_named(self) -> bool:
        """Whether the cause was named in time."""
        return self.is_named_within(WITHIN)

    def is_named_within(self, steps: int) -> bool:
        """Return whether an alert names the cause in so many steps."""
        return self._has_within(steps, self.right)

    def is_told_within(self, steps: int) -> bool:
        """Return whether an alert or a remark names the cause in so many steps."""
        return self._has_within(steps, (*self.right, *self.remarked))

    def _has_within(self, steps: int, found: tuple[Said, ...]) -> bool:
        deadline = self.case.recipe.cause.step + steps
        return any(one.step <= deadline for one in found)

    @property
    def misleads(self) -> bool:
        """Whether another cause was named, and the right one was not."""
        return self.case.planted and bool(self.also) and not self.is_named_within(AT_MOST)

    @property
    def word(self) -> str:
        """The verdict in one word."""
        if not self.case.planted:
            return "FALSE" if self.false else "silent"
        if self.is_named:
            return "right"
        if self.is_told_within(WITHIN):
            return "remark"
        return "LATE" if self.right or self.remarked else "MISSED"


def judged(case: Case, outcome: Outcome) -> Verdict:
    """Sort what was said."""
    cause = case.recipe.cause
    since = [one for one in outcome.said if case.planted and one.step >= cause.step]
    false = [one for one in outcome.said if one not in since]
    right = [one for one in since if one.rule in cause.names]
    remarked = [
        one
        for one in outcome.remarked
        if case.planted and one.step >= cause.step and one.rule in cause.names
    ]
    follows = [one for one in since if one.rule in cause.follows - cause.names]
    also = [one for one in since if one.rule not in cause.names | cause.follows]
    return Verdict(case, outcome, *map(tuple, (right, remarked, false, follows, also)))
