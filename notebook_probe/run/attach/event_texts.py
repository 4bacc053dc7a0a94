"""Texts and details of the record's events about attached probes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.probe import Probe

__all__ = ["ended", "sentence"]


def sentence(probes: Sequence[Probe]) -> str:
    """Describe an attachment for the record's events: quantities, places, schedules."""
    names = dict.fromkeys(probe.quantity.name for probe in probes)
    places = list(dict.fromkeys(standard_place(probe.place) for probe in probes))
    shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
    schedules = dict.fromkeys(str(probe.schedule) for probe in probes)
    return f"{', '.join(names)} at {shown}, {', '.join(schedules)}"


def ended(removed: Iterable[Probe], measured: Iterable[Probe]) -> str:
    """Return the series that end with these probes as JSON, for the detail of an event.

    It has the places by quantity, null for all of them. A series that another schedule continues
    does not end.
    """
    going_on = {(probe.variable, probe.place) for probe in measured}
    names = {variable for variable, _ in going_on}
    places: dict[str, list[str] | None] = {}
    for probe in removed:
        if probe.variable not in names:
            places[probe.variable] = None
        elif (probe.variable, probe.place) not in going_on:
            known = places.setdefault(probe.variable, []) or []
            places[probe.variable] = [*known, standard_place(probe.place)]
    return json.dumps({"ended": places})
