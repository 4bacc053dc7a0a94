"""Something that can be set while it trains: what it is, what it may be, and what has changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, TypeAlias

from notebook_probe.errors import SettingError

__all__ = ["Before", "Change", "GroupInfo", "KnobInfo", "Setting", "as_number", "check_range"]

Before: TypeAlias = "float | list[float | None] | None"
"""One number for each group where they differ; None for what cannot be read, or is not finite."""


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """One parameter group, as a panel lists it under an option."""

    text: str
    """What is in it: ``"7 weights, decay 0.1"``."""
    scheduled: float | None = None
    """What a schedule says of the option now; None where nothing schedules it."""
    is_held: bool = False
    """It stays at its value, whatever is scheduled."""


@dataclass(frozen=True, slots=True)
class KnobInfo:
    """One thing that `Run.set` sets, as a panel lists it."""

    name: str
    value: float
    """Now; NaN where it cannot be read, and where the groups of the optimizers differ."""
    low: float | None = None
    high: float | None = None
    log: bool = False
    """Its size counts in factors rather than in differences."""
    groups: tuple[float, ...] = ()
    """Of an option of the optimizers, its value in each group; NaN where a group has none."""
    of: str = ""
    """Of the learning rate, whose it is: ``"AdamW, 2 groups"``."""
    details: tuple[GroupInfo, ...] = ()
    """Of the learning rate, what is in each group, and what schedules it."""


@dataclass(frozen=True, slots=True)
class Change:
    """What has been set."""

    before: Before
    after: Before
    text: str
    is_late: bool = False
    """An optimizer goes on with the old value for the step that it is in."""


class Setting(Protocol):
    """Something that can be set by its name."""

    def info(self) -> KnobInfo:
        """What it is now; from any thread."""

    def check(self, value: float, group: int | None, hold: bool) -> None:
        """Raise a SettingError for what it cannot be; from any thread."""

    def set(self, value: float, group: int | None, hold: bool) -> Change | None:
        """Set it, on the thread that trains; None where it was so already."""

    def release(self, group: int | None) -> Change | None:
        """Leave it to its schedule, on the thread that trains; None where nothing was set."""


def as_number(name: str, value: Any) -> float:
    """One finite number; a whole one stays whole.

    Raises
    ------
    SettingError

    Examples
    --------
    >>> as_number("lr", 0.1), as_number("n", 3)
    (0.1, 3)
    """
    if getattr(value, "shape", None) is not None and math.prod(value.shape) == 1:
        value = value.item()  # a tensor's or an array's
    if not isinstance(value, Real) or isinstance(value, bool):
        raise SettingError(f"{name}={value!r}"[:200] + "; one number is expected")
    if not math.isfinite(value):
        raise SettingError(f"{name}={value}; a finite number is expected")
    return value if isinstance(value, int) else float(value)


def check_range(name: str, value: float, low: float | None, high: float | None) -> None:
    """Raise a SettingError for a number out of its range, ends included.

    Examples
    --------
    >>> check_range("lr", 0.1, 0.0, None)
    """
    if (low is not None and value < low) or (high is not None and value > high):
        ends = [
            f"from {low:g}" if low is not None else "",
            f"to {high:g}" if high is not None else "",
        ]
        raise SettingError(f"{name}={value:g}; a number {' '.join(filter(None, ends))} is allowed")
