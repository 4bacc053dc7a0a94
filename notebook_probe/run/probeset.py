"""The probes of a run: what is wanted, and how it becomes what is measured between two steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from torch import nn

from notebook_probe.errors import ClosedRunError, QuantityError, UnknownNameError
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.selectors import Where, select, standard_place
from notebook_probe.quantities import as_quantity, quantities
from notebook_probe.run.attach import Asked, read_asked
from notebook_probe.run.requests import Attach, Detach, Request
from notebook_probe.run.status import ProbeStatus, QuantityInfo
from notebook_probe.schedules import Foreseen, Schedule

__all__ = ["ProbeSet"]

Key: TypeAlias = "tuple[str, str, Schedule]"

WAITING = -1
"""The attached step of a probe that is wanted and not measured yet."""


class ProbeSet:
    """Attaching and detaching change what is wanted, at once and from any thread.

    `change` makes it what is measured; between steps only.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    observer : Observer
    declare : callable
        Gives new probes their columns in the record.
    tell : callable
        ``tell(step, kind, text)`` keeps an event in the record.
    """

    def __init__(
        self,
        model: nn.Module,
        observer: Observer,
        declare: Callable[[Iterable[Probe]], None],
        tell: Callable[[int, str, str], None],
    ) -> None:
        self._model = weakref.ref(model)
        self._observer = observer
        self._declare, self._tell = declare, tell
        self._wanted: dict[Key, Probe] = {}  # replaced, never changed: other threads walk it
        self._lock = threading.Lock()

    @property
    def model(self) -> nn.Module:
        """The watched model; raises ClosedRunError when it is gone."""
        model = self._model()
        if model is None:
            raise ClosedRunError("the watched model no longer exists; its record can still be read")
        return model

    def watches(self, model: nn.Module) -> bool:
        return self._model() is model

    def apply(self, request: Request, step: int) -> str:
        """Do what a request asks, between steps; returns what was done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be done.
        """
        if isinstance(request, Attach):
            asked = read_asked(self.model, request.where, request.quantity, request.schedule)
            self.attach(asked.probes)
            done = _told(asked)
        elif isinstance(request, Detach):
            found = self.find(request.where, request.quantity)
            self.detach(found)
            done = f"detached {_counted(len(found), 'probe')}"
        else:
            raise QuantityError(f"{request!r} is not about probes")
        self.change(step)
        return done

    def begin(self, probes: Sequence[Probe], step: int) -> None:
        """Measure these from the first step on; the record needs no event to say so."""
        self.attach(probes)
        self._measure(step)

    def attach(self, probes: Sequence[Probe]) -> None:
        """Want these too; one that is there already stays, a new definition replaces it."""
        self._declare(probes)
        with self._lock:
            known = self._wanted
            new = {probe.key(): probe for probe in probes if not _is_in(known, probe)}
            for probe in new.values():
                probe.attached_step = WAITING
            self._wanted = {**known, **new}

    def detach(self, probes: Iterable[Probe]) -> None:
        """Want these no more, by place, quantity and schedule."""
        gone = {probe.key() for probe in probes}
        with self._lock:
            self._wanted = {key: p for key, p in self._wanted.items() if key not in gone}

    def change(self, step: int) -> None:
        """Measure what is wanted from ``step`` on, and say so in the record."""
        added, removed = self._measure(step)
        for kind, probes in (("attach", added), ("detach", removed)):
            if probes:
                self._tell(step, kind, _sentence(probes))

    def _measure(self, step: int) -> tuple[list[Probe], list[Probe]]:
        """Hand the observer what is wanted; returns what is new and what is gone."""
        before, wanted = self._observer.probes, self._wanted
        after = tuple(wanted.values())
        if after == before:
            return [], []
        known = set(before)
        added = [probe for probe in after if probe not in known]
        for probe in added:
            probe.attached_step = step
        self._observer.set_probes(after)
        return added, [probe for probe in before if probe.key() not in wanted]

    def find(self, where: Where, quantity: str = "") -> list[Probe]:
        """The probes of ``quantity`` (of every one when empty) at a selection; none raises."""
        places = select(self.model, where)
        there = [probe for probe in self._wanted.values() if probe.place in places]
        names = {probe.quantity.name for probe in there}
        # A plain function that was attached is in no registry: look for its name here first.
        name = quantity if quantity in names or not quantity else as_quantity(quantity).name
        found = [probe for probe in there if name in ("", probe.quantity.name)]
        if not found:
            at = ", ".join(standard_place(place) for place in places[:4])
            if not there:
                raise UnknownNameError(f"nothing is attached at {at}")
            raise UnknownNameError(
                f"{name} is not attached at {at}; attached there: {', '.join(sorted(names))}"
            )
        return found

    def statuses(self, step: int) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        return [self._status(probe, step) for probe in self._wanted.values()]

    def _status(self, probe: Probe, step: int) -> ProbeStatus:
        return ProbeStatus(
            module=standard_place(probe.place),
            quantity=probe.quantity.name,
            schedule=str(probe.schedule),
            attached_step=step + 1 if probe.attached_step == WAITING else probe.attached_step,
            n_values=probe.n_values,
            last_step=probe.last_step,
            n_errors=probe.n_errors,
            error=probe.error,
            disabled=probe.disabled,
            note=self._note(probe, step),
        )

    def _note(self, probe: Probe, step: int) -> str:
        """Why a probe has no value, in words; empty when it has one."""
        if probe.disabled:
            return f"disabled after {probe.errors_in_a_row} errors in a row"
        if probe.n_values or probe.n_errors:
            return ""
        if probe.attached_step == WAITING:
            return "measured from the next step on"
        if not probe.was_due:
            return _first_due(probe.schedule, max(step, probe.attached_step))
        if set(probe.quantity.needs) & {"input", "output", "grad_output"}:
            model = self._model()
            if model is not None and model._compiled_call_impl is not None:
                return "the model is compiled: hooks do not run in it; weights and gradients do"
            if not self._observer.n_calls(probe.place):
                return "not called by any training forward yet"
            return "called, but no gradient reached its output"
        return "no optimizer step with a gradient here yet"

    def catalogue(self) -> list[QuantityInfo]:
        """Every registered quantity, with what a call of its function has cost here."""
        spent: dict[str, tuple[float, int]] = {}
        for probe in self._wanted.values():
            seconds, n = spent.get(probe.quantity.name, (0.0, 0))
            spent[probe.quantity.name] = seconds + probe.seconds, n + probe.n_values
        costs = {name: 1e6 * seconds / n for name, (seconds, n) in spent.items() if seconds and n}
        return [
            QuantityInfo(q.name, q.summary, q.needs, q.units, costs.get(q.name))
            for q in quantities.values()
        ]


def _is_in(known: Mapping[Key, Probe], probe: Probe) -> bool:
    """Tell whether ``probe`` is there, the same function and still measuring."""
    old = known.get(probe.key())
    if old is None or old.disabled:
        return False
    return (old.quantity.function, old.quantity.combine) == (
        probe.quantity.function,
        probe.quantity.combine,
    )


def _first_due(schedule: Schedule, step: int) -> str:
    """When the first value can be expected; a user's own function is not asked ahead of time."""
    due = schedule.next_due(step) if isinstance(schedule, Foreseen) else None
    return "not due yet" if due is None else f"first value at step {due}"


def _told(asked: Asked) -> str:
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
