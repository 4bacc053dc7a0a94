"""Parser of a condition's text.

::

    either  = both ("or" both)*
    both    = one ("and" one)*
    one     = "not" one | "(" either ")" | test
    test    = field sign value | field ["not"] "in" list | field ["not"] "has" value
            | field "is" ["not"] ("missing" | "nan")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from notebook_probe.catalogues.query.comparisons import Among, Compared, Has, IsMissing, IsNan
from notebook_probe.catalogues.query.condition import Condition
from notebook_probe.catalogues.query.fields import field_named
from notebook_probe.catalogues.query.logic import Not, all_of, any_of
from notebook_probe.catalogues.query.tokens import Token, Wrong, tokens
from notebook_probe.catalogues.query.values import ORDERS, kind_of
from notebook_probe.errors import QueryError

__all__ = ["parse"]

DEEPEST = 50
VALUES = "a number, text in quotes, true, false or a list"
TESTS = "==, !=, <, <=, >, >=, in, has or is"
CONSTANTS = {"true": True, "false": False, "inf": float("inf")}


def parse(text: str) -> Condition:
    """Return the condition of a text; every run meets an empty one.

    Raises
    ------
    QueryError
        It says none: what was found, where, and what was expected.

    Examples
    --------
    >>> parse("params.lr < 1e-3 and not (state == 'killed' or tags has 'bad')").fields
    ... # doctest: +SKIP
    >>> print(parse("a == 1 and (b == 2 and c not in [3])"))
    a == 1 and b == 2 and not c in [3]
    """
    words = _Words(text)
    if words.now.kind == "end":
        return all_of(())
    found = _either(words, 0)
    if words.now.kind != "end":
        raise words.expected("'and', 'or' or the end")
    return found


class _Words:
    """The words of one text, one after the other."""

    def __init__(self, text: str) -> None:
        self._rest: Iterator[Token] = tokens(text)
        self.wrong = Wrong(text)
        self.now = next(self._rest)

    def take(self) -> Token:
        # The end repeats itself, so that an error may look at it any number of times.
        taken, self.now = self.now, next(self._rest, self.now)
        return taken

    def took(self, kind: str) -> bool:
        is_next = self.now.kind == kind
        if is_next:
            self.take()
        return is_next

    def expected(self, what: str) -> QueryError:
        return self.wrong.at(self.now.start, f"{what} is expected")


def _either(words: _Words, depth: int) -> Condition:
    return any_of(_joined(words, depth, "or", _both))


def _both(words: _Words, depth: int) -> Condition:
    return all_of(_joined(words, depth, "and", _one))


def _joined(
    words: _Words, depth: int, join: str, part: Callable[[_Words, int], Condition]
) -> Iterator[Condition]:
    yield part(words, depth)
    while words.took(join):
        yield part(words, depth)


def _one(words: _Words, depth: int) -> Condition:
    # Each nesting is a Python call; a text from outside must not exhaust the stack.
    if depth > DEEPEST:
        raise words.wrong.at(words.now.start, f"deeper than {DEEPEST}")
    if words.took("not"):
        return Not(_one(words, depth + 1))
    if words.took("("):
        found = _either(words, depth + 1)
        if not words.took(")"):
            raise words.expected("')'")
        return found
    return _test(words)


def _test(words: _Words) -> Condition:
    if words.now.kind != "name":
        raise words.expected("the name of a field, 'not' or '('")
    field = field_named(words.take().value)
    if words.now.kind == "sign":
        return _compared(words, field)
    if words.took("is"):
        return _is(words, field)
    if words.took("not"):
        return Not(_listed(words, field, "in or has"))
    return _listed(words, field, TESTS)


def _listed(words: _Words, field: str, allowed: str) -> Condition:
    if words.took("in"):
        return _among(words, field)
    if words.took("has"):
        return Has(field, _value(words))
    raise words.expected(allowed)


def _compared(words: _Words, field: str) -> Condition:
    sign, place = words.take().value, words.now
    if words.took("none") and sign not in ORDERS:
        return IsMissing(field) if sign == "==" else Not(IsMissing(field))
    value = _value(words)
    if sign in ORDERS and kind_of(value) not in ("number", "text"):
        raise words.wrong.at(place.start, f"{sign} compares numbers and text")
    return Compared(field, sign, value)


def _is(words: _Words, field: str) -> Condition:
    is_not = words.took("not")
    if words.took("nan"):
        found: Condition = IsNan(field)
    elif words.took("missing") or words.took("none"):
        found = IsMissing(field)
    else:
        raise words.expected("missing or nan")
    return Not(found) if is_not else found


def _among(words: _Words, field: str) -> Condition:
    if words.now.kind not in ("[", "("):
        raise words.expected("a list such as [1, 2]")
    return Among(field, _list(words, 0))


def _value(words: _Words, depth: int = 0) -> Any:
    if words.now.kind == "value":
        return words.take().value
    if words.now.kind in CONSTANTS:
        return CONSTANTS[words.take().kind]
    if words.now.kind == "[" and depth < DEEPEST:
        return _list(words, depth + 1)
    if words.now.kind == "nan":
        raise words.wrong.at(words.now.start, "nothing compares with NaN; 'is nan' asks for it")
    raise words.expected(VALUES)


def _list(words: _Words, depth: int) -> tuple[Any, ...]:
    closing = "]" if words.take().kind == "[" else ")"
    values: list[Any] = []
    while not words.took(closing):
        if values and not words.took(","):
            raise words.expected(f"',' or {closing!r}")
        if words.took(closing):  # a comma after the last
            break
        values.append(_value(words, depth))
    return tuple(values)
