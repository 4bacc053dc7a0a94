"""Percentages in words of few digits."""

from __future__ import annotations

__all__ = ["percent_text"]


def percent_text(percent: float) -> str:
    """Return a percentage with two digits below 10, and whole from there on.

    Examples
    --------
    >>> [percent_text(percent) for percent in (0.01234, 5.26, 99.7, 1234.0)]
    ['0.012 %', '5.3 %', '100 %', '1234 %']
    """
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"
