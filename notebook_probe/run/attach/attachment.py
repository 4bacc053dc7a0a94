"""Probes that were attached together, and what a new schedule makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from notebook_probe.errors import ScheduleError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.request import ResolvedRequest, Resolver
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.schedules import Schedule, between, schedule

__all__ = ["Attachment", "ProbeKey", "Rescheduled", "check_windows", "denser", "on_schedule"]

ProbeKey: TypeAlias = "tuple[str, str, Schedule, bool]"


@dataclass(eq=False)
class Attachment:
    """A request and the probes that it has produced so far.

    It also applies to modules that are added later.

    Attributes
    ----------
    resolver : callable
        Resolves the request for the present model.
    """

    resolver: Resolver
    probes: list[Probe] = field(default_factory=list)
    skipped: tuple[str, ...] = ()

    @classmethod
    def resolved(cls, resolver: Resolver, model_map: ModelMap) -> Attachment:
        """Resolve a request for the first time; raises what ``resolver`` raises."""
        found = resolver(model_map)
        check_windows(found.probes)
        return cls(resolver, [*found.probes], found.skipped)

    def move(self, probes: Mapping[ProbeKey, Probe], move: Callable[[Resolver], Resolver]) -> None:
        """Replace some of its probes, and change future ones accordingly."""
        if any(probe.key() in probes for probe in self.probes):
            self.probes = [probes.get(probe.key(), probe) for probe in self.probes]
            self.resolver = move(self.resolver)


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
        is_moved = is_here and probe.quantity.name in self.names
        return on_schedule(self.due, probe) if is_moved else probe


def on_schedule(due: Schedule, probe: Probe) -> Probe:
    """Return a probe like ``probe``, on a schedule that the user has chosen."""
    # Without may_stretch: a schedule that was chosen by hand is not stretched by the budget.
    return Probe(probe.place, probe.quantity, due, probe.phase, probe.per_call)


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
    known = {_series_of(probe): probe for probe in there}
    for probe in spanning:
        first = known.setdefault(_series_of(probe), probe)
        if first.schedule != probe.schedule:
            raise ScheduleError(_conflict(first, probe))


def _series_of(probe: Probe) -> tuple[str, str]:
    return probe.place, probe.variable


def _conflict(first: Probe, second: Probe) -> str:
    name = second.quantity.name
    return (
        f"{name} on {second.schedule} at {standard_place(second.place)}, where it is measured on "
        f"{first.schedule}: one series would hold windows of both. Detach that first, or give one "
        f"another name: nbp.window_quantity(nbp.list_quantities()[{name!r}].function, "
        f"name='{name}_2')"
    )
