"""A quantity of several steps has one schedule at a place: its windows end where it is due."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_probe.errors import ScheduleError
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.probe import Probe

__all__ = ["check_windows"]


def check_windows(new: Iterable[Probe], there: Iterable[Probe] = ()) -> None:
    """Refuse a second schedule of a quantity of several steps at one place.

    Both would be in one series, whose values would cover different numbers of steps.

    Raises
    ------
    ScheduleError
        The message has the present schedule, and what to do.
    """
    spanning = [probe for probe in new if probe.quantity.spans_steps]
    if not spanning:
        return
    known = {_series(probe): probe for probe in there}
    for probe in spanning:
        first = known.setdefault(_series(probe), probe)
        if first.schedule != probe.schedule:
            raise ScheduleError(_sentence(first, probe))


def _series(probe: Probe) -> tuple[str, str]:
    return probe.place, probe.variable


def _sentence(first: Probe, second: Probe) -> str:
    name = second.quantity.name
    return (
        f"{name} on {second.schedule} at {standard_place(second.place)}, where it is measured on "
        f"{first.schedule}: one series would hold windows of both. Detach that first, or give one "
        f"another name: nbp.window_quantity(nbp.list_quantities()[{name!r}].function, "
        f"name='{name}_2')"
    )
