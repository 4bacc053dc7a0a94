"""Values in conditions: numbers compare with numbers, text with text, bools with bools."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from notebook_probe.errors import QueryError

__all__ = ["ORDERS", "Kind", "is_nan", "kind_of", "parsed", "same", "told"]

Kind: TypeAlias = Literal["number", "nan", "bool", "text", "list", "other"]

ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda value, other: value < other,
    "<=": lambda value, other: value <= other,
    ">": lambda value, other: value > other,
    ">=": lambda value, other: value >= other,
}
DEEPEST = 50
MOST_BITS = 10_000
"""Maximum bits of a whole number; Python writes none that is much longer."""
ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def kind_of(value: object) -> Kind:
    """Return the kind of a value, which it can be compared with."""
    # Before the numbers: a bool is an int.
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "nan" if is_nan(value) else "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list | tuple) else "other"


def is_nan(value: object) -> bool:
    """Return whether a value is a float NaN."""
    return isinstance(value, float) and math.isnan(value)


def same(one: object, other: object) -> bool:
    """Return whether two values are equal and of one kind; nothing equals NaN.

    Examples
    --------
    >>> same(1, 1.0), same(1, True), same("1", 1), same([1, "a"], (1, "a"))
    (True, False, False, True)
    """
    kind = kind_of(one)
    if kind != kind_of(other) or kind == "nan":
        return False
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def parsed(value: Any, place: str, depth: int = 0) -> Any:
    """Return a value to compare with, as plain Python: lists are tuples, numpy's numbers numbers.

    Raises
    ------
    QueryError
        Nothing compares with it.
    """
    if depth > DEEPEST:
        raise QueryError(f"{place[:80]}: lists deeper than {DEEPEST}")
    if isinstance(value, list | tuple):
        return tuple(parsed(one, f"{place}[{i}]", depth + 1) for i, one in enumerate(value))
    # Scalars of numpy and 0-d tensors have `item`; numpy.str_ is text already.
    if not isinstance(value, str) and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    kind = kind_of(value)
    if kind == "nan":
        raise QueryError(
            f"{place}: nothing compares with NaN; text such as 'loss.last is nan' asks"
        )
    if kind == "other":
        raise QueryError(f"{place}: {value!r}"[:200] + "; numbers, text, bools and lists compare")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise QueryError(f"{place}: a number of {value.bit_length()} bits; at most {MOST_BITS}")
    return value


def told(value: Any) -> str:
    r"""Return a value as it is typed; the text parses back to it.

    Examples
    --------
    >>> print(told(1e-3), told("it's"), told(True), told((1, "a")))
    0.001 'it\'s' true [1, 'a']
    """
    if isinstance(value, tuple):
        return f"[{', '.join(map(told, value))}]"
    if isinstance(value, str):
        return "'" + "".join(map(_escaped, value)) + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _escaped(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    # Control characters and lone surrogates can neither be typed nor printed.
    is_odd = character < " " or "\ud800" <= character <= "\udfff"
    return f"\\u{ord(character):04x}" if is_odd else character
