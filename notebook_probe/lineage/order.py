"""Sort order of values of any kind, and their text."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

__all__ = ["is_number", "places", "text_of", "told"]

LONGEST = 40
"""Characters of a cell."""


def is_number(value: object) -> bool:
    """Return whether a value sorts among numbers; NaN does not.

    Examples
    --------
    >>> is_number(3), is_number(True), is_number(float("nan")), is_number("3")
    (True, True, False, False)
    """
    return isinstance(value, int | float) and not math.isnan(value)


def places(values: Sequence[Any], *, descending: bool = False) -> list[int]:
    """Places of values in order: numbers, then text; NaN and None last either way.

    Equal ones stay as they stood.

    Examples
    --------
    >>> places([3, None, "x", 1, float("nan")]), places([3, None, "x", 1], descending=True)
    ([3, 0, 2, 4, 1], [0, 3, 2, 1])
    """
    # Sorted kind by kind, as Python does not compare numbers with text.
    kinds = [_kind(value) for value in values]
    of_kind = ([i for i, one in enumerate(kinds) if one == kind] for kind in range(4))
    numbers, texts, nans, missing = of_kind
    numbers = sorted(numbers, key=lambda i: values[i], reverse=descending)
    texts = sorted(texts, key=lambda i: text_of(values[i]), reverse=descending)
    return [*numbers, *texts, *nans, *missing]


def told(value: object) -> str:
    """Return a cell as people read it.

    Examples
    --------
    >>> told(0.000123456), told(12345), told(None), told([1, 2]), told(["a", "b"]), told(True)
    ('0.0001235', '12\u2009345', '', '[1, 2]', 'a, b', 'True')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", "\u2009")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return told(", ".join(value))  # tags
    text = text_of(value) if not isinstance(value, bool) else str(value)
    text = " ".join(text.split()) if "\n" in text else text  # a row is a line
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _kind(value: object) -> int:
    if value is None:
        return 3
    if is_number(value):
        return 0
    return 2 if isinstance(value, float) else 1


def text_of(value: object) -> str:
    """Return the text by which a value that is not a number sorts."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
