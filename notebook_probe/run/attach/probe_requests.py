"""Requests about probes, each with the function that does it between two steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from notebook_probe.errors import QuantityError
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.default_places import resolve_at_default_places
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.request import Resolver, resolve
from notebook_probe.run.attach.requests import (
    Act,
    Attach,
    AttachPreset,
    Budgeted,
    Compiled,
    Detach,
    Reschedule,
)
from notebook_probe.uninterrupted import whole

__all__ = ["ProbeRequests"]


class ProbeRequests:
    """Functions for the requests of a panel about the probes of a run.

    Parameters
    ----------
    probes : ProbeSet
    limit : callable
        Sets the budget of watching, in per cent; None for no limit.
    """

    def __init__(self, probes: ProbeSet, limit: Callable[[float | None], None]) -> None:
        self._probes, self._limit = probes, limit

    def acts(self) -> Mapping[type, Act]:
        """Return the function of each kind of request.

        It raises a ProbeError for what cannot be done.
        """
        kinds: dict[type, Callable[[Any], str]] = {
            Attach: self._attach,
            AttachPreset: self._attach_preset,
            Reschedule: self._reschedule,
            Detach: self._detach,
            Compiled: self._run_compiled,
            Budgeted: self._keep_budget,
        }
        return {kind: partial(self._do, act) for kind, act in kinds.items()}

    @whole
    def _do(self, act: Callable[[Any], str], request: object, step: int) -> str:
        done = act(request)
        self._probes.act(step)
        return done

    def _attach(self, request: Attach) -> str:
        attachment = Attachment.resolved(_resolver_of(request), self._probes.model_map)
        done = _description(attachment.probes, attachment.skipped)
        if not self._probes.new(attachment.probes):
            raise QuantityError(f"{done}: attached already, {request.schedule}")
        self._probes.add(attachment)
        return done

    def _attach_preset(self, request: AttachPreset) -> str:
        name = request.name
        known = {(probe.place, probe.variable) for probe in self._probes.wanted}
        resolver = partial(resolve_presets, probes=name)
        attachment = Attachment.resolved(resolver, self._probes.model_map)
        attachment.probes = [p for p in attachment.probes if (p.place, p.variable) not in known]
        if not attachment.probes:
            raise QuantityError(f"{name}: all of it that fits this model is attached already")
        self._probes.add(attachment)
        return f"{name}: {_counted(len(attachment.probes), 'probe')}"

    def _reschedule(self, request: Reschedule) -> str:
        moved = self._probes.reschedule(request.where, request.quantity, request.schedule)
        return f"{request.quantity} at {_counted(moved, 'place')}: {request.schedule}"

    def _detach(self, request: Detach) -> str:
        found = self._probes.find(request.where, request.quantity)
        self._probes.detach(found)
        return f"detached {_counted(len(found), 'probe')}"

    def _run_compiled(self, request: Compiled) -> str:
        self._probes.run_compiled(request.steps)
        return "probed steps run eagerly" if request.steps == "eager" else "all steps compiled"

    def _keep_budget(self, request: Budgeted) -> str:
        self._limit(request.percent)
        if request.percent is None:
            return "every due step is measured"
        return f"kept below {request.percent:g} %"


def _resolver_of(request: Attach) -> Resolver:
    """Return the resolver of a request, used now and after every change of the model."""
    what, when = request.quantity, request.schedule
    if request.where is None:
        return partial(resolve_at_default_places, quantity=what, when=when)
    return partial(resolve, where=request.where, quantity=what, when=when)


def _description(probes: Sequence[Probe], skipped: Sequence[str]) -> str:
    """Describe an attachment in words, for the ticket of its request."""
    names = dict.fromkeys(probe.quantity.name for probe in probes)
    places = dict.fromkeys(probe.place for probe in probes)
    text = f"{', '.join(names)} at {_counted(len(places), 'module')}"
    if skipped:
        text += f"; left out: {skipped[0]}"
        more = len(skipped) - 1
        text += f" and {more} more" if more else ""
    return text


def _counted(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
