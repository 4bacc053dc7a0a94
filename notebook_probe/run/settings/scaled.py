"""Scaling of an option: the new value of each group."""

from __future__ import annotations

import math

from notebook_probe.errors import SettingError
from notebook_probe.run.attach.requests import Scale, Set
from notebook_probe.run.settings.setting import KnobInfo, as_number

__all__ = ["scaled"]


def scaled(request: Scale, info: KnobInfo) -> list[Set]:
    """Return the settings for one factor; one for all groups if they are equal.

    Raises
    ------
    SettingError
        For a factor that is not above 0, and where nothing can be read.

    Examples
    --------
    >>> [(one.value, one.group) for one in scaled(Scale("lr", 0.5), KnobInfo("lr", 0.2))]
    [(0.1, None)]
    >>> unlike = KnobInfo("lr", math.nan, groups=(0.2, 0.4))
    >>> [(one.value, one.group) for one in scaled(Scale("lr", 0.5), unlike)]
    [(0.1, 0), (0.2, 1)]
    """
    factor = as_number("factor", request.factor)
    if factor <= 0:
        raise SettingError(f"{request.name}, factor={factor:g}: a factor is a positive number")
    if math.isfinite(info.value):
        return [Set(request.name, info.value * factor, None, request.hold)]
    known = [(group, value) for group, value in enumerate(info.groups) if math.isfinite(value)]
    if not known:
        raise SettingError(f"{request.name}: it cannot be read, so there is nothing to multiply")
    return [Set(request.name, value * factor, group, request.hold) for group, value in known]
