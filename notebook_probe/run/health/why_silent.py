"""Reasons why a probe has no value, as text."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Collection

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.inside.plans import can_read
from notebook_probe.probes.inside.traced import can_trace
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.plan import is_of_calls
from notebook_probe.probes.step.compiled import has_compiled, is_compiled
from notebook_probe.probes.step.phase import was_captured
from notebook_probe.probes.step.probe import WAITING, Probe
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.reduce.features import given_by, is_of_all
from notebook_probe.run.health.status import (
    AMBIGUOUS,
    COMPILED,
    COMPILED_NOTES,
    NO_VARIANT,
    NOT_INSIDE,
    OLD_TORCH,
    REFUSED,
    ROOT_INSIDE,
)
from notebook_probe.schedules import Schedule, can_foresee

__all__ = [
    "GONE",
    "NOT_CALLED",
    "OF_OTHERS",
    "PERHAPS_UNUSED",
    "UNCALLED",
    "WhySilent",
    "why_waiting",
]

LOOK_AGAIN_S = 5.0
LATE_STEPS = 3
"""Silent due steps after which something seems wrong with a probe that once had values."""
NOT_CALLED = "not called by any training forward yet"
IN_EVAL = f"{NOT_CALLED}, as the model is in evaluation mode: model.train() before it trains"
IN_EVAL_ALONE = "called, but it is in evaluation mode itself, as with frozen running statistics"
NOT_IN_GRAPHS = (
    f"{NOT_CALLED} that a compiled graph shows: graphs show nothing of branches, of loops and of "
    "calls under torch.func"
)
PERHAPS_COMPILED = f"{NOT_CALLED}; should its calls be compiled, run.on_compiled = 'eager'"
CAPTURED = "called while a CUDA graph was captured: its replays run no hooks"
HOOKS_GONE = "other code removed our hooks from this module"
GONE = "the model no longer exists"
OF_OTHERS = (
    "the optimizers that step hold none of this model's parameters; one that was made before they "
    "were replaced, as by load_state_dict(assign=True), holds the old ones"
)
PERHAPS_UNUSED = frozenset({NOT_CALLED, NOT_IN_GRAPHS})
"""Notes of modules that no call was seen of, whose weights may be used without one."""
UNCALLED = COMPILED_NOTES | PERHAPS_UNUSED | {IN_EVAL, PERHAPS_COMPILED, HOOKS_GONE}
"""Notes of a probe that should have had a value by now; of others, there may be none to have."""


class WhySilent:
    """Reason why a probe of one run is silent; may be called from any thread.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    observer : Observer
    logged : collection of str
        Names under which the loop has logged anything so far.
    """

    def __init__(self, model: nn.Module, observer: Observer, logged: Collection[str]) -> None:
        self._model = weakref.ref(model)
        self._observer, self._logged = observer, logged
        self._compiled = False
        self._looked = -math.inf

    def note(self, probe: Probe, step: int, model_map: ModelMap) -> str:
        """Return why a probe that was due has no value; empty if it has one."""
        if probe.disabled:
            n = max(probe.errors_in_a_row, probe.values_failed)
            return f"disabled after {n} errors in a row" if n > 1 else "disabled at once"
        if is_of_calls(probe) and self._observer.taps.was_cleared(probe.place):
            return HOOKS_GONE
        if probe.n_values and self._fires(probe, step):
            return ""
        if probe.n_errors and not probe.n_values:
            return ""
        return self._why_silent(probe, model_map)

    def _fires(self, probe: Probe, step: int) -> bool:
        """Return whether a probe with values still gets them."""
        if probe.every > 1:
            return probe.last_step >= self._observer.training.measured_before(probe)
        return _fires(probe, step)

    def _why_silent(self, probe: Probe, model_map: ModelMap) -> str:
        if probe.gap:
            return probe.gap
        if self._model() is None:
            return GONE
        if missing := _not_given(probe.quantity, self._observer.batch_names, self._logged):
            return missing
        slots = model_map.slots(probe.place)
        if probe.place not in model_map.by_every_path and all(slot.get() is None for slot in slots):
            return "the model no longer has it"
        if is_of_calls(probe):
            return self._why_not_called(probe, model_map)
        return _why_no_gradient(probe, model_map)

    def _why_not_called(self, probe: Probe, model_map: ModelMap) -> str:
        """Return why a probe that needs calls has no value."""
        if probe.phase == "eval":
            return "not called by any evaluation yet"
        if was_captured(self._model()):
            return CAPTURED
        if self._observer.in_graphs.has_read(probe.place) and not can_read(probe):
            return NOT_INSIDE
        last = self._observer.taps.last_call(probe.place)
        if last <= probe.last_step and probe.n_values:
            return f"not called since step {last}"
        if last < probe.attached_step:
            return self._why_never_called(probe)
        taps, open_step = self._observer.taps, self._observer.clock.step
        if taps.last_call(probe.place, before=open_step) < probe.attached_step:
            return self._why_open(last)  # its values come when the step is over
        needs = probe.quantity.needs
        if "grad_input" in needs:
            return "called, but no gradient passed through it to an input"
        if "grad_output" in needs and not taps.needs_gradient(probe.place):
            return "called, but its output requires no gradient"
        if "grad_output" in needs:
            return "called, but no gradient reached its output"
        if probe.quantity.is_of_batch:
            return "called before run.batch() handed over what it needs; do so before the forward"
        module = model_map.by_every_path.get(probe.place)
        if module is not None and not module.training:
            return IN_EVAL_ALONE
        return "called, but with no tensor that can be read"

    def _why_open(self, step: int) -> str:
        if self._observer.clock.has_stepped:
            return f"called in step {step}, which is still open"
        if self._observer.updates.n_elsewhere:
            return f"called in step {step}, which has not ended: {OF_OTHERS}"
        return (
            f"called in step {step}, which no optimizer step has ended yet; in a loop without an "
            "optimizer call run.step() after each backward"
        )

    def _why_never_called(self, probe: Probe) -> str:
        observer = self._observer
        if observer.eager.wanted:
            return NOT_CALLED
        in_graphs = observer.in_graphs
        if in_graphs.wanted and not can_read(probe) and in_graphs.last_step >= 0:
            return NOT_INSIDE
        if in_graphs.wanted and in_graphs.n_ambiguous:
            return AMBIGUOUS
        if in_graphs.wanted and in_graphs.refusal:
            return REFUSED
        if in_graphs.last_step >= 0 or self._is_compiled():
            return self._why_not_inside(probe)
        model = self._model()
        if model is not None and not model.training:
            return IN_EVAL
        # A compiled function around the model leaves no trace in it either.
        may_be = has_compiled() and (not observer.was_rooted or observer.taps.may_be_compiled)
        return PERHAPS_COMPILED if may_be else NOT_CALLED

    def _why_not_inside(self, probe: Probe) -> str:
        """Return why a compiled model's graphs do not measure a quantity."""
        in_graphs = self._observer.in_graphs
        if not can_trace():
            return OLD_TORCH
        if in_graphs.wanted and not can_read(probe):
            return NOT_INSIDE
        if in_graphs.wanted and in_graphs.last_step >= 0:
            return NOT_IN_GRAPHS if probe.place else ROOT_INSIDE
        return NO_VARIANT if in_graphs.wanted and in_graphs.is_full else COMPILED

    def _is_compiled(self) -> bool:
        model, now = self._model(), time.monotonic()
        late = now - self._looked > LOOK_AGAIN_S  # looking means to go through every object
        if not self._compiled and late and has_compiled() and model is not None:
            self._compiled, self._looked = is_compiled(model), now
        return self._compiled


