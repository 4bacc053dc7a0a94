"""A tap: where one module's calls are read, in training and in evaluation.

Values are reduced at once and no tensor is kept: a later in-place operation would change it, and
holding it would pin memory. Only a quantity of input and output together has its input copied
until the call returns.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.model.reparametrized import weight_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.calls.attention_mode import AttentionMode, read_attention
from notebook_probe.probes.calls.input_gradients import hook_entry
from notebook_probe.probes.calls.output_gradients import (
    OutputGradientReader,
    hook_output,
    hook_outputs,
)
from notebook_probe.probes.calls.tap_hooks import (
    AfterCall,
    AfterRootCall,
    BeforeCall,
    BeforeRootCall,
)
from notebook_probe.probes.inside.traced import GraphTap
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.entry import Entry, mark_entry
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.containers import activations, stranger_in, tensors_of
from notebook_probe.probes.step.hooks import Switch
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import Phase, is_traced

__all__ = ["CallListener", "Tap"]

NO_CALL = -1
"""Number of a call that need not be distinguished from others, or is a recomputation."""

FRAMES_TO_TORCH = 2
"""Number of frames from a tap's method to the one in which torch runs both hooks of one call."""


class CallListener(Protocol):
    """Protocol of the observer that decides in which step and phase a module's call falls."""

    def called(self, module: nn.Module) -> tuple[Phase | None, FramePart | None]:
        """Return the phase and the open frame of a call of ``module`` on this thread."""


@dataclass(slots=True)
class _Begun:
    """Record of a call until it returns."""

    frame: FramePart
    number: int
    """Number among the frame's calls of this module, in the order in which they begin."""
    input: Tensor | None = None
    entry: Entry | None = None
    attention: AttentionMode | None = None


