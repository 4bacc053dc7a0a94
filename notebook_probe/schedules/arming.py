"""Arming of schedules by their users: a run's probes, a loop's callbacks.

A schedule is bound to the run's span, called once per step, notified when the work is done, bound
again when more is known about the end, and at the end checked for an owed step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from notebook_probe.schedules.protocols import (
    Bindable,
    Composite,
    Foreseen,
    Restarted,
    Schedule,
)
from notebook_probe.schedules.span import Span

__all__ = ["bound", "can_foresee", "has_clock", "is_owed", "restart"]


def bound(one: Schedule, span: Span) -> Schedule:
    """Return the schedule for a run; the same object, if it needs no facts about the run.

    Examples
    --------
    >>> from notebook_probe.schedules import Times
    >>> one = bound(Times(4), Span(start=100).until(110))
    >>> [step for step in range(90, 120) if one(step)]
    [102, 104, 107, 109]
    """
    return one.bound(span) if isinstance(one, Bindable) else one


def restart(one: Schedule) -> None:
    """Notify an armed schedule that its work is done."""
    for leaf in _leaves(one):
        if isinstance(leaf, Restarted):
            leaf.restart()


def has_clock(one: Schedule) -> bool:
    """Return whether an armed schedule must be notified when work is done."""
    return any(isinstance(leaf, Restarted) for leaf in _leaves(one))


def can_foresee(one: Schedule) -> TypeGuard[Foreseen]:
    """Return whether all of its parts know in advance when they are due."""
    # As isinstance, which is slow for protocols.
    return hasattr(type(one), "next_due") and all(
        hasattr(type(leaf), "next_due") for leaf in _leaves(one)
    )


def is_owed(armed: Schedule, span: Span, last: int) -> bool:
    """Return whether its last step should have been due, had the end of the run been known.

    A callback is then called once when the run has ended.

    Parameters
    ----------
    armed : Schedule
        Bound to ``span``.
    last : int
        The step that was the last one.

    Examples
    --------
    >>> from notebook_probe.schedules import Every, include_last
    >>> span = Span()
    >>> one = bound(include_last(Every(10)), span)
    >>> one(27), is_owed(one, span, 27), is_owed(one, span, 30)
    (False, True, False)
    """
    return not armed(last) and bound(armed, span.until(last + 1, since=last))(last)


def _leaves(one: Schedule) -> Iterator[Schedule]:
    # hasattr first, as isinstance is slow for protocols, and few schedules have parts.
    if not hasattr(type(one), "parts") or not isinstance(one, Composite):
        yield one
        return
    for part in one.parts:
        yield from _leaves(part)
