"""Combined schedules, ``a & b`` and ``a | b``, and users' own functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.arming import bound, can_foresee
from notebook_probe.schedules.numbers import hashed_name
from notebook_probe.schedules.protocols import Schedule
from notebook_probe.schedules.span import Span

__all__ = ["AllOf", "AnyOf", "Custom", "Operators", "taken"]

LEAPS = 256
"""Steps to search ahead for one that suits several schedules, in steps that suit one."""
LAST = 2**63 - 1
"""The last step that a record can hold."""


class Operators:
    """Operators between a schedule and another, or a function ``step -> bool``."""

    __slots__ = ()

    def __and__(self: Schedule, other: Callable[[int], bool]) -> AllOf:
        return AllOf((self, taken(other))) if _is_one(other) else NotImplemented

    def __rand__(self: Schedule, other: Callable[[int], bool]) -> AllOf:
        return AllOf((taken(other), self)) if _is_one(other) else NotImplemented

    def __or__(self: Schedule, other: Callable[[int], bool]) -> AnyOf:
        return AnyOf((self, taken(other))) if _is_one(other) else NotImplemented

    def __ror__(self: Schedule, other: Callable[[int], bool]) -> AnyOf:
        return AnyOf((taken(other), self)) if _is_one(other) else NotImplemented


@dataclass(frozen=True, slots=True)
class Custom(Operators):
    """A user's own ``step -> bool``; the same function is the same schedule."""

    function: Callable[[int], bool]

    def __call__(self, step: int) -> bool:
        return bool(self.function(step))

    @property
    def stream(self) -> str:
        return f"custom_{re.sub(r'[^A-Za-z0-9]+', '_', self._name).strip('_') or 'schedule'}"

    def __str__(self) -> str:
        return self._name

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


@dataclass(frozen=True, slots=True)
class AllOf(Operators):
    """Due where each of its parts is: ``a & b``.

    Examples
    --------
    >>> from notebook_probe.schedules import Every, between
    >>> one = Every(10) & between(25, 60)
    >>> str(one), [step for step in range(100) if one(step)]
    ('every(10) & between(25, 60)', [30, 40, 50])
    """

    parts: tuple[Schedule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts(AllOf, self.parts))

    def __call__(self, step: int) -> bool:
        asked = [part(step) for part in self.parts]  # each of them: one may keep time
        return all(asked)

    def bound(self, span: Span) -> AllOf:
        return AllOf(tuple(bound(part, span) for part in self.parts))

    @property
    def stream(self) -> str:
        return hashed_name("all", str(self))

    def next_due(self, step: int) -> int | None:
        """First due step from ``step`` on; None when there is none, or none is found soon."""
        for _ in range(LEAPS):
            if step > LAST:
                return None
            dues = [part.next_due(step) for part in self.parts if can_foresee(part)]
            known = [due for due in dues if due is not None]
            # A part is over, or cannot foresee: nothing is known.
            if len(known) < len(self.parts):
                return None
            if max(known) == step:
                return step
            # No step before it suits all of them.
            step = max(known)
        return None

    def __str__(self) -> str:
        return " & ".join(f"({p})" if isinstance(p, AnyOf) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf(Operators):
    """Due where one of its parts is: ``a | b``.

    Examples
    --------
    >>> from notebook_probe.schedules import Every, Steps
    >>> one = Every(10) | Steps({1, 2})
    >>> str(one), [step for step in range(25) if one(step)]
    ('every(10) | steps(1, 2)', [0, 1, 2, 10, 20])
    """

    parts: tuple[Schedule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts(AnyOf, self.parts))

    def __call__(self, step: int) -> bool:
        asked = [part(step) for part in self.parts]  # as above
        return any(asked)

    def bound(self, span: Span) -> AnyOf:
        return AnyOf(tuple(bound(part, span) for part in self.parts))

    @property
    def stream(self) -> str:
        return hashed_name("any", str(self))

    def next_due(self, step: int) -> int | None:
        dues = [part.next_due(step) for part in self.parts if can_foresee(part)]
        known = [due for due in dues if due is not None]
        return min(known) if known and len(dues) == len(self.parts) else None

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


def taken(given: Schedule | Callable[[int], bool]) -> Schedule:
    """Return a schedule unchanged, and a function as one.

    Raises
    ------
    ScheduleError
        It cannot be hashed.
    """
    found = given if isinstance(given, Schedule) else Custom(given)
    try:
        hash(found)
    except TypeError:
        raise ScheduleError(f"{given!r} must be hashable: equal schedules share rows") from None
    return found


def _is_one(given: object) -> bool:
    return callable(given) and not isinstance(given, type)


_Kind = TypeVar("_Kind", AllOf, AnyOf)


def _parts(kind: type[_Kind], given: Iterable[Any]) -> tuple[Schedule, ...]:
    """Return the parts of one kind, flattened."""
    parts: list[Schedule] = []
    for one in given:
        if not _is_one(one):
            raise ScheduleError(f"{one!r} is no schedule; allowed: schedules and functions")
        part = taken(one)
        parts += part.parts if isinstance(part, kind) else [part]
    if len(parts) < 2:
        raise ScheduleError(f"{kind.__name__}: two schedules or more are expected")
    return tuple(parts)
