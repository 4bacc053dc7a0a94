"""What is done with a schedule by whoever arms it: a run's probes, a loop's callbacks.

It is bound to the run's span, asked once per step, told when the work is done, bound anew when
more is known of the end, and asked at the end whether it was owed something.
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
    """What a schedule comes to in a run; itself, where it needs to know nothing of it.

    Examples
    --------
    >>> from notebook_probe.schedules import Times
    >>> one = bound(Times(4), Span(start=100).until(110))
    >>> [step for step in range(90, 120) if one(step)]
    [102, 104, 107, 109]
    """
    return one.bound(span) if isinstance(one, Bindable) else one


def restart(one: Schedule) -> None:
    """Tell an armed schedule that the work for which it was due is done."""
    for leaf in _leaves(one):
        if isinstance(leaf, Restarted):
            leaf.restart()


def has_clock(one: Schedule) -> bool:
    """Tell whether an armed schedule must be told of work that is done."""
    return any(isinstance(leaf, Restarted) for leaf in _leaves(one))


def can_foresee(one: Schedule) -> TypeGuard[Foreseen]:
    """Tell whether all that it is made of can say ahead of time when it will be due."""
    # As isinstance, which is slow for protocols.
    return hasattr(type(one), "next_due") and all(
        hasattr(type(leaf), "next_due") for leaf in _leaves(one)
    )


def is_owed(armed: Schedule, span: Span, last: int) -> bool:
    """Tell whether its last step should have been due, had the end of the run been known.

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
    if not hasattr(type(one), "parts") or not isinstance(one, Composite):
        yield one
        return
    for part in one.parts:
        yield from _leaves(part)
