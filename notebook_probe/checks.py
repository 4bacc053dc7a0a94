"""Checks of numbers that users give: numpy's count as numbers, True and False do not."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import TypeGuard

__all__ = [
    "chosen_name",
    "file_ending",
    "is_number",
    "is_whole",
    "optional_ends",
    "positive_number",
    "smoothing_weight",
    "step_range",
    "step_window",
    "value_range",
    "whole_number",
]


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


def chosen_name(name: str, given: object, allowed: Collection[str]) -> None:
    """Raise ValueError for anything but one of some names.

    Examples
    --------
    >>> chosen_name("cells", "max", ("max", "mean"))
    >>> chosen_name("cells", "min", ("max", "mean"))
    Traceback (most recent call last):
    ValueError: cells='min'; allowed: 'max', 'mean'
    """
    if not isinstance(given, str) or given not in allowed:
        raise ValueError(f"{name}={given!r}; allowed: {', '.join(map(repr, allowed))}")


def file_ending(
    name: str,
    path: str | PathLike[str],
    allowed: Collection[str],
    error: type[Exception] = ValueError,
) -> str:
    """Return the ending of a file that is written, in lower case.

    Parameters
    ----------
    name : str
        Name of the argument, for the error.
    path : path
    allowed : collection of str
        Endings such as ``".html"``.
    error : type of Exception
        Raised for any other ending: programs choose by it how to open the file.

    Examples
    --------
    >>> file_ending("path", "runs/first.HTML", (".html", ".htm"))
    '.html'
    >>> file_ending("path", "first.pdf", (".html", ".htm"))
    Traceback (most recent call last):
    ValueError: path='first.pdf'; allowed: a file name that ends with .html or .htm
    """
    ending = Path(path).suffix.lower()
    if ending in allowed:
        return ending
    *others, last = allowed
    endings = f"{', '.join(others)} or {last}" if others else last
    raise error(f"{name}={fspath(path)!r}; allowed: a file name that ends with {endings}")


def smoothing_weight(name: str, given: object) -> None:
    """Raise ValueError for anything but the weight of an exponential average.

    Examples
    --------
    >>> smoothing_weight("smooth", 0.9)
    >>> smoothing_weight("smooth", 2)
    Traceback (most recent call last):
    ValueError: smooth=2; allowed: a number from 0 up to but not including 1
    """
    if not is_number(given) or not 0 <= given < 1:
        raise ValueError(f"{name}={given!r}; allowed: a number from 0 up to but not including 1")


def value_range(name: str, given: object) -> None:
    """Raise ValueError for anything but None or two finite numbers, the lower one first.

    Examples
    --------
    >>> value_range("y_limits", (0, 1.5))
    >>> value_range("y_limits", (3, 1))
    Traceback (most recent call last):
    ValueError: y_limits=(3, 1); allowed: None or (low, high) with low below high
    """
    match given:
        case None:
            return
        case (low, high) if _are_ascending(low, high) and low != high:
            return
    raise ValueError(f"{name}={given!r}; allowed: None or (low, high) with low below high")


def step_window(given: object) -> None:
    """Raise ValueError for anything but None or the first and the last step of a window.

    Examples
    --------
    >>> step_window((2, 10.0))
    >>> step_window((10, 2))
    Traceback (most recent call last):
    ValueError: window=(10, 2); allowed: None or (first, last), two steps with first up to last
    """
    match given:
        case None:
            return
        case (first, last) if _are_ascending(first, last):
            return
    raise ValueError(
        f"window={given!r}; allowed: None or (first, last), two steps with first up to last"
    )


def _are_ascending(low: object, high: object) -> bool:
    return is_number(low) and is_number(high) and -math.inf < low <= high < math.inf


def step_range(start: object, stop: object) -> None:
    """Raise ValueError for anything but a first step and None or the step after the last.

    Examples
    --------
    >>> step_range(0, None)
    >>> step_range(-3, None)
    Traceback (most recent call last):
    ValueError: start=-3; allowed: a whole number from 0
    >>> step_range(5, 2)
    Traceback (most recent call last):
    ValueError: stop=2; allowed: a whole number from 5
    """
    first = whole_number("start", start)
    if stop is not None:
        whole_number("stop", stop, first)


def optional_ends(start: object, stop: object) -> None:
    """Raise ValueError unless each is None or a number, and the second not below the first.

    Examples
    --------
    >>> optional_ends(None, 2.5)
    >>> optional_ends(5, 2)
    Traceback (most recent call last):
    ValueError: start=5, stop=2; allowed: numbers with start up to stop, or None
    """
    ends = [end for end in (start, stop) if end is not None]
    if ends and not _are_ascending(ends[0], ends[-1]):
        raise ValueError(
            f"start={start!r}, stop={stop!r}; allowed: numbers with start up to stop, or None"
        )
