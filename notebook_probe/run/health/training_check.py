"""Base of checks of the training whose findings wait until the writer's thread takes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset

__all__ = ["TrainingCheck"]


class TrainingCheck(ABC):
    """A check that finds something at most once; it looks on the training thread.

    Parameters
    ----------
    rules : mapping of str to Rule
        Followed rules; without `rule` nothing is looked for.

    Attributes
    ----------
    rule : str
        Name of the rule that its findings are about.
    """

    rule: ClassVar[str]

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._found: list[Onset] = []

    @abstractmethod
    def look(self, step: int) -> bool:
        """Look at the training before a step; return whether to look before the next one, too."""

    def take(self) -> list[Onset]:
        """Return and forget the findings."""
        found, self._found = self._found, []
        return found
