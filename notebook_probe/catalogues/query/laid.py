"""How the values of a row lie in an index, so that a database answers as Python does.

A number is a double, a text its UTF-8, cut: bytes have one order everywhere, that of the
characters, hold what no column of text holds, and are never too long for an index.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from notebook_probe.catalogues.query.condition import Row
from notebook_probe.catalogues.query.values import kind_of

__all__ = [
    "ELEMENTS",
    "EXACT_BELOW",
    "LONG_LIST",
    "MOST_BYTES",
    "Laid",
    "as_double",
    "as_key",
    "entries",
    "field_key",
    "laid",
]

ELEMENTS = "[]"
"""Follows the name of a list where its elements lie."""
LONG_LIST = "long list"
"""The kind of one whose elements do not lie in the index."""
MOST_ELEMENTS = 64
MOST_BYTES = 256
MOST_OF_NAME = 200
EXACT_BELOW = 2.0**53
"""Whole numbers beyond are rounded."""


class Laid(NamedTuple):
    """One value, in three columns."""

    kind: str
    number: float | None = None
    text: bytes | None = None


def laid(value: Any) -> Laid:
    """What an index holds of a value.

    Examples
    --------
    >>> laid(3), laid(True), laid("a"), laid(float("nan"))[:2]
    (Laid(kind='number', number=3.0, text=None), Laid(kind='bool', number=1.0, text=None), \
Laid(kind='text', number=None, text=b'a'), ('nan', None))
    """
    kind = kind_of(value)
    if kind in ("number", "bool"):
        return Laid(kind, as_double(value))
    if kind == "text":
        return Laid(kind, text=as_key(value))
    return Laid(LONG_LIST if kind == "list" and len(value) > MOST_ELEMENTS else kind)


def entries(row: Row) -> Iterator[tuple[str, Laid]]:
    """Every entry of a row: a key and what lies there, for a list one more for each element."""
    for field, value in row.items():
        if value is None:
            continue
        found = laid(value)
        yield field_key(field), found
        if found.kind == "list":
            yield from ((field_key(field) + ELEMENTS, laid(one)) for one in value)


def as_double(number: float) -> float:
    """The nearest one; infinite for what is greater than all."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_key(text: str) -> bytes:
    """The beginning of a text, in the order of its characters."""
    return text[:MOST_BYTES].encode("utf-8", "surrogatepass")[:MOST_BYTES]


@lru_cache(4096)
def field_key(field: str) -> str:
    """The name by which a field lies there: itself, or what is short, plain and as much its own.

    Examples
    --------
    >>> field_key("config.lr"), len(field_key("x" * 1000)), field_key("odd[]") == "odd[]"
    ('config.lr', 113, False)
    """
    if len(field) <= MOST_OF_NAME and field.isprintable() and not field.endswith((ELEMENTS, "~")):
        return field
    digest = hashlib.sha256(field.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{ascii(field[:12])[1:-1][:47]:_<48}{digest}~"
