"""Settings during training: their state, their limits, and changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, TypeAlias

from notebook_probe.errors import SettingError

__all__ = ["Before", "Change", "GroupInfo", "KnobInfo", "Setting", "as_number", "check_range"]

Before: TypeAlias = "float | list[float | None] | None"
"""One number per group if they differ; None if it cannot be read, or is not finite."""


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """One parameter group for the panel, under an option."""

    text: str
    """Contents of the group: ``"7 weights, decay 0.1"``."""
    scheduled: float | None = None
    """Scheduled value of the option; None without a schedule."""
    is_held: bool = False
    """True if it keeps its value, whatever is scheduled."""


@dataclass(frozen=True, slots=True)
class KnobInfo:
    """One thing that `Run.set` sets, for the panel."""

    name: str
    value: float
    """Now; NaN where it cannot be read, and where the groups of the optimizers differ."""
    low: float | None = None
    high: float | None = None
    log: bool = False
    """True if its size counts in factors rather than in differences."""
    groups: tuple[float, ...] = ()
    """Value of an optimizer option in each group; NaN for groups without it."""
    of: str = ""
    """Owners of the learning rate: ``"AdamW, 2 groups"``."""
    details: tuple[GroupInfo, ...] = ()
    """Contents and schedule of each group, for the learning rate."""


@dataclass(frozen=True, slots=True)
class Change:
    """Result of a change."""

    before: Before
    after: Before
    text: str
    is_late: bool = False
    """True if an optimizer uses the old value for the step that it is in."""


class Setting(Protocol):
    """Interface of a named setting."""

    def info(self) -> KnobInfo:
        """Return its present state; from any thread."""

    def check(self, value: float, group: int | None, hold: bool) -> None:
        """Raise a SettingError for an invalid value; from any thread."""

    def set(self, value: float, group: int | None, hold: bool) -> Change | None:
        """Set it, on the thread that trains; None where it was so already."""

    def release(self, group: int | None) -> Change | None:
        """Leave it to its schedule, on the thread that trains; None where nothing was set."""


def as_number(name: str, value: Any) -> float:
    """Return one finite number; a whole one stays whole.

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
