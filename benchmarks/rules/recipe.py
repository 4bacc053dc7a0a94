"""A recipe: a training as it is healthy, and with one cause of failure planted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from benchmarks.rules.training import Training

__all__ = ["NOTHING", "PARTS", "Case", "Cause", "Part", "Recipe", "Recipes", "cause"]

Part = Literal["set", "judge", "unseen", "mistakes_set", "mistakes_judge", "practice", "published"]
PARTS: tuple[Part, ...] = (
    *("set", "judge", "unseen", "mistakes_set", "mistakes_judge"),
    "practice",  # healthy ones alone
    "published",  # kinds of faults in sets that others have published
)


@dataclass(frozen=True)
class Cause:
    """What is planted, from which step on, and which rules name it rightly.

    Attributes
    ----------
    name : str
        Of the cause.
    step : int
        The first that it acts upon.
    names : frozenset of str
        Rules of which each, alone, tells who reads it what is wrong.
    follows : frozenset of str
        Rules about what the cause leads to, or that another word for it: neither right nor false.
    """

    name: str
    step: int
    names: frozenset[str]
    follows: frozenset[str] = frozenset()


def cause(name: str, *names: str, step: int = 0, follows: Sequence[str] = ()) -> Cause:
    """Return a cause that these rules name."""
    return Cause(name, step, frozenset(names), frozenset(follows))


NOTHING = Cause("nothing", 0, frozenset())
"""The cause of a recipe that is healthy alone."""


@dataclass(frozen=True)
class Recipe:
    """Builds a training, with its cause, if it has one, or without."""

    name: str
    part: Part
    cause: Cause
    build: Callable[[bool], Training]

    def cases(self) -> tuple[Case, ...]:
        """The healthy one and the spoiled, if there is one."""
        planted = (False,) if self.cause is NOTHING else (False, True)
        return tuple(Case(self, planted=one) for one in planted)


@dataclass(frozen=True)
class Case:
    """One training of the benchmark."""

    recipe: Recipe
    planted: bool

    @property
    def name(self) -> str:
        """The recipe's, and that of what is planted."""
        return f"{self.recipe.name}+{self.recipe.cause.name}" if self.planted else self.recipe.name

    def build(self) -> Training:
        """The training, always from the same seed."""
        torch.manual_seed(0)
        return self.recipe.build(self.planted)


class Recipes(list[Recipe]):
    """The recipes of one part, in the order in which they are written."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self._part: Part = part

    def add(
        self, cause: str, names: Sequence[str], *, step: int = 0, follows: Sequence[str] = ()
    ) -> Callable[[Callable[[bool], Training]], Callable[[bool], Training]]:
        """Add the decorated function, under its name."""

        def added(build: Callable[[bool], Training]) -> Callable[[bool], Training]:
            planted = Cause(cause, step, frozenset(names), frozenset(follows))
            self.append(Recipe(build.__name__, self._part, planted, build))
            return build

        return added

    def healthy(self, build: Callable[[], Training]) -> Callable[[], Training]:
        """Add the decorated function, in which no cause is planted."""
        self.append(Recipe(build.__name__, self._part, NOTHING, lambda _: build()))
        return build

    def each(
        self, *causes: Cause
    ) -> Callable[[Callable[[str], Training]], Callable[[str], Training]]:
        """Add the decorated function once per cause, whose name is its argument; "" for none."""

        def added(build: Callable[[str], Training]) -> Callable[[str], Training]:
            for one in causes:
                self.append(Recipe(build.__name__, self._part, one, _with(build, one.name)))
            return build

        return added


def _with(build: Callable[[str], Training], name: str) -> Callable[[bool], Training]:
    return lambda planted: build(name if planted else "")
