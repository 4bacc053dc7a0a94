"""Parsing of a user's schedule: text, an interval, a function, or nothing."""

from __future__ import annotations

from numbers import Integral

from notebook_probe.errors import ScheduleError
from notebook_probe.schedules.every import Every
from notebook_probe.schedules.numbers import integer
from notebook_probe.schedules.operators import taken
from notebook_probe.schedules.protocols import Schedule, ScheduleLike
from notebook_probe.schedules.text import EXAMPLES, parse

__all__ = ["schedule"]


def schedule(given: ScheduleLike) -> Schedule:
    """Read a schedule: text, an interval, a callable, or nothing for every step.

    ``"every(n, offset)"``, ``"every n"``, ``"n"`` and Taiyi's ``"linear(a, b)"`` mean `Every`;
    ``""``, None and ``"linear(0,0)"`` mean every step. The others are written as they print:
    ``"steps(0, 5)"``, ``"times(20)"``, ``"geometric(100, 1.2)"``, ``"seconds(30)"``,
    ``"keep(256)"``, ``"between(100, 200)"``, ``"include_first(...)"``, ``"include_last(...)"``,
    put together by ``&``, ``|`` and parentheses.

    Raises
    ------
    ScheduleError
        Anything else; the message says what is allowed.

    Examples
    --------
    >>> schedule("linear(5, 2)")
    Every(n=5, offset=2)
    >>> schedule(10) == schedule("10") == schedule("every 10") == Every(10)
    True
    >>> schedule("every(10) & between(100, 200)") == Every(10) & schedule("between(100, 200)")
    True
    """
    if given is None:
        return Every(1)
    if isinstance(given, str):
        return parse(given) if given.strip() else Every(1)
    if isinstance(given, Integral):
        return Every(integer(given, f"schedule {given!r}"))
    if callable(given) and not isinstance(given, type):
        return taken(given)
    raise ScheduleError(f"{given!r} is no schedule; allowed: {EXAMPLES}, an int or a callable")
