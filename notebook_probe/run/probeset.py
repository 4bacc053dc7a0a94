"""The probes of a run: attached and detached between steps, each with its column in the record."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence

from torch import nn

from notebook_probe.errors import ClosedRunError, QuantityError, UnknownNameError
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.selectors import Where, select, standard_place
from notebook_probe.quantities import as_quantity, quantities
from notebook_probe.run.attach import Asked, read_asked
from notebook_probe.run.requests import Attach, Detach, Request
from notebook_probe.run.status import ProbeStatus, QuantityInfo

__all__ = ["ProbeSet"]


class ProbeSet:
    """Attaches and detaches; called between steps only.

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
        """Do what a request asks; returns what was done, in words.

        Raises
        ------
        ProbeError
            Why it cannot be done.
        """
        if isinstance(request, Attach):
            asked = read_asked(self.model, request.where, request.quantity, request.schedule)
            self.attach(asked.probes, step)
            return _told(asked)
        if isinstance(request, Detach):
            found = self.find(request.where, request.quantity)
            self.remove(found, step)
            return f"detached {_counted(len(found), 'probe')}"
        raise QuantityError(f"{request!r} is not about probes")

    def attach(self, probes: Sequence[Probe], step: int) -> None:
        """Add probes, and say so in the record."""
        new = self.add(probes, step)
        if new:
            self._tell(step, "attach", _sentence(new))

    def add(self, probes: Sequence[Probe], step: int) -> list[Probe]:
        """Measure these too; one that is there already stays, a new definition replaces it."""
        known = {probe.key(): probe for probe in self._observer.probes}
        new = [
            probe
            for probe in probes
            if probe.key() not in known or known[probe.key()].quantity is not probe.quantity
        ]
        for probe in new:
            probe.attached_step = step
        self._declare(new)
        known.update({probe.key(): probe for probe in new})
        self._observer.set_probes(known.values())
        return new

    def remove(self, probes: Iterable[Probe], step: int) -> None:
        """Detach these, by place, quantity and schedule."""
        gone = {probe.key() for probe in probes}
        removed = [probe for probe in self._observer.probes if probe.key() in gone]
        self._observer.set_probes(p for p in self._observer.probes if p.key() not in gone)
        if removed:
            self._tell(step, "detach", _sentence(removed))

    def find(self, where: Where, quantity: str = "") -> list[Probe]:
        """The probes of ``quantity`` (of every one when empty) at a selection; none raises."""
        places = select(self.model, where)
        name = as_quantity(quantity).name if quantity else ""
        there = [probe for probe in self._observer.probes if probe.place in places]
        found = [probe for probe in there if name in ("", probe.quantity.name)]
        if not found:
            attached = sorted({probe.quantity.name for probe in there}) or ["nothing"]
            raise UnknownNameError(
                f"{name or 'no probe'} is not attached at {', '.join(places[:4])}; "
                f"attached there: {', '.join(attached)}"
            )
        return found

    def statuses(self, step: int) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        return [self._status(probe, step) for probe in self._observer.probes]

    def _status(self, probe: Probe, step: int) -> ProbeStatus:
        return ProbeStatus(
            module=standard_place(probe.place),
            quantity=probe.quantity.name,
            schedule=str(probe.schedule),
            attached_step=probe.attached_step,
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
        if not any(probe.schedule(past) for past in range(probe.attached_step, step)):
            return "not due yet"
        if set(probe.quantity.needs) & {"input", "output", "grad_output"}:
            model = self._model()
            if model is not None and model._compiled_call_impl is not None:
                return "the model is compiled: hooks do not run in it; weights and gradients do"
            if not self._observer.n_calls(probe.place):
                return "not called by any training forward yet"
            return "called, but no gradient reached its output"
        return "no optimizer step with a gradient here yet"

    @staticmethod
    def catalogue() -> list[QuantityInfo]:
        """Every registered quantity."""
        return [QuantityInfo(q.name, q.summary, q.needs, q.units) for q in quantities.values()]


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
