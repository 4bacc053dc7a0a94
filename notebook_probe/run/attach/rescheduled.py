"""Probes on another schedule than the one that was attached: moved by a user, or for a branch."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import partial

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.request import ResolvedRequest, Resolver
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.schedules import Schedule, between, schedule

__all__ = ["Rescheduled", "denser", "on"]


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


def denser(request: GoBack, model_map: ModelMap) -> Attachment | None:
    """Return the additional attachment that a branch requests; None if there is none.

    Raises
    ------
    UnknownNameError, ScheduleError, NotApplicableError
        Before anything is attached.
    """
    if not request.preset:
        return None
    due = schedule(request.schedule)
    if request.until is not None:
        due = due & between(request.step, request.until)
    resolver = partial(resolve_presets, probes=request.preset)
    names = {probe.quantity.name for probe in resolver(model_map).probes}
    return Attachment.resolved(Rescheduled(resolver, names, None, due), model_map)
