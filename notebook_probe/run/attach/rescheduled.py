"""Probes on another schedule than they were attached on, now and where the model has changed."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.request import ResolvedRequest, Resolver
from notebook_probe.schedules import Schedule

__all__ = ["Rescheduled", "on"]


def on(due: Schedule, probe: Probe) -> Probe:
    """Return a probe like ``probe``, on a schedule that the user has chosen."""
    # Without may_stretch: a schedule that was chosen by hand is not stretched by the budget.
    return Probe(probe.place, probe.quantity, due, probe.phase, probe.per_call)


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A request of which some quantities have got another schedule.

    Attributes
    ----------
    before : callable
        Resolves the original request.
    names : set of str
    places : set of str or None
        None means all, including modules that are added later.
    due : Schedule
    """

    before: Resolver
    names: Set[str]
    places: Set[str] | None
    due: Schedule

    def __call__(self, model_map: ModelMap) -> ResolvedRequest:
        found = self.before(model_map)
        # By key, as two probes may be the same on the new schedule.
        probes = {probe.key(): probe for probe in map(self._now, found.probes)}
        return ResolvedRequest(tuple(probes.values()), found.skipped)

    def _now(self, probe: Probe) -> Probe:
        is_here = self.places is None or probe.place in self.places
        return on(self.due, probe) if probe.quantity.name in self.names and is_here else probe
