"""First and last step in addition to any schedule."""

from __future__ import annotations

from notebook_probe.schedules.ends import IncludeFirst, IncludeLast
from notebook_probe.schedules.protocols import ScheduleLike
from notebook_probe.schedules.read import schedule

__all__ = ["include_first", "include_last"]


def include_first(given: ScheduleLike) -> IncludeFirst:
    """Add the first step that is seen: of a run, after a resume or a late attach.

    Raises
    ------
    ScheduleError
        It is not a schedule.

    Examples
    --------
    >>> str(include_first("every(10, 9)"))
    'include_first(every(10, 9))'
    """
    return IncludeFirst(schedule(given))


def include_last(given: ScheduleLike) -> IncludeLast:
    """Add the last step of a run; if its end is not known before, once it has ended.

    Raises
    ------
    ScheduleError
        It is not a schedule.

    Examples
    --------
    >>> from notebook_probe.schedules import Span
    >>> one = include_last(10).bound(Span().until(25))
    >>> [step for step in range(25) if one(step)]
    [0, 10, 20, 24]
    """
    return IncludeLast(schedule(given))
