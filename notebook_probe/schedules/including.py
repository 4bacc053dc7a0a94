"""The first and the last step, beside those of any schedule."""

from __future__ import annotations

from notebook_probe.schedules.ends import IncludeFirst, IncludeLast
from notebook_probe.schedules.protocols import ScheduleLike
from notebook_probe.schedules.read import schedule

__all__ = ["include_first", "include_last"]


def include_first(given: ScheduleLike) -> IncludeFirst:
    """Also due at the first step that is seen: of a run, after a resume or a late attach.

    Raises
    ------
    ScheduleError
        For what is no schedule.

    Examples
    --------
    >>> str(include_first("every(10, 9)"))
    'include_first(every(10, 9))'
    """
    return IncludeFirst(schedule(given))


def include_last(given: ScheduleLike) -> IncludeLast:
    """Also due at the last step of a run; where its end is not known before, once it has ended.

    Raises
    ------
    ScheduleError
        For what is no schedule.

    Examples
    --------
    >>> from notebook_probe.schedules import Span
    >>> one = include_last(10).bound(Span().until(25))
    >>> [step for step in range(25) if one(step)]
    [0, 10, 20, 24]
    """
    return IncludeLast(schedule(given))
