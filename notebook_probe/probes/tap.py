"""A tap: where one module's inputs, outputs and output gradients are read.

Values are reduced at once and no tensor is kept: a later in-place operation would change it, and
holding it would pin memory. Output gradients come from a tensor hook set in the forward hook; full
backward hooks raise behind in-place modules and change bits.
"""

from __future__ import annotations

import time
import weakref
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.parameters import weight_of
from notebook_probe.probes.phase import Phase, quiet
from notebook_probe.probes.plan import PlacePlan
from notebook_probe.probes.values import tensors_of
from notebook_probe.quantities.measure import measure

__all__ = ["CallListener", "Inert", "Tap"]


class CallListener(Protocol):
    """Who decides in which step and phase a module's call falls."""

    def called(self, module: nn.Module) -> tuple[Phase | None, StepFrame | None]:
        """The phase and the open step of a call of ``module`` on this thread."""


class Inert:
    """A hook that outlives its owner: copies, pickles and forks of a model must stay silent."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Hook:
    """Calls a tap while it lives; holds it weakly, and copies or pickles as an inert one."""

    __slots__ = ("_tap", "_verb")

    def __init__(self, tap: Tap, verb: str) -> None:
        self._tap = weakref.ref(tap)
        self._verb = verb

    def __call__(self, module: nn.Module, *call: Any) -> None:
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        tap = self._tap()
        if tap is not None and tap.plan is not None:
            tap.read(self._verb, module, call)

    def __deepcopy__(self, memo: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()


class Tap:
    """The readings of one module; ``plan`` says what is due in the open step, None when nothing.

    Parameters
    ----------
    place : str
        Path of the module.
    listener : CallListener
        Asked at each call for its phase and step.
    """

    def __init__(self, place: str, listener: CallListener) -> None:
        self.place = place
        self.plan: PlacePlan | None = PlacePlan()  # the first call may have to open a step
        self.n_calls = 0
        """Training calls seen while something was due here."""
        self._listener = weakref.ref(listener)
        self._handles: dict[str, RemovableHandle] = {}
        self._inputs: list[Tensor] = []

    def hook(self, module: nn.Module, reads_input: bool) -> None:
        """Set the hooks this place needs and take off the other."""
        if "after" not in self._handles:
            self._handles["after"] = module.register_forward_hook(_Hook(self, "after"))
        if reads_input and "before" not in self._handles:
            self._handles["before"] = module.register_forward_pre_hook(
                _Hook(self, "before"), with_kwargs=True
            )
        if not reads_input and "before" in self._handles:
            self._handles.pop("before").remove()

    def remove(self) -> None:
        """Take every hook off the module."""
        self.plan = None
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()

    def read(self, verb: str, module: nn.Module, call: tuple[Any, ...]) -> None:
        """One call of the module, before or after its forward."""
        listener = self._listener()
        if listener is None or quiet():
            return
        begun = time.perf_counter()
        phase, frame = listener.called(module)
        plan = self.plan
        if frame is None or plan is None or phase is None or phase == "evaluation":
            return
        self.n_calls += verb == "after" and phase == "training"
        try:
            if verb == "after":
                self._after(module, tensors_of(call[-1]), plan, frame, phase)
            elif phase == "training":
                self._before(module, tensors_of(call), plan, frame)
        except Exception as error:  # whatever a tensor is, training goes on
            frame.fail(self.place, error)
        frame.seconds += time.perf_counter() - begun

    def _before(
        self, module: nn.Module, tensors: list[Tensor], plan: PlacePlan, frame: StepFrame
    ) -> None:
        self._inputs = []  # of a call that raised
        self._summarise("input", tensors, plan, frame)
        for probe in plan.probes.get("forward", ()):
            first = _first_float(tensors)
            if first is None or "input" not in probe.quantity.needs:
                continue
            if "output" not in probe.quantity.needs:
                frame.call(probe, input=first, weight=weight_of(module))
            elif not self._inputs:
                self._inputs = [first.detach().clone()]  # the module may overwrite it

    def _after(
        self,
        module: nn.Module,
        tensors: list[Tensor],
        plan: PlacePlan,
        frame: StepFrame,
        phase: Phase,
    ) -> None:
        inputs, self._inputs = self._inputs, []
        if phase == "training":
            self._summarise("output", tensors, plan, frame)
            for probe in plan.probes.get("forward", ()):
                first = _first_float(tensors)
                if first is not None and "output" in probe.quantity.needs:
                    kept = inputs[0] if inputs else None
                    frame.call(probe, output=first, input=kept, weight=weight_of(module))
        if "grad_output" in plan.parts or "backward" in plan.probes:
            for tensor in tensors:
                if tensor.requires_grad:
                    tensor.register_hook(_GradientHook(self.place, plan, frame, module))

    def _summarise(
        self, name: str, tensors: list[Tensor], plan: PlacePlan, frame: StepFrame
    ) -> None:
        parts = plan.parts.get(name)
        if parts is not None:
            for tensor in tensors:
                frame.add_stat(self.place, name, measure(tensor, parts))


class _GradientHook:
    """Reads the gradient of one output; ends with the graph it hangs on."""

    __slots__ = ("_frame", "_module", "_place", "_plan")

    def __init__(self, place: str, plan: PlacePlan, frame: StepFrame, module: nn.Module) -> None:
        self._place, self._plan, self._frame = place, plan, frame
        self._module = weakref.ref(module)

    def __call__(self, gradient: Tensor | None) -> None:
        frame, module = self._frame, self._module()
        if torch.compiler.is_compiling():  # as above
            return
        if gradient is None or module is None or frame.closed or quiet():
            return
        begun = time.perf_counter()
        try:
            parts = self._plan.parts.get("grad_output")
            if parts is not None:
                frame.add_stat(self._place, "grad_output", measure(gradient, parts))
            for probe in self._plan.probes.get("backward", ()):
                frame.call(probe, grad_output=gradient, weight=weight_of(module))
        except Exception as error:  # as above
            frame.fail(self._place, error)
        frame.seconds += time.perf_counter() - begun


def _first_float(tensors: list[Tensor]) -> Tensor | None:
    return next((t for t in tensors if t.is_floating_point()), tensors[0] if tensors else None)
