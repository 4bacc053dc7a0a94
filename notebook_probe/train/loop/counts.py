"""Numbers of steps and of epochs as a user gives them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from operator import index
from typing import Any

__all__ = ["epochs", "whole"]


def whole(n: Any, where: str) -> int:
    """Return the number of steps or epochs, of any kind of integer.

    Raises
    ------
    TypeError
        For anything else.
    """
    try:
        return index(n)
    except TypeError:
        raise TypeError(
            f"{where}(data, n) with n={_short(n)}: a whole number is expected"
        ) from None


def epochs(data: Iterable[Any], n: Any) -> int:
    """Return the number of epochs, with a warning where nothing will be trained by mistake.

    Raises
    ------
    TypeError
        For anything but a whole number.

    Warns
    -----
    UserWarning
        For a negative number, and for data of length 0.
    """
    n = whole(n, "run_epochs")
    if n < 0:
        why = "a number from 0 is expected"
    elif n and _is_empty(data):
        why = "the data has no batch"
    else:
        return n
    warnings.warn(f"run_epochs(data, {n}): nothing is trained; {why}", stacklevel=3)
    return n


def _is_empty(data: Any) -> bool:
    """Return whether the data says that it has no batch; most loaders know, and some raise."""
    try:
        return len(data) == 0
    except TypeError:
        return False


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | str) else type(value).__name__
