"""Schedules as text: what is allowed, and what it means.

``a | b``, of ``a & b``, of ``name(...)``, an interval, or another text in parentheses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

from notebook_probe.errors import ScheduleError, near
from notebook_probe.schedules.between import Between
from notebook_probe.schedules.ends import IncludeFirst, IncludeLast
from notebook_probe.schedules.every import Every
from notebook_probe.schedules.geometric import Geometric
from notebook_probe.schedules.keep import KeepN
from notebook_probe.schedules.numbers import integer
from notebook_probe.schedules.operators import AllOf, AnyOf
from notebook_probe.schedules.protocols import Schedule
from notebook_probe.schedules.seconds import Seconds
from notebook_probe.schedules.steps import Steps
from notebook_probe.schedules.times import Times

__all__ = ["EXAMPLES", "parse"]

EXAMPLES = (
    "every(1), every(50), every(50, 10), linear(5, 0), every 50, 50, steps(0, 5), times(20), "
    "geometric(100, 1.2), seconds(30), keep(256), between(100, 200), include_first(every(50)), "
    "include_last(every(50)), and & | ( ) between them"
)
# Whole numbers first, unless a dot or letter follows: `50` stays an int, `5.0` and `1e3` are
# floats.
TOKEN = re.compile(
    r"\s*(?:([+-]?[0-9]+)(?![\w.])|([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)|([A-Za-z]\w*)|(\S))"
)
# The parser calls itself, and must not run out of Python's stack.
DEEPEST = 50
"""Parentheses in parentheses."""
LONGEST_SHOWN = 200

Token: TypeAlias = "int | float | str"
Given: TypeAlias = "int | float | Schedule"


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of a schedule's text ``name(...)``."""

    make: Callable[..., Schedule]
    least: int
    most: float
    """Maximum number of arguments."""


def _linear(*given: Given) -> Schedule:
    """Taiyi's own default is (0, 0)."""
    numbers = [integer(number, f"linear({number})") for number in given]
    return Every(1) if numbers == [0, 0] else Every(*numbers)


FORMS = {
    "every": _Form(Every, 1, 2),
    "linear": _Form(_linear, 1, 2),
    "steps": _Form(lambda *steps: Steps(steps), 0, math.inf),
    "times": _Form(Times, 1, 1),
    "geometric": _Form(Geometric, 2, 2),
    "seconds": _Form(Seconds, 1, 1),
    "keep": _Form(KeepN, 1, 2),
    "between": _Form(Between, 2, 2),
    "include_first": _Form(lambda part: IncludeFirst(_schedule(part)), 1, 1),
    "include_last": _Form(lambda part: IncludeLast(_schedule(part)), 1, 1),
}


def parse(text: str) -> Schedule:
    """Return the schedule of a text; a blank text means none.

    Raises
    ------
    ScheduleError
        Invalid text, with what is allowed.
    """
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    try:
        return _Parser([*_tokens(text)]).whole()
    except _UnknownName as error:
        meant = f"; {error.mended(text)}? Allowed are" if error.close else f": {error}; allowed:"
        raise ScheduleError(f"schedule {shown!r} does not parse{meant} {EXAMPLES}") from None
    except _Unreadable as error:
        raise ScheduleError(
            f"schedule {shown!r} does not parse: {error}; allowed: {EXAMPLES}"
        ) from None
    except ScheduleError as error:
        raise ScheduleError(f"schedule {shown!r}: {error}") from None


def _tokens(text: str) -> Iterator[Token]:
    for match in TOKEN.finditer(text.rstrip()):
        whole, real, name, sign = match.groups()
        try:
            yield int(whole) if whole else float(real) if real else name or sign
        except ValueError:
            raise _Unreadable(f"{(whole or real)[:LONGEST_SHOWN]} is no number") from None


class _Unreadable(ScheduleError):
    """Error in a text, as text."""


class _UnknownName(_Unreadable):
    """Unknown name of a schedule."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule is called {name!r}, {near(name, FORMS)}")
        self._name = name
        self.close = get_close_matches(name, FORMS, n=1, cutoff=0.6)

    def mended(self, text: str) -> str:
        """Return the probably intended text."""
        return re.sub(rf"\b{re.escape(self._name)}\b", self.close[0], text.strip())


class _Parser:
    """Parser of tokens, once, from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = self._depth = 0

    def whole(self) -> Schedule:
        found = _schedule(self._alternatives())
        if self._next is not None:
            raise self._error()
        return found

    def _alternatives(self) -> Given:
        return self._row("|", AnyOf, self._conjunction)

    def _conjunction(self) -> Given:
        return self._row("&", AllOf, self._one)

    def _row(self, sign: str, kind: Callable[[Any], Schedule], part: Callable[[], Given]) -> Given:
        parts = [part()]
        while self._take(sign):
            parts.append(part())
        return parts[0] if len(parts) == 1 else kind(tuple(map(_schedule, parts)))

    def _one(self) -> Given:
        token = self._next
        if isinstance(token, int | float):
            self._at += 1
            return token
        if self._take("("):
            found = self._inside(self._alternatives)
            self._expect(")")
            return _schedule(found)
        if token is None or not token[0].isalpha():
            raise self._error()
        self._at += 1
        return self._called(token)

    def _called(self, name: str) -> Schedule:
        n = self._next
        if name == "every" and isinstance(n, int):  # as one says it
            self._at += 1
            return Every(n)
        if name not in FORMS:
            raise _UnknownName(name)
        self._expect("(")
        given = self._inside(self._arguments)
        self._expect(")")
        form = FORMS[name]
        if not form.least <= len(given) <= form.most:
            raise _Unreadable(f"{name} with {len(given)} arguments")
        return form.make(*given)

    def _arguments(self) -> list[Given]:
        if self._next == ")":
            return []
        given = [self._alternatives()]
        while self._take(","):
            given.append(self._alternatives())
        return given

    def _inside(self, read: Callable[[], Any]) -> Any:
        if self._depth == DEEPEST:
            raise _Unreadable(f"more than {DEEPEST} parentheses in each other")
        self._depth += 1
        found = read()
        self._depth -= 1
        return found

    @property
    def _next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, sign: str) -> bool:
        is_there = self._next == sign
        self._at += is_there
        return is_there

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._error()

    def _error(self) -> _Unreadable:
        token = self._next
        there = "it ends too early" if token is None else f"{token!r} is not expected there"
        return _Unreadable(there)


def _schedule(given: Given) -> Schedule:
    """Return a number as an interval."""
    return given if isinstance(given, Schedule) else Every(given)  # type: ignore[arg-type]
