"""A parameter's gradient while it is accumulated, before clipping and unscaling.

``grad_raw`` is the running sum after an accumulation, ``grad_micro`` what one backward added to it.
"""

from __future__ import annotations

import time
import weakref
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.gradient_hooks import hook_accumulation
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["AccumulationHooks"]


class AccumulationListener(Protocol):
    """Protocol of the observer that decides in which step an accumulation falls.

    `Updates`, which imports this module, is one.
    """

    def accumulated(self, slot: Slot) -> tuple[FramePart, ReadingPlan] | None:
        """Return the frame of a gradient that is being accumulated, and its plan, if any.

        The step may have begun with this gradient.
        """


class AccumulationHooks:
    """Hooks on the parameters whose accumulations are due in the open step.

    Parameters
    ----------
    listener : AccumulationListener
        Held weakly.
    """

    def __init__(self, listener: AccumulationListener) -> None:
        self._listener = weakref.ref(listener)
        self._hooked: dict[Slot, _Hooked] = {}

    def set(self, wanted: dict[Slot, ReadingPlan]) -> None:
        """Read these from now on, and no others."""
        if not wanted and not self._hooked:
            return
        for slot in self._hooked.keys() - wanted.keys():
            self._hooked.pop(slot).remove()
        self.add(wanted)

    def add(self, wanted: dict[Slot, ReadingPlan]) -> None:
        """Read these too."""
        for slot, plan in wanted.items():
            parameter, old = slot.get(), self._hooked.get(slot)
            arrivals = plan.wants("grad_micro", "accumulated")
            if old is not None and old.is_on(parameter) and old.reads_arrivals >= arrivals:
                continue
            if old is not None:
                self._hooked.pop(slot).remove()
            if parameter is not None and parameter.requires_grad:
                is_swapped = old is not None and old.was_swapped(parameter)
                own = slot, arrivals, parameter, self._listener, is_swapped
                with uninterrupted:  # a hook whose handle is lost would stay
                    self._hooked[slot] = _Hooked(*own)

    def remove(self) -> None:
        self.set({})


class _Hooked:
    """Hooks of one parameter, and what has arrived of the gradient to be accumulated next."""

    def __init__(
        self,
        slot: Slot,
        arrivals: bool,
        parameter: Tensor,
        listener: weakref.ref[AccumulationListener],
        is_swapped: bool,
    ) -> None:
        self.reads_arrivals = arrivals
        self._slot, self._listener = slot, listener
        self._arrived: Tensor | None = None
        self._kept_s = 0.0
        """Seconds that keeping it has taken."""
        self._contents: int = parameter._cdata
        self._handle = hook_accumulation(parameter, self._accumulated, is_swapped)
        self._arrival: RemovableHandle | None = None
        if arrivals:
            self._arrival = parameter.register_hook(self._keep)

    def is_on(self, parameter: Tensor | None) -> bool:
        """Return whether the hook is still the parameter's: its contents may have been swapped."""
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None)
        is_listed = hooks is not None and hooks is self._handle.hooks_dict_ref()
        return is_listed and not self.was_swapped(parameter)

    def was_swapped(self, parameter: Tensor | None) -> bool:
        """Return whether the hook went with contents that the parameter no longer has."""
        return parameter is not None and parameter._cdata != self._contents

    def remove(self) -> None:
        self._handle.remove()
        if self._arrival is not None:
            self._arrival.remove()

    def _keep(self, gradient: Tensor) -> None:
        """Keep the gradient; ``torch.autograd.grad`` calls this, too, but accumulates nothing."""
        if torch.compiler.is_compiling() or is_traced():
            return
        begun = time.perf_counter()
        self._arrived = gradient.detach()
        self._kept_s = time.perf_counter() - begun + seconds_of_a_call("accumulated")

    def _accumulated(self, parameter: Tensor) -> None:
        if torch.compiler.is_compiling() or is_traced():
            return
        begun = time.perf_counter()
        (arrived, kept_s), self._arrived, self._kept_s = (self._arrived, self._kept_s), None, 0.0
        listener = self._listener()
        found = listener.accumulated(self._slot) if listener is not None else None
        if found is not None and parameter.grad is not None:
            given = {"grad_raw": parameter.grad, "grad_micro": arrived, "weight": parameter}
            frame, plan = found
            _read(begun, frame, plan, {**given, "module": self._slot.owner()})
            plan.spent("accumulated", kept_s)
            frame.seconds += kept_s


def _read(begun: float, frame: FramePart, plan: ReadingPlan, given: dict[str, Any]) -> None:
    frame.accumulations[plan.counter] += 1
    attempt_in_hook(begun, frame, plan, "accumulated", _measure, frame, plan, given)


def _measure(frame: FramePart, plan: ReadingPlan, given: dict[str, Any]) -> None:
    """Measure the running sum, whose last value is the step's; micro-batches are pooled."""
    for cell in plan.cells.get("grad_raw", ()):
        cell.put(frame, given["grad_raw"])
    for cell in plan.cells.get("grad_micro", ()):
        if given["grad_micro"] is not None:
            cell.add(frame, given["grad_micro"], None, 0)
    for function in plan.at("accumulated"):
        if "grad_raw" in function.probe.quantity.needs:
            function.put(frame, given)
        else:
            function.call(frame, given)
