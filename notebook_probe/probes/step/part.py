"""Part of a step: the readings of one call of the model, until it is known whether they count.

A call that raised, or whose gradients were cleared, is no part of the training. `StepFrame` pools
the parts that count, and is itself the part of what belongs to no call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.probes.step.gradient_hooks import await_return, hook_in_graph, hook_leaf
from notebook_probe.probes.step.passes import BackwardKind, BackwardPass, BackwardPasses, Together
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.numbers import COMBINE
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["Collected", "FramePart", "PartPlan"]

_running_pass = torch._C._current_graph_task_id

NO_PASS = -2
"""Number that torch gives neither to a backward nor to being outside of any."""


@dataclass(slots=True)
class Collected:
    """Values that a model's code collects: of one name at one place in one step."""

    combine: Combine
    values: list[Number] = field(default_factory=list)

    def copy(self) -> Collected:
        """Return a copy of the present state."""
        return Collected(self.combine, [*self.values])

    @property
    def value(self) -> float:
        """One number; once the values are on the host."""
        return COMBINE[self.combine]([float(value) for value in self.values])


class Removable(Protocol):
    """Protocol of what was put up for a step."""

    def remove(self) -> None:
        """Take it down; again, if it has been taken down before."""


class PartPlan(Protocol):
    """Protocol of the readings of a step, for its parts.

    `Readings`, which imports this module, is one.
    """

    @property
    def of_gradients(self) -> frozenset[int]:
        """Indices of the states of gradients that arrive at calls."""

    def pool(self, frame: FramePart, part: FramePart, follows: bool) -> None:
        """Pool the readings of calls in a part of the step with those of the frame.

        The part is of later calls if it ``follows``, else of the same.
        """


class FramePart:
    """Readings of one call of the model, or of passes of which it is not known whether they count.

    Parameters
    ----------
    step : int
    plan : PartPlan, optional
    n_states, n_counts : int
        Same as in `StepFrame`.
    passes : BackwardPasses
        Backward passes of the step.
    """

    # What most parts have nothing of is of the class until it is set: a frame is made every step.
    closed = False
    has_failures = has_copies = False  # in place of states, to be measured
    on_device = False
    """True if something measured waits on an accelerator."""
    awaits_gradient = False
    """True if a tensor of it has a hook for a backward pass."""
    has_returned = counts = False
    """The call was not broken off; it counts in any case."""
    seconds = 0.0
    """Time spent in our own code during this step."""
    planned = 0.0
    """Seconds of these that were spent once, to plan what is read together."""
    _pass, _is_here = NO_PASS, False
    _elsewhere: FramePart | None = None
    _own: Together | None = None
    # Replaced, never changed.
    _came: tuple[BackwardPass, ...] = ()
    _asides: Mapping[Together, FramePart] = MappingProxyType({})

    def __init__(
        self,
        step: int,
        plan: PartPlan | None,
        n_states: int,
        n_counts: int,
        passes: BackwardPasses,
    ) -> None:
        self.step = step
        self.plan = plan
        self.heard = time.perf_counter()
        """Time of the last call of a hook for it."""
        self.collected: dict[tuple[str, str], Collected] = {}
        """Values that the model's code collected, by place and name."""
        self.batch: dict[str, Tensor] = {}
        """Tensors of the present batch that the loop has handed over."""
        self._handles: list[Removable] = []
        self.states: list[Any] = [None] * n_states
        self.calls: list[int] = [0] * n_counts
        self.accumulations: list[int] = [0] * n_counts
        """Number of passes that added to each parameter's gradient."""
        self.passes = passes

    def collect(self, place: str, name: str, value: Number, combine: Combine) -> None:
        """Keep a value that the model collected."""
        pooled = self.collected.setdefault((place, name), Collected(combine))
        pooled.values.append(value)
        if isinstance(value, Tensor):
            self.on_device = True

    def hook(self, tensor: Tensor, read: Callable[[Tensor], None]) -> None:
        """Put a hook on a gradient; a leaf outlives its graph, so its hook ends with the step."""
        self.awaits_gradient = True
        if tensor.is_leaf:
            self.keep(hook_leaf(tensor, read))
        else:
            hook_in_graph(tensor, read)

    def keep(self, handle: Removable) -> None:
        """Take something down when the step ends, should it still be up."""
        self._handles.append(handle)

    def receiver(self) -> FramePart | None:
        """Return the frame for the arriving gradient; None if it is not the training's.

        Gradients of the first passes that accumulate are kept here. Gradients of other passes, and
        of `torch.autograd.grad`, are kept separately until it is known which of them count.
        """
        now = _running_pass()
        if now != self._pass:
            self._receive(self.passes.running())
            self._pass = now
        return self if self._is_here else self._elsewhere

    def hear(self) -> None:
        """Note that a pass has come; nothing of it is read here."""
        if not self.closed:
            self.receiver()

    def _receive(self, one: BackwardPass) -> None:
        self._is_here, self._elsewhere = False, None
        if one not in self._came:
            self._came = (*self._came, one)
            if one.kind is BackwardKind.DIFFERENTIATED:
                await_return(self.hear)
        if one.kind is BackwardKind.DIFFERENTIATED:
            return
        if self._own is None and one.kind is BackwardKind.ACCUMULATED:
            self._own = one.together
        if one.together is self._own:
            self._is_here = True
            return
        if one.together not in self._asides:
            self._asides = {**self._asides, one.together: self._part()}
        self._elsewhere = self._asides[one.together]

    def _part(self) -> FramePart:
        """Return another part of the same step."""
        part = FramePart(self.step, self.plan, len(self.states), len(self.calls), self.passes)
        part.batch = self.batch
        return part

    @property
    def has_gradient(self) -> bool:
        """True for a part that a training backward has reached and completed."""
        return any(map(self.passes.is_training, self._came))

    @property
    def is_discarded(self) -> bool:
        """True for a part if every backward that has reached it was in vain."""
        return bool(self._came) and all(map(self.passes.is_discarded, self._came))

    def settle_passes(self) -> None:
        """Keep the gradients of the passes that count."""
        asides, self._asides = self._asides, MappingProxyType({})
        for aside in asides.values():
            self.add_costs(aside)
        if self.plan is None or not (asides or self._own):
            return
        if self._own is not None and not self.passes.counts(self._own):
            gone = self.plan.of_gradients
            self.states = [None if i in gone else s for i, s in enumerate(self.states)]
        for together, aside in asides.items():
            if self.passes.counts(together):
                self.states = [*self.states]
                self.plan.pool(self, aside, follows=False)

    def add_costs(self, part: FramePart) -> None:
        """Add the costs of a part, whether it counts or not."""
        self.seconds += part.seconds
        self.has_failures |= part.has_failures
        self.on_device |= part.on_device

    def end(self) -> None:
        self.closed = True
        self.batch = {}
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def blame(self, probe: Probe, error: Exception) -> None:
        """Count a failed reading against the probe; a tensor without values is only a gap."""
        if isinstance(error, UnreadableError):
            probe.gap = str(error)
        else:
            probe.failed(error, self.step)
            self.has_failures = True

    def blame_all(self, probes: Iterable[Probe], error: Exception) -> None:
        """Count a failed reading against all probes that share it."""
        for probe in probes:
            self.blame(probe, error)
