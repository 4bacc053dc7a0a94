"""The probes of a run: what is wanted, and how it becomes what is measured between two steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Protocol

from torch import nn

from notebook_probe.errors import ClosedRunError, ProbeError, QuantityError, UnknownNameError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where, select, standard_place
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.probe import WAITING, Probe
from notebook_probe.probes.step.sink import Events
from notebook_probe.quantities import as_quantity
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.run.attach.armed_schedules import ArmedSchedules
from notebook_probe.run.attach.attachment import Attachment, ProbeKey
from notebook_probe.run.attach.default_places import resolve_at_default_places
from notebook_probe.run.attach.in_words import counted, description, sentence
from notebook_probe.run.attach.module_table import module_table
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.request import Resolver, resolve
from notebook_probe.run.attach.requests import (
    Attach,
    AttachPreset,
    Budgeted,
    Compiled,
    Detach,
    Request,
    Reschedule,
)
from notebook_probe.run.attach.rescheduled import Rescheduled, on
from notebook_probe.run.attach.windows import check_windows
from notebook_probe.schedules import ScheduleLike, schedule

__all__ = ["ModelRecord", "ProbeColumns", "ProbeSet"]


class ProbeColumns(Protocol):
    """Where the values of probes go."""

    @property
    def is_full(self) -> bool:
        """Nothing more is recorded."""

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread."""


class ModelRecord(Events, Protocol):
    """What is recorded of the model beside values."""

    def follow_model(self, modules: Sequence[ModuleRow]) -> None:
        """Note that the model now has these modules."""


