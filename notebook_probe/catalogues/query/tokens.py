"""The words of a condition that was typed, each with its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from notebook_probe.catalogues.query.fields import KEYWORDS, NAME
from notebook_probe.errors import QueryError

__all__ = ["Token", "Wrong", "tokens"]

PATTERNS = {
    "number": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])|[+-]inf\b",
    "name": NAME.pattern,
    "quoted": r"`(?:[^`]|``)+`",
    "text": r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"",
    "sign": r"==|!=|<=|>=|<(?![<>])|>(?![<>])",
    "mark": r"[()\[\],]",
}
TOKEN = re.compile("|".join(f"(?P<{kind}>{one})" for kind, one in PATTERNS.items()), re.DOTALL)
INSTEAD = {
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "=": "==",
    "<>": "!=",
    "!": "not",
}
"""Operators of other languages, and ours."""
ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
SHOWN = 24
"""Characters around an error that a message shows."""


class Token(NamedTuple):
    """One word: a keyword or a sign is its own kind, and ``end`` follows the last."""

    kind: str
    value: Any
    start: int


class Wrong:
    """Errors in one text: what was given, where, and what is allowed."""

    def __init__(self, text: str) -> None:
        self.text = text

    def at(self, start: int, problem: str) -> QueryError:
        before, after = self.text[:start], self.text[start:]
        head = before if len(before) <= SHOWN else f"…{before[-SHOWN:]}"
        tail = after if len(after) <= SHOWN else f"{after[:SHOWN]}…"
        return QueryError(f"where={head + tail!r}: at {tail or 'its end'!r}: {problem}")


def tokens(text: str) -> Iterator[Token]:
    """Yield the words of a text, and its end.

    Raises
    ------
    QueryError
        Something in it is no word.

    Examples
    --------
    >>> [one.value for one in tokens("lr<1e-3 and `my key` == 'a'")]
    ['lr', '<', 0.001, 'and', 'my key', '==', 'a', None]
    """
    wrong, start = Wrong(text), 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        found = TOKEN.match(text, start)
        if found is None:
            raise wrong.at(start, _unknown(text[start:]))
        yield _token(found, wrong)
        start = found.end()
    yield Token("end", None, start)


def _token(found: re.Match[str], wrong: Wrong) -> Token:
    kind, text, start = str(found.lastgroup), found.group(), found.start()
    if kind == "number":
        return Token("value", _number(text, start, wrong), start)
    if kind == "text":
        return Token("value", _unescaped(text[1:-1], start, wrong), start)
    if kind == "quoted":
        return Token("name", text[1:-1].replace("``", "`"), start)
    if kind == "name" and text.lower() in KEYWORDS:
        return Token(text.lower(), text.lower(), start)
    return Token(text if kind == "mark" else kind, text, start)


def _number(text: str, start: int, wrong: Wrong) -> float:
    try:
        # float("10") would turn whole numbers above 2**53 into others.
        value = int(text) if re.fullmatch("[+-]?[0-9]+", text) else float(text)
    except ValueError:
        # Python refuses texts of more than 4,300 digits, as converting them takes quadratic time.
        raise wrong.at(start, "a number of too many digits") from None
    # float() gives infinity for a literal such as 1e999 without an error.
    if value in (math.inf, -math.inf) and not text.endswith("inf"):
        raise wrong.at(start, "a number that is too great; inf is the greatest")
    return value


def _unescaped(text: str, start: int, wrong: Wrong) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] not in ESCAPES:
            raise wrong.at(
                start, rf"\{found[2]} means nothing in a text; a backslash is written \\"
            )
        return ESCAPES[found[2]]

    return ESCAPED.sub(one, text)


def _unknown(rest: str) -> str:
    for other, ours in INSTEAD.items():
        if rest.startswith(other):
            return f"{other!r} is not known; {ours!r} is meant"
    if rest[0] in "'\"`":
        return f"{rest[0]} opens what nothing closes"
    if rest[0].isdigit():
        return "no number; a name that begins with a digit goes in backticks"
    return f"{rest[0]!r} means nothing here; names with odd characters go in backticks"
