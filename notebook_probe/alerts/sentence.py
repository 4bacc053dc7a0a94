"""Sentence of a rule, with the numbers of one alert in it."""

from __future__ import annotations

import math
from string import Formatter
from typing import Any

__all__ = ["sentence"]

LONGEST = 8
"""Characters of a number, 99999.9% among them; a step that explodes has dozens of digits."""


def sentence(says: str, numbers: dict[str, Any]) -> str:
    """Return a text, filled as `str.format` does; numbers that would be long are rounded.

    Parameters
    ----------
    says : str
        Text with fields, ``"the norm is {grad_norm:.0f}"``.
    numbers : dict of str to number
        Values of the fields.

    Examples
    --------
    >>> sentence("a step changes the weight by {ratio:.0%}", {"ratio": 0.25})
    'a step changes the weight by 25%'
    >>> sentence("a step changes the weight by {ratio:.0%}", {"ratio": 3e20})
    'a step changes the weight by 3e+22%'
    >>> sentence("the loss is {loss}", {"loss": float("nan")})
    'the loss is NaN'
    """
    return _Short().format(says, **numbers)


class _Short(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        written = str(format(value, format_spec))
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else written.rstrip("%")
        if not isinstance(value, float) or len(written) <= LONGEST:
            return written
        return f"{100 * value:.2g}%" if written.endswith("%") else f"{value:.3g}"