class ProbeSet:
    """Attaching and detaching change what is wanted, at once and from any thread.

    `change` makes it what is measured; between steps only.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    model_map : ModelMap
        Its map, until it changes.
    observer : Observer
    columns : ProbeColumns
    record : ModelRecord
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        observer: Observer,
        columns: ProbeColumns,
        record: ModelRecord,
    ) -> None:
        self._model = weakref.ref(model)
        self._observer, self._columns, self._record = observer, columns, record
        self._attachments: tuple[Attachment, ...] = ()
        self._wanted: dict[ProbeKey, Probe] = {}  # replaced, never changed: other threads walk it
        self._measured = self._wanted
        self._attached = self._wanted.keys()  # of those that are measured
        self._beside: tuple[Probe, ...] = ()
        self._map = self._followed = model_map
        self._schedules = ArmedSchedules()
        self._was_full = False
        self._lock = threading.Lock()
        self._changing = threading.RLock()  # two threads may meet between the same two steps

    @property
    def model(self) -> nn.Module:
        """The watched model; raises ClosedRunError when it is gone."""
        model = self._model()
        if model is None:
            raise ClosedRunError("the watched model no longer exists; its record can still be read")
        return model

    @property
    def model_map(self) -> ModelMap:
        """The map of the model as it is now; raises ClosedRunError when it is gone."""
        model = self.model
        if self._map.differs():
            self._map = ModelMap(model)
        return self._map

    def watches(self, model: nn.Module) -> bool:
        return self._model() is model

    @property
    def wanted(self) -> list[Probe]:
        return [*self._wanted.values()]

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What was attached together, each with what it has come to."""
        return self._attachments

    @property
    def n_wanted(self) -> int:
        return len(self._wanted)

    def apply(self, request: Request, step: int) -> str:
        """Do what a request says, between steps; returns what was done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be done.
        """
        if isinstance(request, Attach):
            attachment = Attachment.resolved(_resolver_of(request), self.model_map)
            done = description(attachment.probes, attachment.skipped)
            if not self._new(attachment.probes):
                raise QuantityError(f"{done}: attached already, {request.schedule}")
            self.add(attachment)
        elif isinstance(request, AttachPreset):
            attachment = self._preset(request.name)
            self.add(attachment)
            done = f"{request.name}: {counted(len(attachment.probes), 'probe')}"
        elif isinstance(request, Reschedule):
            moved = self.reschedule(request.where, request.quantity, request.schedule)
            done = f"{request.quantity} at {counted(moved, 'place')}: {request.schedule}"
        elif isinstance(request, Detach):
            found = self.find(request.where, request.quantity)
            self.detach(found)
            done = f"detached {counted(len(found), 'probe')}"
        elif isinstance(request, Compiled):
            self.run_eagerly(request.steps == "eager")
            done = "probed steps run eagerly" if request.steps == "eager" else "all steps compiled"
        elif isinstance(request, Budgeted):
            self._observer.training.limit(request.percent)
            limit = request.percent
            done = "every due step is measured" if limit is None else f"kept below {limit:g} %"
        else:
            raise QuantityError(f"{request!r} is not about probes")
        self._act(step)
        return done

    def _preset(self, name: str) -> Attachment:
        resolver = partial(resolve_presets, probes=name)
        known = {(probe.place, probe.variable) for probe in self._wanted.values()}
        attachment = Attachment.resolved(resolver, self.model_map)
        attachment.probes = [p for p in attachment.probes if (p.place, p.variable) not in known]
        if not attachment.probes:
            raise QuantityError(f"{name}: all of it that fits this model is attached already")
        return attachment

    def reschedule(self, where: Where | None, quantity: str, when: ScheduleLike) -> int:
        """Measure what is attached on another schedule; returns at how many places.

        Raises
        ------
        UnknownNameError, ScheduleError, QuantityError
            Nothing of it is attached there, all of it is on this schedule, or none is meant.
        """
        everywhere = [probe.place for probe in self._wanted.values()]
        found = self.find(everywhere if where is None else where, quantity)
        due = schedule(when)
        moved = {probe.key(): on(due, probe) for probe in found if probe.schedule != due}
        if not moved:
            raise QuantityError(f"{quantity}: {due} already")
        self._columns.declare(moved.values())
        places = None if where is None else frozenset(probe.place for probe in found)
        move = partial(Rescheduled, names={p.quantity.name for p in found}, places=places, due=due)
        with self._lock:
            kept = {key: p for key, p in self._wanted.items() if key not in moved}
            now = {key: kept.get(probe.key(), probe) for key, probe in moved.items()}
            for attachment in self._attachments:
                attachment.move(now, move)
            self._wanted = {**kept, **{probe.key(): probe for probe in now.values()}}
        return len({probe.place for probe in now.values()})

    def run_eagerly(self, wanted: bool) -> None:
        """Whether a compiled model runs its probed steps eagerly, from the next step on."""
        self._observer.eager.wanted = wanted
        self._observer.taps.is_static |= wanted
        self._measured = {}  # between steps the observer looks what is due next

    def expect(self, start: int, end: int) -> None:
        """Learn at the next boundary from where to where the training goes; from any thread."""
        self._schedules.expect(start, end)

    def owed(self, last: int) -> list[Probe]:
        """Those that were not due at the last step, but would have been, had it been known."""
        live = [probe for probe in self._observer.training.probes if not probe.disabled]
        return [probe for probe in live if self._schedules.is_owed(probe, last)]

    def missed(self, probes: Sequence[Probe], step: int) -> None:
        """Say in the record of which probes there is no last value."""
        why = "nobody knew the last step before it was over; run.expect(end_step=...) tells it"
        self._record.event(step, "missed", f"{sentence(probes)}: {why}")

    def begin(self, step: int, resumed: bool) -> None:
        """Measure what is wanted from the first step on; an event of a record that is resumed."""
        with self._changing:
            added, _ = self._measure(step)
        if resumed and added:
            self._record.event(step, "attach", sentence(added))

    def attach(self, resolver: Resolver) -> Attachment:
        """Want these too; one that is there already stays, a new definition replaces it."""
        return self.add(Attachment.resolved(resolver, self.model_map))

    def add(self, attachment: Attachment) -> Attachment:
        """Want what is resolved already."""
        check_windows(attachment.probes, self.wanted)
        attachment.probes[:] = self._want(attachment.probes)
        with self._lock:
            self._attachments = (*self._attachments, attachment)
        return attachment

    def detach(self, probes: Iterable[Probe]) -> None:
        """Want these no more, by place, quantity and schedule."""
        gone = {probe.key() for probe in probes}
        with self._lock:
            self._wanted = {key: p for key, p in self._wanted.items() if key not in gone}
            self._attachments = tuple(
                attachment
                for attachment in self._attachments
                if any(probe.key() in self._wanted for probe in attachment.probes)
            )

    def change(self, step: int) -> None:
        """Measure what is wanted from ``step`` on, and say so in the record."""
        if self._columns.is_full and not self._was_full:
            self._was_full = True
            self.detach(self.wanted)
        if self._attachments and self._map.has_changed():
            model = self._model()
            self._map = ModelMap(model) if model is not None else self._map
        is_as_wanted = self._wanted is self._measured and self._map is self._followed
        if not is_as_wanted or self._schedules.is_learning:
            self._act(step)

    def _act(self, step: int) -> None:
        with self._changing:
            self._follow_model()
            added, removed = self._measure(step)
        for kind, probes in (("attach", added), ("detach", removed)):
            if probes:
                self._record.event(step, kind, sentence(probes))

    def measure_beside(self, probes: Sequence[Probe], step: int) -> None:
        """Measure these, too, from ``step`` on, in place of the last ones; nobody attached them."""
        self._columns.declare(probes)
        for probe in probes:
            probe.attached_step = step
        with self._changing:
            self._beside, self._measured = tuple(probes), {}
        self._act(step)

    def _want(self, probes: Sequence[Probe]) -> list[Probe]:
        """Want these; returns those that measure, some of which may have been there."""
        self._columns.declare(probes)
        with self._lock:
            new = self._new(probes)
            for probe in new.values():
                probe.attached_step = WAITING
            if new:
                self._wanted = {**self._wanted, **new}
            return [self._wanted[probe.key()] for probe in probes]

    def _new(self, probes: Sequence[Probe]) -> dict[ProbeKey, Probe]:
        """Those that are not wanted yet."""
        wanted = {probe.key(): probe for probe in probes}
        return {key: p for key, p in wanted.items() if not _is_same(self._wanted.get(key), p)}

    def _follow_model(self) -> None:
        """Modules were added, replaced or removed: what is attached holds for the new ones."""
        model_map, before = self._map, self._followed
        if model_map is before or not self._attachments:
            return
        self._followed, self._measured = model_map, {}
        new = {*model_map.paths}.difference(before.paths)
        self._record.follow_model(module_table(model_map))
        for attachment in self._attachments:
            probes = [p for p in _resolved_again(attachment, model_map) if _is_below(p.place, new)]
            attachment.probes += self._want(probes)

    def _measure(self, step: int) -> tuple[list[Probe], list[Probe]]:
        """Hand the observer what is wanted; returns what is new and what is gone."""
        wanted, has_learnt = self._wanted, self._schedules.learn(step)
        if wanted is self._measured and not has_learnt:
            return [], []
        before, after = self._observer.probes, (*wanted.values(), *self._beside)
        known = set(before)
        added = [probe for probe in wanted.values() if probe not in known]
        for probe in added:
            probe.attached_step = step
        self._schedules.arm(after)
        self._observer.set_probes(after, self._map)
        self._observer.updates.loss.look(any(map(_wants_loss, after)))
        self._measured = wanted
        gone = [one for one in before if one.key() not in wanted and one.key() in self._attached]
        self._attached = wanted.keys()
        return added, gone

    def find(self, where: Where, quantity: str = "") -> list[Probe]:
        """The probes of ``quantity`` (of every one when empty) at a selection; none raises."""
        places = dict.fromkeys(select(self.model_map, where))
        there = [probe for probe in self._wanted.values() if probe.place in places]
        names = {probe.quantity.name for probe in there}
        # A plain function that was attached is in no registry: look for its name here first.
        name = quantity if quantity in names or not quantity else as_quantity(quantity).name
        found = [probe for probe in there if name in ("", probe.quantity.name)]
        if not found:
            at = ", ".join(standard_place(place) for place in [*places][:4])
            if not there:
                raise UnknownNameError(f"nothing is attached at {at}")
            raise UnknownNameError(
                f"{name} is not attached at {at}; attached there: {', '.join(sorted(names))}"
            )
        return found


