"""A knob of the user's own: something of the training that can be read and set as a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat

from notebook_probe.errors import SettingError
from notebook_probe.run.settings.setting import Change, KnobInfo, as_number, check_range

__all__ = ["Knob"]

NO_SCHEDULE = "only options of optimizers have a schedule"


@dataclass(frozen=True, slots=True)
class Knob:
    """A number that the user's functions read and set."""

    name: str
    get: Callable[[], SupportsFloat]
    put: Callable[[Any], object]
    low: float | None
    high: float | None
    log: bool

    @classmethod
    def of(
        cls,
        name: str,
        get: Callable[[], SupportsFloat],
        put: Callable[[Any], object],
        low: float | None,
        high: float | None,
        log: bool,
    ) -> Knob:
        """Check what makes a knob; raises a SettingError, or what ``get`` raises."""
        if not (isinstance(name, str) and name.strip()):
            raise SettingError(f"knob({name!r}): its name is a text")
        for what, function in {"get": get, "set": put}.items():
            if not callable(function):
                raise SettingError(f"knob({name!r}, {what}={function!r}): a function is expected")
        ends = [None if end is None else as_number(f"{name}'s end", end) for end in (low, high)]
        low, high = ends
        if low is not None and high is not None and not low < high:
            raise SettingError(f"knob({name!r}, low={low:g}, high={high:g}): low is below high")
        if log and (low is None or low <= 0):
            raise SettingError(f"knob({name!r}, log=True, low={low}): low is above 0")
        as_number(name, get())
        return cls(name, get, put, low, high, bool(log))

    def info(self) -> KnobInfo:
        before = self._read()
        value = math.nan if before is None else before
        return KnobInfo(self.name, value, self.low, self.high, self.log)

    def check(self, value: float, group: int | None, hold: bool) -> None:
        if group is not None:
            raise SettingError(
                f"{self.name}, group={group}: only options of optimizers have groups"
            )
        if hold:
            raise SettingError(f"{self.name}, hold=True: {NO_SCHEDULE}")
        check_range(self.name, value, self.low, self.high)

    def release(self, group: int | None) -> Change | None:
        raise SettingError(f"{self.name}: {NO_SCHEDULE}")

    def set(self, value: float, group: int | None, hold: bool) -> Change | None:
        before = self._read()
        if before == value:
            return None
        self.put(value)
        known = "" if before is None else f"{before:.6g} → "
        return Change(before, value, f"{self.name} {known}{value:.6g}")

    def _read(self) -> float | None:
        try:
            return as_number(self.name, self.get())
        except Exception:  # the user's own
            return None
