"""Conditions of ``follow --until``: ``alert|step>=500|finished``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from notebook_probe.alerts.rule import SEVERITIES, Severity
from notebook_probe.command_line.reading.opening import severity_rank
from notebook_probe.errors import QueryError, near

__all__ = ["FINISHED", "FollowedState", "met", "parse_until"]

FINISHED = "finished"
ALERT = "alert"
STEP = re.compile(r"step\s*>=\s*(\d{1,18})")
KNOWN = (ALERT, *SEVERITIES, "step>=100", FINISHED)


@dataclass(frozen=True, slots=True)
class FollowedState:
    """State of a followed run that a condition looks at."""

    steps: int
    """Number of completed steps."""
    worst: Severity | None
    """Greatest severity so far."""
    is_finished: bool


def parse_until(text: str) -> tuple[str, ...]:
    """Return the alternatives of a condition.

    Raises
    ------
    QueryError
        One cannot be read.

    Examples
    --------
    >>> parse_until("severe | step >= 20")
    ('severe', 'step>=20')
    """
    words = tuple("".join(one.split()) for one in text.split("|"))
    for word in words:
        if word not in KNOWN and not STEP.fullmatch(word):
            raise QueryError(f"--until {text}: {word!r} is no condition; {near(word, KNOWN)}")
    return words


def met(words: tuple[str, ...], state: FollowedState) -> str | None:
    """Return the first alternative that is met; None if none is.

    Examples
    --------
    >>> now = FollowedState(steps=21, worst="warning", is_finished=False)
    >>> met(("severe", "step>=20"), now), met(("alert",), now), met(("finished",), now)
    ('step>=20', 'alert', None)
    """
    return next((word for word in words if _is_met(word, state)), None)


def _is_met(word: str, state: FollowedState) -> bool:
    if word == FINISHED:
        return state.is_finished
    if found := STEP.fullmatch(word):
        return state.steps > int(found[1])
    least = severity_rank("warning" if word == ALERT else word)
    return state.worst is not None and severity_rank(state.worst) >= least
