"""The probes of a run: what is wanted, and how it becomes what is measured between two steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence, Set
from functools import partial
from typing import Any, Protocol

from torch import nn

from notebook_probe.errors import ClosedRunError, ProbeError, QuantityError, UnknownNameError
from notebook_probe.model.device import device_text
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where, select, standard_place
from notebook_probe.probes.inside.traced import can_trace
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.probe import WAITING, Probe
from notebook_probe.quantities import as_quantity
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.armed_schedules import ArmedSchedules
from notebook_probe.run.attach.attachment import (
    Attachment,
    ProbeKey,
    Rescheduled,
    check_windows,
    on_schedule,
)
from notebook_probe.run.attach.event_texts import ended, sentence
from notebook_probe.run.attach.module_table import OnCompiled, module_table
from notebook_probe.run.attach.request import Resolver
from notebook_probe.schedules import Schedule, ScheduleLike, schedule
from notebook_probe.uninterrupted import whole

__all__ = ["ProbeColumns", "ProbeSet"]


class ProbeColumns(Protocol):
    """Columns for the values of probes.

    `RowKeeper` is one; rows and probes to attach do not import each other.
    """

    @property
    def is_full(self) -> bool:
        """True once nothing more is recorded."""

    def declare(self, probes: Iterable[Probe]) -> None:
        """Give every probe its column; from any thread."""


class ProbeSet:
    """Wanted and measured probes; attaching and detaching change the wanted ones at once.

    They may be called from any thread. `change` applies them, only between steps.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    model_map : ModelMap
        Map of the model, until it changes.
    observer : Observer
    columns : ProbeColumns
    record : RecordWriter
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        observer: Observer,
        columns: ProbeColumns,
        record: RecordWriter,
    ) -> None:
        # Dropping the model ends the run, so that nothing here may keep it.
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
        self._looked = -1
        """Step before which the model was last compared with its map."""
        self._lock = threading.Lock()
        self._changing = threading.RLock()  # two threads may meet between the same two steps

    @property
    def model(self) -> nn.Module:
        """The watched model; raises ClosedRunError after it was collected."""
        model = self._model()
        if model is None:
            raise ClosedRunError("the watched model no longer exists; its record can still be read")
        return model

    @property
    def device(self) -> str:
        """Device of the model, as text; empty when it is gone."""
        for slot in self._map.slots("", below=True):  # walks no module: it is asked at each refresh
            if (value := slot.get()) is not None:
                return device_text(value.device)
        return ""

    @property
    def model_map(self) -> ModelMap:
        """Map of the model, rebuilt after changes; raises ClosedRunError after it was collected."""
        model = self.model
        if self._map.differs():
            self._map = ModelMap(model)
            self._observer.steps.gate.wake()
        return self._map

    def watches(self, model: nn.Module) -> bool:
        return self._model() is model

    @property
    def wanted(self) -> list[Probe]:
        return [*self._wanted.values()]

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """Requests, each with the probes it has produced."""
        return self._attachments

    @property
    def n_wanted(self) -> int:
        return len(self._wanted)

    @whole
    def reschedule(self, where: Where | None, quantity: str, when: ScheduleLike) -> int:
        """Change the schedule of attached probes; return at how many places.

        Raises
        ------
        UnknownNameError, ScheduleError, QuantityError
            The quantity is not attached there, all its probes are on this schedule, or ``when`` is
            no schedule.
        """
        everywhere = [probe.place for probe in self._wanted.values()]
        found = self.find(everywhere if where is None else where, quantity)
        places = None if where is None else frozenset(probe.place for probe in found)
        return self._move(found, schedule(when), quantity, places)

    @whole
    def reschedule_probes(self, probes: Sequence[Probe], quantity: Any, when: ScheduleLike) -> int:
        """Reschedule those of some probes that are still attached, as `reschedule` does."""
        there = [probe for probe in probes if probe.key() in self._wanted]
        names = {probe.quantity.name for probe in there}
        name = quantity if quantity in names or not quantity else as_quantity(quantity).name
        found = [probe for probe in there if name in ("", probe.quantity.name)]
        if not found:
            raise UnknownNameError(f"reschedule: no {name or 'probe'} of the handle is attached")
        return self._move(found, schedule(when), name or ", ".join(sorted(names)), None)

    def _move(
        self, found: Sequence[Probe], due: Schedule, quantity: str, places: Set[str] | None
    ) -> int:
        moved = {probe.key(): on_schedule(due, probe) for probe in found if probe.schedule != due}
        if not moved:
            raise QuantityError(f"{quantity}: {due} already")
        self._columns.declare(moved.values())
        move = partial(Rescheduled, names={p.quantity.name for p in found}, places=places, due=due)
        with self._lock:
            kept = {key: p for key, p in self._wanted.items() if key not in moved}
            # A probe that is on this schedule already takes its place: two would write one series.
            now = {key: kept.get(probe.key(), probe) for key, probe in moved.items()}
            for attachment in self._attachments:
                attachment.move(now, move)
            self._wanted = {**kept, **{probe.key(): probe for probe in now.values()}}
        self._observer.steps.gate.wake()
        return len({probe.place for probe in now.values()})

    def run_compiled(self, steps: OnCompiled) -> None:
        """Set how a compiled model runs its probed steps, from the next step on."""
        self._observer.eager.wanted = steps == "eager"
        if steps != "eager":  # else graphs read until a step runs uncompiled
            self._observer.in_graphs.wanted = steps == "inside" and can_trace()
        self._observer.steps.has_to_prepare = True
        self._observer.taps.is_static |= steps == "eager"
        self._measured = {}  # between steps the observer looks what is due next
        self._observer.steps.gate.wake()

    def expect(self, start: int, end: int) -> None:
        """Learn at the next boundary from where to where the training goes; from any thread."""
        self._schedules.expect(start, end)
        self._observer.steps.gate.wake()

    def owed(self, last: int) -> list[Probe]:
        """Return the probes that would have been due at the last step, had it been known."""
        live = (probe for probe in self._observer.training.probes if not probe.disabled)
        return self._schedules.owed(live, last)

    def missed(self, probes: Sequence[Probe], step: int) -> None:
        """Record an event about probes without a last value."""
        why = "the last step was not known in time; announce it by run.expect(end_step=...)"
        self._record.event(step, "missed", f"{sentence(probes)}: {why}")

    def begin(self, step: int, resumed: bool) -> None:
        """Measure the wanted probes from the first step on; a resumed record gets an event."""
        with self._changing:
            added, _ = self._measure(step)
        if resumed and added:
            self._record.event(step, "attach", sentence(added))

    def attach(self, resolver: Resolver) -> Attachment:
        """Add a request; existing probes stay, a new definition replaces the old one."""
        return self.add(Attachment.resolved(resolver, self.model_map))

    @whole
    def add(self, attachment: Attachment) -> Attachment:
        """Add a resolved attachment."""
        # Before anything is changed: a refusal must leave no half of an attachment.
        check_windows(attachment.probes, self.wanted)
        attachment.probes[:] = self._want(attachment.probes)
        with self._lock:
            self._attachments = (*self._attachments, attachment)
        self._observer.steps.gate.wake()
        return attachment

    @whole
    def detach(self, probes: Iterable[Probe]) -> None:
        """Remove these probes, by place, quantity and schedule."""
        gone = {probe.key() for probe in probes}
        with self._lock:
            self._wanted = {key: p for key, p in self._wanted.items() if key not in gone}
            self._attachments = tuple(
                attachment
                for attachment in self._attachments
                if any(probe.key() in self._wanted for probe in attachment.probes)
            )
        self._observer.steps.gate.wake()

    def change(self, step: int) -> bool:
        """Apply the wanted probes from ``step`` on, and record the change; return if any."""
        if self._columns.is_full and not self._was_full:
            self._was_full = True
            self.detach(self.wanted)
        n_steps, self._looked = step - self._looked, step
        if self._attachments and self._map.has_changed(max(1, n_steps)):
            model = self._model()
            self._map = ModelMap(model) if model is not None else self._map
        is_as_wanted = self._wanted is self._measured and self._map is self._followed
        return (not is_as_wanted or self._schedules.is_learning) and self.act(step)

    @whole
    def act(self, step: int) -> bool:
        """Measure what is wanted now, from ``step`` on, and record the change; return if any."""
        with self._changing:
            self._follow_model()
            added, removed = self._measure(step)
        if added:
            self._record.event(step, "attach", sentence(added))
        if removed:
            detail = ended(removed, self._wanted.values())
            self._record.event(step, "detach", sentence(removed), detail)
        return bool(added or removed)

    @whole
    def measure_beside(self, probes: Sequence[Probe], step: int) -> None:
        """Measure additional probes from ``step`` on, replacing earlier ones; not attached."""
        self._columns.declare(probes)
        for probe in probes:
            probe.attached_step = step
        with self._changing:
            self._beside, self._measured = tuple(probes), {}
        self.act(step)

    def _want(self, probes: Sequence[Probe]) -> list[Probe]:
        """Add probes; return those that measure, which may be existing ones."""
        self._columns.declare(probes)
        with self._lock:
            new = self.new(probes)
            for probe in new.values():
                # The first measured step is known at the next boundary only.
                probe.attached_step = WAITING
            if new:
                self._wanted = {**self._wanted, **new}
            return [self._wanted[probe.key()] for probe in probes]

    def new(self, probes: Sequence[Probe]) -> dict[ProbeKey, Probe]:
        """Return the probes that are not wanted yet."""
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
        """Pass the wanted probes to the observer; return the new and the removed ones."""
        wanted, has_learned = self._wanted, self._schedules.learn(step)
        if wanted is self._measured and not has_learned:
            return [], []
        before, after = self._observer.steps.probes, (*wanted.values(), *self._beside)
        known = set(before)
        # Probes are compared as objects: one that was rescheduled is new, though its series is not.
        added = [probe for probe in wanted.values() if probe not in known]
        for probe in added:
            probe.attached_step = step
        self._schedules.arm(after)
        self._observer.steps.set_probes(after, self._map)
        self._observer.updates.loss.look(any(map(_wants_loss, after)))
        self._measured = wanted
        gone = [one for one in before if one.key() not in wanted and one.key() in self._attached]
        self._attached = wanted.keys()
        return added, gone

    def find(self, where: Where, quantity: str = "") -> list[Probe]:
        """Return the probes of ``quantity`` (all if empty) at a selection; raises if none."""
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
    """Return whether it needs logged values or is of a preset: explicit ones need no loss."""
    return probe.of_preset or any(need.split(".")[0] == "logged" for need in probe.quantity.needs)


def _is_same(old: Probe | None, probe: Probe) -> bool:
    """Return whether ``probe`` exists: the same function, still measuring, at least as often."""
    if old is None or old.disabled or (old.may_stretch and not probe.may_stretch):
        return False
    return (old.quantity.function, old.quantity.combine) == (
        probe.quantity.function,
        probe.quantity.combine,
    )


def _resolved_again(attachment: Attachment, model_map: ModelMap) -> tuple[Probe, ...]:
    try:
        return attachment.resolver(model_map).probes
    except ProbeError:  # what it named is gone, or a quantity no longer fits
        return ()


def _is_below(place: str, paths: set[str]) -> bool:
    """Return whether a place is one of these modules, or a parameter of one."""
    return place in paths or place.rpartition(".")[0] in paths
