"""Checks of numbers that users give: numpy's count as numbers, True and False do not."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard

__all__ = ["is_number", "is_whole", "positive_number", "whole_number"]


def is_whole(given: object) -> TypeGuard[int]:
    """Return whether something is a whole number.

    Examples
    --------
    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(given, Integral) and not isinstance(given, bool)


def is_number(given: object) -> TypeGuard[float]:
    """Return whether something is a real number; NaN and infinity are.

    Examples
    --------
    >>> is_number(3), is_number(0.5), is_number(True), is_number("3")
    (True, True, False, False)
    """
    return isinstance(given, Real) and not isinstance(given, bool)


def whole_number(
    name: str,
    given: object,
    least: int = 0,
    most: int | None = None,
    error: type[Exception] = ValueError,
) -> int:
    """Return a whole number between two bounds, as Python's own.

    Parameters
    ----------
    name : str
        Name of the argument, for the error.
    given : object
    least, most : int
        Bounds that are allowed, too; None is no bound.
    error : type of Exception
        Raised for anything else, with what was given and what is allowed.

    Examples
    --------
    >>> whole_number("depth", 2)
    2
    >>> whole_number("patience", 0, least=1)
    Traceback (most recent call last):
    ValueError: patience=0; allowed: a whole number from 1
    """
    if is_whole(given) and least <= given and (most is None or given <= most):
        return int(given)
    bounds = f"from {least}" if most is None else f"from {least} to {most}"
    raise error(f"{name}={given!r}; allowed: a whole number {bounds}")


def positive_number(name: str, given: object) -> float:
    """Return a finite number above zero, as Python's own.

    Raises
    ------
    ValueError
        For anything else, with what was given.

    Examples
    --------
    >>> positive_number("clip", 1)
    1.0
    >>> positive_number("clip", -1)
    Traceback (most recent call last):
    ValueError: clip=-1; allowed: a positive number
    """
    if is_number(given) and 0 < given < math.inf:
        return float(given)
    raise ValueError(f"{name}={given!r}; allowed: a positive number")
