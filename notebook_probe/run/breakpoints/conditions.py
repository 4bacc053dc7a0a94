"""What training can be held by, as frozen values: each tells whether it can be, and says itself.

Imported without torch: a panel asks for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self, TypeAlias

from notebook_probe.errors import BreakpointError, UnknownNameError, near
from notebook_probe.run.breakpoints.comparison import CROSSES, Comparison

__all__ = [
    "SEVERE",
    "AtStep",
    "Before",
    "Condition",
    "OnAlert",
    "OnError",
    "OnNan",
    "OnSeries",
]

Before: TypeAlias = Literal["step", "update"]
"""Where it holds: before the next batch is taken, or before the optimizer applies the gradient."""

SEVERE = "severe"
"""Every rule that tells of a training which is about to be lost."""


class Condition(Protocol):
    """Something that holds the training when it happens."""

    kind: ClassVar[str]

    @property
    def before(self) -> Before: ...

    @property
    def text(self) -> str:
        """In words, as it is listed."""
        ...

    @property
    def number(self) -> float | None:
        """The number that can be edited in place; None without one."""
        ...

    def but(self, number: float) -> Self:
        """The same with another number; raises BreakpointError."""
        ...


class _WithoutNumber:
    """A condition in which there is nothing to edit."""

    @property
    def number(self) -> float | None:
        return None

    def but(self, number: float) -> Self:
        raise BreakpointError(f"there is no number in it that could be {number:g}")


@dataclass(frozen=True, slots=True)
class AtStep:
    """Before step ``step`` is trained: after so many updates."""

    kind: ClassVar[str] = "step"
    step: int

    def __post_init__(self) -> None:
        if not isinstance(self.step, int) or isinstance(self.step, bool) or self.step < 0:
            raise BreakpointError(f"step={self.step!r}; a whole number from 0 is expected")

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        return f"at step {self.step}"

    @property
    def number(self) -> float | None:
        return self.step

    def but(self, number: float) -> Self:
        if number % 1:
            raise BreakpointError(f"step={number!r}; a whole number from 0 is expected")
        return replace(self, step=int(number))


@dataclass(frozen=True, slots=True)
class OnAlert(_WithoutNumber):
    """When a rule fires: one of ``rules`` by name, or any that is severe."""

    kind: ClassVar[str] = "alert"
    rules: tuple[str, ...] = (SEVERE,)

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        if self.rules == (SEVERE,):
            return "a severe alert fires"
        return f"alert {' or '.join(self.rules)}"

    def check(self, known: Collection[str]) -> None:
        """Raise UnknownNameError for a rule that is not followed."""
        for name in self.rules:
            if name != SEVERE and name not in known:
                raise UnknownNameError(f"no alert rule {name!r}; {near(name, [SEVERE, *known])}")


@dataclass(frozen=True, slots=True)
class OnSeries:
    """When a series compares so with a number, for so many measured rows one after the other."""

    kind: ClassVar[str] = "series"
    module: str
    """As module axes write it; ``(root)`` for what the loop logs."""
    quantity: str
    comparison: Comparison
    for_rows: int = 1
    before: Before = "step"

    def __post_init__(self) -> None:
        n = self.for_rows
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise BreakpointError(f"for_rows={n!r}; a whole number from 1 is expected")
        if n > 1 and self.comparison.sign == CROSSES:
            raise BreakpointError(f"for_rows={n}: a series crosses in one row; use > or <")

    @property
    def series(self) -> str:
        """Its name, as lines are labelled."""
        place = "" if self.module == "(root)" else f"{self.module} · "
        return f"{place}{self.quantity}"

    @property
    def text(self) -> str:
        rows = f" for {self.for_rows} rows" if self.for_rows > 1 else ""
        before = ", before the update" if self.before == "update" else ""
        return f"{self.series} {self.comparison}{rows}{before}"

    @property
    def number(self) -> float | None:
        return self.comparison.threshold

    def but(self, number: float) -> Self:
        return replace(self, comparison=Comparison(self.comparison.sign, number))


@dataclass(frozen=True, slots=True)
class OnNan(_WithoutNumber):
    """When a loss, an output or a gradient that is watched is NaN or infinite."""

    kind: ClassVar[str] = "nan"
    before: Before = "step"

    @property
    def text(self) -> str:
        before = ", before the update" if self.before == "update" else ""
        return f"a loss, output or gradient is NaN or infinite{before}"


@dataclass(frozen=True, slots=True)
class OnError(_WithoutNumber):
    """When the loop raises."""

    kind: ClassVar[str] = "error"

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        return "the loop raises"
