"""Schedules: functions ``step -> bool`` for probes and callbacks, with names.

Schedules are frozen values: equal ones are the same schedule, share one step axis in the record,
may be called twice, and print as the text that `schedule` reads. A step is 0-based, the number of
updates completed before its batch. A schedule gets facts about a run when it is armed: `bound` to
a `Span`.
"""

from __future__ import annotations

from notebook_probe.schedules.arming import bound, can_foresee, has_clock, is_owed, restart
from notebook_probe.schedules.between import Between, between
from notebook_probe.schedules.ends import IncludeFirst, IncludeLast
from notebook_probe.schedules.every import Every
from notebook_probe.schedules.geometric import Geometric
from notebook_probe.schedules.including import include_first, include_last
from notebook_probe.schedules.keep import KeepN
from notebook_probe.schedules.operators import AllOf, AnyOf, Custom
from notebook_probe.schedules.protocols import (
    Bindable,
    Composite,
    Foreseen,
    Restarted,
    Schedule,
    ScheduleLike,
)
from notebook_probe.schedules.read import schedule
from notebook_probe.schedules.seconds import Seconds
from notebook_probe.schedules.span import UNBOUND, UNKNOWN, Span
from notebook_probe.schedules.steps import Steps
from notebook_probe.schedules.times import Times

__all__ = [
    "UNBOUND",
    "UNKNOWN",
    "AllOf",
    "AnyOf",
    "Between",
    "Bindable",
    "Composite",
    "Custom",
    "Every",
    "Foreseen",
    "Geometric",
    "IncludeFirst",
    "IncludeLast",
    "KeepN",
    "Restarted",
    "Schedule",
    "ScheduleLike",
    "Seconds",
    "Span",
    "Steps",
    "Times",
    "between",
    "bound",
    "can_foresee",
    "has_clock",
    "include_first",
    "include_last",
    "is_owed",
    "restart",
    "schedule",
]