class Tap:
    """The readings of one module's calls.

    Parameters
    ----------
    place : str
        Path of the module.
    module : nn.Module
        Held weakly.
    listener : CallListener
        Asked at each call for its phase and frame.
    in_graph : GraphTap
        Readings of the module's calls in a compiled graph.

    Attributes
    ----------
    plans : dict
        Phase -> what is due in it now.
    last_step : int
        Step of the last training call seen while something was due here; -1 before any.
    step_before : int
        The last such step before it.
    needs_gradient : bool
        Some output of the last call whose gradient was due requires one.
    """

    __slots__ = (
        "__weakref__",
        "_after",
        "_before",
        "_begun",
        "_listener",
        "_step",
        "last_step",
        "module",
        "needs_gradient",
        "place",
        "plans",
        "step_before",
    )

    def __init__(
        self, place: str, module: nn.Module, listener: CallListener, in_graph: GraphTap
    ) -> None:
        self.place = place
        self.plans: dict[str, ReadingPlan] = {}
        self.last_step = self.step_before = -1
        self.needs_gradient = True
        self.module = weakref.ref(module)
        self._listener = weakref.ref(listener)
        self._begun: dict[int, _Begun] = {}  # by torch's frame: a module may call itself
        self._step = -1
        before, after = (BeforeCall, AfterCall) if place else (BeforeRootCall, AfterRootCall)
        self._before = Switch(
            before(self, in_graph), module, module._forward_pre_hooks, _register_before
        )
        self._after = Switch(
            after(self, in_graph), module, module._forward_hooks, nn.Module.register_forward_hook
        )

    def arm(self, plans: dict[str, ReadingPlan], watching: bool, stays: bool) -> None:
        """Read what these plans say; with ``watching`` also see calls that may begin a step.

        With ``stays`` hooks that have nothing to do are left where they are.
        """
        self.plans = plans
        self._before.set(watching or any(plan.reads_entry for plan in plans.values()))
        self._after.set(stays or bool(plans))

    def called_in_graph(self, step: int, needs_gradient: bool) -> None:
        """Note that a graph has read calls in a step."""
        self.needs_gradient = needs_gradient
        if step != self.last_step:
            self.step_before, self.last_step = self.last_step, step

    def remove(self) -> None:
        """Take every hook off the module."""
        self.plans = {}
        self._before.remove()
        self._after.remove()

    @property
    def was_cleared(self) -> bool:
        """True if other code removed a hook from the module."""
        return self._before.was_cleared or self._after.was_cleared

    def before(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Note that a call begins."""
        begun = time.perf_counter()
        listener = self._listener()
        if listener is None or self.module() is not module or is_traced():  # or a copy
            return
        phase, frame = listener.called(module)
        recomputed = phase == "recomputation"
        plan = self.plans.get("training" if recomputed else phase or "")
        if frame is None or plan is None:
            return
        if plan.has_only_cells and not recomputed and not kwargs and len(args) == 1:
            only = args[0]
            if isinstance(only, Tensor):
                attempt_in_hook(
                    begun, frame, plan, "forward", self._read_input, module, only, plan, frame
                )
                return
        given = [*args, kwargs] if kwargs else args
        key = id(sys._getframe(FRAMES_TO_TORCH))
        reading = module, given, plan, frame, recomputed, key
        attempt_in_hook(begun, frame, plan, "forward", self._read_inputs, *reading)

    def _forget_interrupted(self, frame: FramePart, key: int) -> None:
        """Drop the entries of calls that raised."""
        if frame.step != self._step:
            self._begun, self._step = {}, frame.step
        self._begun.pop(key, None)

    def _n_begun(self, frame: FramePart) -> int:
        """Count the frame's calls around this one; those that raised may have left others."""
        return sum(begun.frame is frame for begun in self._begun.values()) if self._begun else 0

    def after(self, module: nn.Module, output: Any) -> None:
        """Read the output of a call."""
        begun = time.perf_counter()
        listener = self._listener()
        if listener is None or self.module() is not module or is_traced():  # or a copy
            return
        phase, frame = listener.called(module)
        recomputed = phase == "recomputation"
        plan = self.plans.get("training" if recomputed else phase or "")
        if frame is None or plan is None:
            return
        if plan.has_only_cells and not recomputed and isinstance(output, Tensor):
            attempt_in_hook(
                begun, frame, plan, "forward", self._read_output, module, output, plan, frame
            )
            return
        key = id(sys._getframe(FRAMES_TO_TORCH))
        reading = module, output, plan, frame, recomputed, key
        attempt_in_hook(begun, frame, plan, "forward", self._read_outputs, *reading)

    def _read_input(
        self, module: nn.Module, given: Tensor, plan: ReadingPlan, frame: FramePart
    ) -> None:
        """Read the one tensor that most calls are given; `_read_inputs` reads anything."""
        for cell in plan.inputs:
            cell.add(frame, given, module, NO_CALL)

    def _read_inputs(
        self,
        module: nn.Module,
        given: Any,
        plan: ReadingPlan,
        frame: FramePart,
        recomputed: bool,
        key: int,
    ) -> None:
        tensors = tensors_of(given)
        if len(tensors) > 1:
            tensors = activations(tensors)
        self._forget_interrupted(frame, key)
        call = NO_CALL if recomputed else frame.calls[plan.counter] + self._n_begun(frame)
        begun = _Begun(frame, call, entry=mark_entry(tensors) if plan.reads_share else None)
        is_begun = plan.is_numbered or begun.entry is not None
        if not recomputed:
            first = _first(tensors)
            for cell in plan.inputs:
                for tensor in first if cell.first_only else tensors:
                    cell.add(frame, tensor, module, call)
            for function in plan.at("forward"):
                needs = function.probe.quantity.needs
                if not first or "input" not in needs:
                    continue
                if "output" in needs:
                    begun.input = first[0].detach().clone()  # the module may overwrite it
                else:
                    function.call(frame, {"input": first[0], **_beside(module)}, call)
            if plan.reads_attention:
                begun.attention = read_attention(module, plan, frame, call)
        if is_begun or begun.input is not None or begun.attention is not None:
            self._begun[key] = begun

    def _read_output(
        self, module: nn.Module, output: Tensor, plan: ReadingPlan, frame: FramePart
    ) -> None:
        """Read the one tensor that most calls return, as `_read_outputs`, which reads anything."""
        frame.calls[plan.counter] += 1
        if frame.step != self.last_step:
            self.step_before, self.last_step = self.last_step, frame.step
        for cell in plan.outputs:
            cell.add(frame, output, module, NO_CALL)
        if plan.output_gradients:
            self.needs_gradient = output.requires_grad
            if output.requires_grad:
                reader = OutputGradientReader(plan, frame, module, NO_CALL, is_first=True)
                hook_output(output, frame, reader)

    def _read_outputs(
        self,
        module: nn.Module,
        output: Any,
        plan: ReadingPlan,
        frame: FramePart,
        recomputed: bool,
        key: int,
    ) -> None:
        tensors = tensors_of(output)
        if len(tensors) > 1:
            tensors = activations(tensors)
        if not tensors:
            _explain_gap(output, plan)
        begun = self._begun.pop(key, None)
        call = NO_CALL if begun is None else begun.number
        if begun is not None and begun.attention is not None:
            begun.attention.end()
        if not recomputed:
            frame.calls[plan.counter] += 1
            if frame.step != self.last_step:
                self.step_before, self.last_step = self.last_step, frame.step
            self._read_values(module, tensors, plan, frame, call, begun)
        if plan.output_gradients or plan.functions.get("backward"):
            self.needs_gradient = hook_outputs(tensors, plan, frame, module, call)
        if begun is not None and begun.entry is not None:
            try:
                hook_entry(begun.entry, tensors, plan, frame, module, call)
            except Exception as error:  # the outputs have been read; training must continue
                frame.blame_all(plan.of("entry"), error)

    def _read_values(
        self,
        module: nn.Module,
        tensors: list[Tensor],
        plan: ReadingPlan,
        frame: FramePart,
        call: int,
        begun: _Begun | None,
    ) -> None:
        for cell in plan.outputs:
            for tensor in _first(tensors) if cell.first_only else tensors:
                cell.add(frame, tensor, module, call)
        for function in plan.at("forward"):
            if "output" in function.probe.quantity.needs:
                first = _first(tensors)
                given = {
                    "output": first[0] if first else None,
                    "input": begun.input if begun is not None else None,
                    **_beside(module),
                }
                function.call(frame, given, call)


def _beside(module: nn.Module) -> dict[str, Any]:
    """Return the features that exist at any moment."""
    return {"weight": weight_of(module), "module": unwrapped(module)}


def _register_before(module: nn.Module, hook: Callable[..., Any]) -> RemovableHandle:
    return module.register_forward_pre_hook(hook, with_kwargs=True)


def _explain_gap(output: Any, plan: ReadingPlan) -> None:
    """Explain why nothing could be read of what was returned."""
    stranger = stranger_in(output)
    if stranger:
        for probe in plan.probes:
            probe.gap = f"called, but returns {stranger}, in which no tensors can be found"


def _first(tensors: list[Tensor]) -> list[Tensor]:
    """Return the first floating-point tensor, else the first one."""
    return [t for t in tensors if t.is_floating_point()][:1] or tensors[:1]
