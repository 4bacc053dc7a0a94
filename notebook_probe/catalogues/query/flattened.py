"""Storage of a row's values in an index, so that a database compares as Python does.

A number is a double, a text its UTF-8, cut: bytes have one order everywhere, that of the
characters, can store what no text column can, and are never too long for an index.
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
    "FlatValue",
    "as_double",
    "as_key",
    "entries",
    "field_key",
    "flattened",
]

ELEMENTS = "[]"
"""Suffix of a list's name for its elements."""
LONG_LIST = "long list"
"""Kind of a list whose elements are not in the index."""
MOST_ELEMENTS = 64
# B-tree entries have an upper limit: about 2,700 bytes in PostgreSQL.
MOST_BYTES = 256
MOST_OF_NAME = 200
EXACT_BELOW = 2.0**53
"""Whole numbers beyond are rounded."""


class FlatValue(NamedTuple):
    """One value, in three columns."""

    kind: str
    number: float | None = None
    text: bytes | None = None


def flattened(value: Any) -> FlatValue:
    """Return a value as stored in an index.

    Examples
    --------
    >>> flattened(3)
    FlatValue(kind='number', number=3.0, text=None)
    >>> flattened("a")
    FlatValue(kind='text', number=None, text=b'a')
    >>> flattened(True)[:2], flattened(float("nan"))[:2]
    (('bool', 1.0), ('nan', None))
    """
    kind = kind_of(value)
    if kind in ("number", "bool"):
        return FlatValue(kind, as_double(value))
    if kind == "text":
        return FlatValue(kind, text=as_key(value))
    return FlatValue(LONG_LIST if kind == "list" and len(value) > MOST_ELEMENTS else kind)


def entries(row: Row) -> Iterator[tuple[str, FlatValue]]:
    """Yield the entries of a row: a key and its value, for a list one more for each element."""
    for field, value in row.items():
        if value is None:
            # A missing value has no entry, so `is missing` means that no entry exists.
            continue
        found = flattened(value)
        yield field_key(field), found
        if found.kind == "list":
            yield from ((field_key(field) + ELEMENTS, flattened(one)) for one in value)


def as_double(number: float) -> float:
    """Return the nearest double; infinite beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        # Python's whole numbers are unbounded; infinity keeps the order.
        return math.inf if number > 0 else -math.inf


def as_key(text: str) -> bytes:
    """Return the start of a text as bytes that sort like its characters."""
    # Cut twice: first characters, so that a huge text is not encoded as a whole.
    # surrogatepass, as JSON may contain lone surrogates, which UTF-8 otherwise refuses.
    return text[:MOST_BYTES].encode("utf-8", "surrogatepass")[:MOST_BYTES]


@lru_cache(4096)
def field_key(field: str) -> str:
    """Return the stored name of a field: itself, or a short, plain and unique one.

    Examples
    --------
    >>> field_key("config.lr"), len(field_key("x" * 1000)), field_key("odd[]") == "odd[]"
    ('config.lr', 113, False)
    """
    # The suffixes are ours: a field that ends with one could be mistaken for another entry.
    if len(field) <= MOST_OF_NAME and field.isprintable() and not field.endswith((ELEMENTS, "~")):
        return field
    digest = hashlib.sha256(field.encode("utf-8", "surrogatepass")).hexdigest()
    # Readable at the front for a look into the database, unique by the digest.
    return f"{ascii(field[:12])[1:-1][:47]:_<48}{digest}~"
