"""A run's status as text: state and cost, then what does not fire, and why."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from notebook_probe.percent import percent_text

if TYPE_CHECKING:
    from notebook_probe.run.health.status import ProbeStatus, Status

__all__ = ["describe_status"]

_NUMBER = re.compile(r"\d+")

MOST_PLACES = 4
MOST_COSTLY = 5


def describe_status(status: Status) -> str:
    """Describe a run in several lines: its state, its cost, its most costly and silent probes.

    Silent probes are grouped by reason.
    """
    lines = [
        f"{status.name}: {status.state}, {_how_far(status)}, {_rate(status)}{status.location}",
        f"{_cost(status)}; {_size(status.nbytes)} on disk{_where(status)}",
    ]
    if status.quantity_bytes:
        largest = [*status.quantity_bytes.items()][:MOST_COSTLY]
        lines.append("on disk: " + ", ".join(f"{name} {_size(n)}" for name, n in largest))
    if status.pause_reason:
        lines.append(status.pause_reason)
    if status.flight:
        lines.append(status.flight)
    if status.progress:
        lines.append(f"measuring {status.progress}")
    if status.compiling:
        lines.append("compiling the readings")
    if status.budget:
        lines.append(status.budget)
    if not math.isnan(status.cost_percent):
        lines += _costs(status.probes)
    if status.dropped_rows:
        lines.append(f"lost: {status.dropped_rows} rows did not get into the record")
    if status.problem:
        lines.append(f"problem: {status.problem}")
    lines += [f"silent: {line}" for line in _silent(status.silent)]
    lines += [f"error: {one.quantity} at {one.module}: {one.error}" for one in status.errors]
    lines += [f"error: rule {name} is off: {why}" for name, why in status.rules_off.items()]
    return "\n".join(lines)


def _where(status: Status) -> str:
    """Name an accelerator; that a model is on the host goes without saying."""
    return f"; on {status.device}" if status.device not in ("", "cpu") else ""


def _how_far(status: Status) -> str:
    end = f" of {status.end_step}" if status.end_step >= 0 else ""
    epoch = f", epoch {status.epoch}" if status.epoch >= 0 else ""
    seconds = status.seconds_left
    # Rounded up: "0:00:00 left" would look finished.
    left = f", {timedelta(seconds=ceil(seconds))} left" if seconds is not None else ""
    return f"step {status.step}{end}{epoch}{left}"


def _rate(status: Status) -> str:
    """Return the rate with a comma after it; empty before the first step."""
    rate = status.steps_per_second
    return "" if math.isnan(rate) else f"{rate:.3g} steps/s, "


def _cost(status: Status) -> str:
    if math.isnan(status.cost_percent):
        return f"{status.n_probes} probes, whose cost is known from the first step on"
    cost = f"{status.n_probes} probes cost {percent_text(status.cost_percent)} of step time"
    return f"{cost}{_in_graphs(status.graphs_percent)}, measured lately"


def _in_graphs(percent: float) -> str:
    if math.isnan(percent):
        return " and what they take inside compiled graphs, which is not known yet"
    return f" ({percent_text(percent)} inside compiled graphs)" if percent else ""


def _size(n_bytes: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes} B"


def _costs(probes: tuple[ProbeStatus, ...]) -> list[str]:
    """Return the most costly quantities, each with its part of the cost.

    Only the line above gives a share of step time: these averages cover more steps, and their share
    differs if steps have become slower or the budget has stretched schedules.
    """
    cost: defaultdict[str, float] = defaultdict(float)
    share: defaultdict[str, float] = defaultdict(float)
    for probe in probes:
        cost[probe.quantity] += probe.cost_us
        share[probe.quantity] += probe.cost_percent
    dearest = sorted(cost, key=cost.__getitem__, reverse=True)[:MOST_COSTLY]
    if not dearest:
        return []
    return [
        "most of it, on average since probes last changed:",
        *(f"  {name}: {cost[name]:.0f} µs per step{_part(share, name)}" for name in dearest),
    ]


def _part(share: Mapping[str, float], name: str) -> str:
    total = sum(share.values())
    return f", {percent_text(100 * share[name] / total)} of it" if total else ""


def _silent(probes: tuple[ProbeStatus, ...]) -> list[str]:
    groups: defaultdict[tuple[str, str], list[ProbeStatus]] = defaultdict(list)
    for probe in probes:
        since = f"last at step {probe.last_step}" if probe.n_values else "no value yet"
        groups[_NUMBER.sub("n", probe.note), since].append(probe)
    return [f"{_listed(alike)} ({since})" for (_, since), alike in groups.items()]


def _listed(alike: list[ProbeStatus]) -> str:
    """List probes whose reasons differ in their numbers alone, with the reason of the first."""
    places = ", ".join(f"{probe.quantity} at {probe.module}" for probe in alike[:MOST_PLACES])
    more = f" and {len(alike) - MOST_PLACES} more" if len(alike) > MOST_PLACES else ""
    such_as = "" if len({probe.note for probe in alike}) == 1 else "such as "
    return f"{places}{more}: {such_as}{alike[0].note}"
