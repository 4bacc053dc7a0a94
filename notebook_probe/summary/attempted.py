"""Guarded reads of foreign objects, any part of which may raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["attempted"]

T = TypeVar("T")


def attempted(read: Callable[[], T]) -> T | None:
    """Return the result, or None after an error: one odd entry must not spoil the others.

    Examples
    --------
    >>> attempted(lambda: len([1, 2])), attempted(lambda: len(3))
    (2, None)
    """
    try:
        return read()
    except Exception:
        return None