def why_waiting(probe: Probe, step: int) -> str:
    """Return what a probe waits for before its first due step; empty if it was due."""
    if probe.disabled or probe.n_errors or probe.n_values:
        return ""
    if probe.attached_step == WAITING:
        return "measured from the next step on"
    return "" if probe.was_due else _first_due(probe.armed, max(step, probe.attached_step))


def _fires(probe: Probe, step: int) -> bool:
    """Return whether it gets values according to its schedule."""
    schedule = probe.armed
    if probe.phase == "eval" or probe.quantity.is_of_step or not can_foresee(schedule):
        return True  # the loop evaluates, and logs, when it likes
    due = schedule.next_due(probe.last_step + 1)
    for _ in range(LATE_STEPS - 1):
        due = schedule.next_due(due + 1) if due is not None else None
    return due is None or due >= step - 1


def _why_no_gradient(probe: Probe, model_map: ModelMap) -> str:
    below = any(map(is_of_all, probe.quantity.features))
    values = [slot.get() for slot in model_map.slots(probe.place, below)]
    if values and not any(value is not None and value.requires_grad for value in values):
        return "frozen: nothing there requires a gradient"
    families = (need.partition(".")[0] for need in probe.quantity.needs)
    absent = (_ABSENT[family] for family in families if family in _ABSENT)
    return next(absent, "no optimizer step with a gradient here yet")


_ABSENT = {
    "state": "the optimizer keeps no such state of it",
    "grad_micro": "no step was made of two backward passes or more: it compares micro-batches",
    "group": "no optimizer that has stepped has such an option for it",
}
"""Missing element for each family of features, if the quantity has no value."""


def _first_due(schedule: Schedule, step: int) -> str:
    """Return when the first value is expected; a user's function is never called in advance."""
    due = schedule.next_due(step) if can_foresee(schedule) else None
    return "not due yet" if due is None else f"first value at step {due}"


def _not_given(quantity: Quantity, given: Collection[str], logged: Collection[str]) -> str:
    """Return what the loop has not passed or logged yet; empty if nothing is missing.

    Parameters
    ----------
    quantity : Quantity
        Without a value so far.
    given, logged : collection of str
        Names under which anything was handed over, and logged.
    """
    for need in quantity.needs:
        family, _, key = need.partition(".")
        if family == "batch" and key not in given:
            so_far = f"; so far it has {', '.join(sorted(given))}" if given else ""
            return f"the loop has not handed over {key}: {given_by(need)}{so_far}"
        if family == "logged" and key in logged:
            return f"{key} was not logged often enough yet"
        if family == "logged":
            return f"nothing is logged that it needs: {given_by(need)}"
        if need == "scaler":
            return "no gradient scaler has called an optimizer's step yet"
        if need == "wait_seconds":
            return "no batch has come through run.batches(loader) yet"
        if need == "device_watts":
            return "known of a CUDA device only, with the package nvidia-ml-py"
    if quantity.moment == "batch":
        needs = ", ".join(need.partition(".")[2] for need in quantity.needs if "batch." in need)
        return f"{needs} have not been there together in a due step yet"
    return "no due step has ended yet" if quantity.is_of_step else ""
