"""Numbers for JSON, which has neither NaN nor infinity."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

__all__ = ["json_number", "json_value"]


def json_number(value: SupportsFloat) -> float | None:
    """Return a number, or None if it is NaN or infinite: for a panel, which shows a gap.

    Examples
    --------
    >>> json_number(0.5), json_number(float("inf"))
    (0.5, None)
    """
    number = float(value)
    return number if math.isfinite(number) else None


def json_value(value: Any) -> Any:
    """Return a value with NaN and infinities as text: for a record, from which they are read again.

    Examples
    --------
    >>> json_value(0.5), json_value(float("nan")), json_value("adam")
    (0.5, 'nan', 'adam')
    """
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
