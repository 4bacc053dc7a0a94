"""The hook doctor: for every probe when it last fired, why it did not, and what it costs."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterable

from torch import nn

from notebook_probe.probes.compiled import is_compiled
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.plan import is_of_calls
from notebook_probe.probes.probe import WAITING, Probe
from notebook_probe.probes.selectors import standard_place
from notebook_probe.probes.slots import slots_of_place
from notebook_probe.quantities import quantities
from notebook_probe.run.status import ProbeStatus, QuantityInfo
from notebook_probe.schedules import Foreseen, Schedule

__all__ = ["Doctor"]

LOOK_AGAIN_S = 5.0
LATE_STEPS = 3
"""Silent due steps after which something seems wrong with a probe that once had values."""

NOT_CALLED = "not called by any training forward yet"
COMPILED = (
    "the model is compiled and its calls run no hooks; weights and gradients are recorded. "
    "run.on_compiled = 'eager' runs the probed steps uncompiled"
)


class Doctor:
    """Looks at the probes of one run; anyone may ask, at any time.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    observer : Observer
    """

    def __init__(self, model: nn.Module, observer: Observer) -> None:
        self._model = weakref.ref(model)
        self._observer = observer
        self._compiled = False
        self._looked = -math.inf

    def statuses(
        self, probes: Iterable[Probe], step: int, step_seconds: float
    ) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        return [self._status(probe, step, step_seconds) for probe in probes]

    def catalogue(self, probes: Iterable[Probe]) -> list[QuantityInfo]:
        """Every registered quantity, with what one probe of it costs per step here."""
        costs: dict[str, list[float]] = {}
        for probe in probes:
            if probe.n_values:
                costs.setdefault(probe.quantity.name, []).append(self._cost_us(probe))
        return [
            QuantityInfo(q.name, q.summary, q.needs, q.units, _middle(costs.get(q.name, [])))
            for q in quantities.values()
        ]

    def _status(self, probe: Probe, step: int, step_seconds: float) -> ProbeStatus:
        cost_us = self._cost_us(probe)
        return ProbeStatus(
            module=standard_place(probe.place),
            quantity=probe.variable,
            schedule=str(probe.schedule),
            attached_step=step + 1 if probe.attached_step == WAITING else probe.attached_step,
            n_values=probe.n_values,
            last_step=probe.last_step,
            n_errors=probe.n_errors,
            error=probe.error,
            disabled=probe.disabled,
            note=self._note(probe, step),
            cost_us=cost_us,
            cost_percent=1e-4 * cost_us / step_seconds if step_seconds > 0 else 0.0,
        )

    def _cost_us(self, probe: Probe) -> float:
        observer = self._observer
        track = observer.training if probe.phase == "training" else observer.evaluation
        return 1e6 * track.cost_of(probe)

    def _note(self, probe: Probe, step: int) -> str:
        """Why a probe has no value, in words; empty when it has one."""
        if probe.disabled:
            return f"disabled after {probe.errors_in_a_row} errors in a row"
        if probe.attached_step == WAITING:
            return "measured from the next step on"
        if self._observer.taps.was_cleared(probe.place) and is_of_calls(probe):
            return "somebody took our hooks off this module"
        silent = not probe.n_values
        if not silent and self._fires(probe, step):
            return ""
        if silent and probe.n_errors:
            return ""
        if not probe.was_due:
            return _first_due(probe.schedule, max(step, probe.attached_step))
        return self._why_silent(probe)

    def _fires(self, probe: Probe, step: int) -> bool:
        """Tell whether a probe with values still gets them."""
        if isinstance(probe.schedule, Foreseen):
            due = probe.schedule.next_due(probe.last_step + 1)
            for _ in range(LATE_STEPS - 1):
                due = probe.schedule.next_due(due + 1) if due is not None else None
            return due is None or due >= step - 1
        return True

    def _why_silent(self, probe: Probe) -> str:
        model = self._model()
        if probe.gap:
            return probe.gap
        if model is None:
            return "the model no longer exists"
        modules = dict(model.named_modules(remove_duplicate=False))
        if probe.place not in modules and not slots_of_place(modules, probe.place):
            return "the model no longer has it"
        if is_of_calls(probe):
            return self._why_not_called(probe, model, modules[probe.place])
        return _why_no_gradient(probe, modules)

    def _why_not_called(self, probe: Probe, model: nn.Module, module: nn.Module) -> str:
        taps = self._observer.taps
        if probe.phase == "eval":
            return "not called by any evaluation yet"
        if not taps.n_calls(probe.place):
            if not self._observer.eager.wanted and self._is_compiled(model):
                return COMPILED
            return NOT_CALLED
        needs = probe.quantity.needs
        if "grad_input" in needs:
            return "called, but no gradient passed through it to an input"
        if "grad_output" in needs:
            return "called, but no gradient reached its output"
        return "called, but with no tensor that can be read"

    def _is_compiled(self, model: nn.Module) -> bool:
        now = time.monotonic()
        if not self._compiled and now - self._looked > LOOK_AGAIN_S:  # it looks at every object
            self._compiled, self._looked = is_compiled(model), now
        return self._compiled


def _why_no_gradient(probe: Probe, modules: dict[str, nn.Module]) -> str:
    below = bool({"grad", "grad_raw"} & set(probe.quantity.needs))
    values = [slot.get() for slot in slots_of_place(modules, probe.place, below)]
    if values and not any(value is not None and value.requires_grad for value in values):
        return "frozen: nothing there requires a gradient"
    if any(need.startswith("state.") for need in probe.quantity.needs):
        return "the optimizer keeps no such state of it"
    return "no optimizer step with a gradient here yet"


def _first_due(schedule: Schedule, step: int) -> str:
    """When the first value can be expected; a user's own function is not asked ahead of time."""
    due = schedule.next_due(step) if isinstance(schedule, Foreseen) else None
    return "not due yet" if due is None else f"first value at step {due}"


def _middle(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None
