"""When a probe measures: a schedule is any ``step -> bool``; these are the ones with a name.

Schedules are frozen values: equal ones are the same schedule, share one step axis in the record,
and may be asked twice. A step is 0-based, the number of updates completed before its batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol, TypeAlias, runtime_checkable

from notebook_probe.errors import ScheduleError

__all__ = ["Custom", "Every", "Foreseen", "Schedule", "ScheduleLike", "Steps", "schedule"]

EXAMPLES = "every(1), every(50), every(50, 10), linear(5, 0), every 50, 50"
BARE = re.compile(r"\s*(?:every\s+)?(-?\d+)\s*")
"""An interval alone, as one types it."""


@runtime_checkable
class Schedule(Protocol):
    """Due or not, decided once per step; ``stream`` names the step axis its rows lie on."""

    def __call__(self, step: int) -> bool: ...

    @property
    def stream(self) -> str:
        """Name of the record's stream: a valid group name, equal for schedules that share rows."""
        ...


@runtime_checkable
class Foreseen(Protocol):
    """A schedule that can say when it will be due without being asked step by step."""

    def next_due(self, step: int) -> int | None:
        """First due step from ``step`` on; None when there is none."""
        ...


ScheduleLike: TypeAlias = "Schedule | Callable[[int], bool] | str | int | None"


@dataclass(frozen=True, slots=True)
class Every:
    """Every ``n`` steps from ``offset`` on: ``step >= offset and (step - offset) % n == 0``.

    Parameters
    ----------
    n : int
        Interval, at least 1.
    offset : int
        First step that is due (when not negative).

    Examples
    --------
    >>> [step for step in range(12) if Every(5, 1)(step)]
    [1, 6, 11]
    """

    n: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("offset", self.offset)):
            object.__setattr__(self, name, _integer(value, f"Every({name}={value!r})"))
        if self.n < 1:
            raise ScheduleError(f"Every(n={self.n}): the interval must be at least 1")

    def __call__(self, step: int) -> bool:
        return step >= self.offset and (step - self.offset) % self.n == 0

    @property
    def stream(self) -> str:
        phase = self.offset % self.n  # a later start on the same grid needs no axis of its own
        return f"every_{self.n}" if phase == 0 else f"every_{self.n}_{phase}"

    def next_due(self, step: int) -> int | None:
        past = max(step - self.offset, 0)
        return self.offset + -(-past // self.n) * self.n

    def __str__(self) -> str:
        return f"every({self.n}, {self.offset})" if self.offset else f"every({self.n})"


@dataclass(frozen=True, slots=True)
class Steps:
    """Exactly the given steps.

    Examples
    --------
    >>> [step for step in range(9) if Steps({0, 4, 8})(step)]
    [0, 4, 8]
    """

    steps: frozenset[int]

    def __init__(self, steps: Iterable[int]) -> None:
        whole = frozenset(_integer(step, f"Steps({step!r})") for step in steps)
        object.__setattr__(self, "steps", whole)

    def __call__(self, step: int) -> bool:
        return step in self.steps

    @property
    def stream(self) -> str:
        return f"steps_{hash(self.steps) & 0xFFFFFFFF:08x}"

    def next_due(self, step: int) -> int | None:
        return min((due for due in self.steps if due >= step), default=None)

    def __str__(self) -> str:
        return f"steps({', '.join(map(str, sorted(self.steps)))})"


@dataclass(frozen=True, slots=True)
class Custom:
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


def schedule(given: ScheduleLike) -> Schedule:
    """Read a schedule: text, an interval, a callable, or nothing for every step.

    ``"every(n, offset)"``, ``"every n"``, ``"n"`` and Taiyi's ``"linear(a, b)"`` mean ``Every``;
    ``""``, None and ``"linear(0,0)"`` mean every step.

    Raises
    ------
    ScheduleError
        For anything else, with what is allowed.

    Examples
    --------
    >>> schedule("linear(5, 2)")
    Every(n=5, offset=2)
    >>> schedule(10) == schedule("10") == schedule("every 10") == Every(10)
    True
    """
    if given is None:
        return Every(1)
    if isinstance(given, str):
        return _parse(given)
    if isinstance(given, Integral):
        return Every(_integer(given, f"schedule {given!r}"))
    if callable(given) and not isinstance(given, type):
        found = given if isinstance(given, Schedule) else Custom(given)
        try:
            hash(found)
        except TypeError:
            raise ScheduleError(f"{given!r} must be hashable: equal schedules share rows") from None
        return found
    raise ScheduleError(f"{given!r} is no schedule; allowed: {EXAMPLES}, an int or a callable")


def _integer(value: object, where: str) -> int:
    """Any integer, numpy's too; a bool is none, though Python counts with it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ScheduleError(f"{where}: an integer is expected")
    return int(value)


def _parse(text: str) -> Schedule:
    if not text.strip():
        return Every(1)
    bare = BARE.fullmatch(text)
    match = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", f"every({bare[1]})" if bare else text)
    if match is None or match[1] not in ("every", "linear"):
        raise ScheduleError(f"schedule {text!r} does not parse; allowed: {EXAMPLES}")
    try:
        numbers = [int(part) for part in match[2].split(",")]
    except ValueError:
        raise ScheduleError(
            f"schedule {text!r}: one or two integers expected; allowed: {EXAMPLES}"
        ) from None
    if len(numbers) > 2:
        raise ScheduleError(f"schedule {text!r} has {len(numbers)} numbers; at most 2 are allowed")
    if match[1] == "linear" and numbers == [0, 0]:  # Taiyi's own default
        return Every(1)
    try:
        return Every(*numbers)
    except ScheduleError as error:
        raise ScheduleError(f"schedule {text!r}: {error}") from None