def _wants_loss(probe: Probe) -> bool:
    """It reads what the loop logs, or is of a preset: who names what is measured gets just that."""
    return probe.of_preset or any(need.split(".")[0] == "logged" for need in probe.quantity.needs)


def _is_same(old: Probe | None, probe: Probe) -> bool:
    """Tell whether ``probe`` is there, the same function, still measuring and at least as often."""
    if old is None or old.disabled or (old.may_stretch and not probe.may_stretch):
        return False
    return (old.quantity.function, old.quantity.combine) == (
        probe.quantity.function,
        probe.quantity.combine,
    )


def _resolver_of(request: Attach) -> Resolver:
    """What resolves a request, now and whenever the model has changed."""
    what, when = request.quantity, request.schedule
    if request.where is None:
        return partial(resolve_at_default_places, quantity=what, when=when)
    return partial(resolve, where=request.where, quantity=what, when=when)


def _resolved_again(attachment: Attachment, model_map: ModelMap) -> tuple[Probe, ...]:
    try:
        return attachment.resolver(model_map).probes
    except ProbeError:  # what it named is gone, or a quantity no longer fits
        return ()


def _is_below(place: str, paths: set[str]) -> bool:
    """Tell whether a place is one of these modules, or a parameter of one."""
    return place in paths or place.rpartition(".")[0] in paths
