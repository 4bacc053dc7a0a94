"""The probes of a run: what is wanted, and how it becomes what is measured between two steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from torch import nn

from notebook_probe.errors import ClosedRunError, ProbeError, QuantityError, UnknownNameError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where, select, standard_place
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.probe import WAITING, Probe
from notebook_probe.quantities import as_quantity
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.run.attach.default_places import read_usual
from notebook_probe.run.attach.module_table import module_table
from notebook_probe.run.attach.request import ResolvedRequest, read_asked
from notebook_probe.run.attach.requests import Attach, Compiled, Detach, Request
from notebook_probe.run.attach.standing import StandingRequest
from notebook_probe.schedules import Schedule

__all__ = ["ProbeSet"]

ProbeKey: TypeAlias = "tuple[str, str, Schedule, bool]"


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
    declare : callable
        Gives new probes their columns in the record.
    describe : callable
        Tells the record which modules there are after a change.
    tell : callable
        ``tell(step, kind, text)`` keeps an event in the record.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        observer: Observer,
        declare: Callable[[Iterable[Probe]], None],
        describe: Callable[[Sequence[ModuleRow]], None],
        tell: Callable[[int, str, str], None],
    ) -> None:
        self._model = weakref.ref(model)
        self._observer = observer
        self._declare, self._describe, self._tell = declare, describe, tell
        self._standing: tuple[StandingRequest, ...] = ()
        self._wanted: dict[ProbeKey, Probe] = {}  # replaced, never changed: other threads walk it
        self._measured = self._wanted
        self._map = self._followed = model_map
        self._lock = threading.Lock()

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
        self._look(self.model)
        return self._map

    def _look(self, model: nn.Module) -> None:
        if self._map.has_changed():
            self._map = ModelMap(model)

    def watches(self, model: nn.Module) -> bool:
        return self._model() is model

    @property
    def wanted(self) -> list[Probe]:
        return [*self._wanted.values()]

    def apply(self, request: Request, step: int) -> str:
        """Do what a request asks, between steps; returns what was done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be done.
        """
        if isinstance(request, Attach):
            done = _told(self.attach(_reading(request)))
        elif isinstance(request, Detach):
            found = self.find(request.where, request.quantity)
            self.detach(found)
            done = f"detached {_counted(len(found), 'probe')}"
        elif isinstance(request, Compiled):
            self.run_eagerly(request.steps == "eager")
            done = "probed steps run eagerly" if request.steps == "eager" else "all steps compiled"
        else:
            raise QuantityError(f"{request!r} is not about probes")
        self._act(step)
        return done

    def run_eagerly(self, wanted: bool) -> None:
        """Whether a compiled model runs its probed steps eagerly, from the next step on."""
        self._observer.eager.wanted = wanted
        self._observer.taps.is_static |= wanted
        self._measured = {}  # between steps the observer looks what is due next

    def begin(self, asked: Callable[[ModelMap], ResolvedRequest], step: int, told: bool) -> None:
        """Measure these from the first step on; ``told`` in an event, as for a resumed record."""
        self.attach(asked)
        added, _ = self._measure(step)
        if told and added:
            self._tell(step, "attach", _sentence(added))

    def attach(self, asked: Callable[[ModelMap], ResolvedRequest]) -> StandingRequest:
        """Want these too; one that is there already stays, a new definition replaces it."""
        found = asked(self.model_map)
        standing = StandingRequest(asked, [*found.probes], found.skipped)
        self._want(found.probes)
        with self._lock:
            self._standing = (*self._standing, standing)
        return standing

    def detach(self, probes: Iterable[Probe]) -> None:
        """Want these no more, by place, quantity and schedule."""
        gone = {probe.key() for probe in probes}
        with self._lock:
            self._wanted = {key: p for key, p in self._wanted.items() if key not in gone}
            self._standing = tuple(
                standing
                for standing in self._standing
                if any(probe.key() in self._wanted for probe in standing.probes)
            )

    def detach_all(self) -> None:
        """Want nothing more."""
        self.detach(self.wanted)

    def change(self, step: int) -> None:
        """Measure what is wanted from ``step`` on, and say so in the record."""
        model = self._model()
        if model is not None and self._standing:
            self._look(model)
        self._act(step)

    def _act(self, step: int) -> None:
        self._follow_model()
        added, removed = self._measure(step)
        for kind, probes in (("attach", added), ("detach", removed)):
            if probes:
                self._tell(step, kind, _sentence(probes))

    def _want(self, probes: Sequence[Probe]) -> None:
        self._declare(probes)
        with self._lock:
            known = self._wanted
            asked = {probe.key(): probe for probe in probes}
            new = {key: p for key, p in asked.items() if not _is_same(known.get(key), p)}
            for probe in new.values():
                probe.attached_step = WAITING
            if new:
                self._wanted = {**known, **new}

    def _follow_model(self) -> None:
        """Modules were added, replaced or removed: what was asked for holds for the new ones."""
        model_map, before = self._map, self._followed
        if model_map is before or not self._standing:
            return
        self._followed, self._measured = model_map, {}
        new = {*model_map.paths}.difference(before.paths)
        self._describe(module_table(model_map))
        for standing in self._standing:
            probes = [p for p in _read_again(standing, model_map) if _is_below(p.place, new)]
            standing.probes += probes
            self._want(probes)

    def _measure(self, step: int) -> tuple[list[Probe], list[Probe]]:
        """Hand the observer what is wanted; returns what is new and what is gone."""
        wanted = self._wanted
        if wanted is self._measured:
            return [], []
        before, after = self._observer.probes, tuple(wanted.values())
        known = set(before)
        added = [probe for probe in after if probe not in known]
        for probe in added:
            probe.attached_step = step
        self._observer.set_probes(after, self._map)
        self._measured = wanted
        return added, [probe for probe in before if probe.key() not in wanted]

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


def _is_same(old: Probe | None, probe: Probe) -> bool:
    """Tell whether ``probe`` is there, the same function and still measuring."""
    if old is None or old.disabled:
        return False
    return (old.quantity.function, old.quantity.combine) == (
        probe.quantity.function,
        probe.quantity.combine,
    )


def _reading(request: Attach) -> Callable[[ModelMap], ResolvedRequest]:
    """How to read a request, now and whenever the model has changed."""
    what, when = request.quantity, request.schedule
    if request.where is None:
        return partial(read_usual, quantity=what, when=when)
    return partial(read_asked, where=request.where, quantity=what, when=when)


def _read_again(standing: StandingRequest, model_map: ModelMap) -> tuple[Probe, ...]:
    try:
        return standing.again(model_map).probes
    except ProbeError:  # what it named is gone, or a quantity no longer fits
        return ()


def _is_below(place: str, paths: set[str]) -> bool:
    """Tell whether a place is one of these modules, or a parameter of one."""
    return place in paths or place.rpartition(".")[0] in paths


def _told(asked: StandingRequest) -> str:
    names = dict.fromkeys(probe.quantity.name for probe in asked.probes)
    places = dict.fromkeys(probe.place for probe in asked.probes)
    told = f"{', '.join(names)} at {_counted(len(places), 'module')}"
    if asked.skipped:
        told += f"; left out: {asked.skipped[0]}"
        told += f" and {len(asked.skipped) - 1} more" if len(asked.skipped) > 1 else ""
    return told


def _sentence(probes: Sequence[Probe]) -> str:
    """One line for the record's events: quantities, places, schedules."""
    names = dict.fromkeys(probe.quantity.name for probe in probes)
    places = list(dict.fromkeys(standard_place(probe.place) for probe in probes))
    shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
    schedules = dict.fromkeys(str(probe.schedule) for probe in probes)
    return f"{', '.join(names)} at {shown}, {', '.join(schedules)}"


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
