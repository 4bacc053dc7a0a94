"""The optimizer's side of a step: what is read before it, at its gradients, and after it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.readings import DueFrame
from notebook_probe.probes.loss import backwards
from notebook_probe.probes.loss.step_loss import StepLoss
from notebook_probe.probes.loss.uncleared import UnclearedGradients
from notebook_probe.probes.parameters.first_gradients import FirstGradients
from notebook_probe.probes.parameters.ownership import Ownership
from notebook_probe.probes.parameters.scalers import read_step
from notebook_probe.probes.parameters.stepped import stepped_by
from notebook_probe.probes.reading.options import owned_by
from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.optimizer_steps import StepClock, lap, listen
from notebook_probe.probes.step.sink import StepGate

__all__ = ["StepOwner", "Updates"]

NO_BACKWARD = -1
"""What torch gives for the current backward outside of any."""

DISCARDED = "discarded_backwards"
"""Passes of the step whose gradients were cleared before its update."""

INNER = "inner_backwards"
"""Passes of the step that were not the training's: of a penalty, of a product with the Hessian."""

SKIPPED = "skipped"
"""1 where a gradient scaler found infinities and the optimizer applied nothing, else 0."""


class StepOwner(Protocol):
    """Who opens and closes the steps of a model."""

    clock: StepClock
    gate: StepGate

    @property
    def ignores_updates(self) -> bool: ...
    @property
    def frame(self) -> DueFrame | None: ...
    def open_frame(self) -> DueFrame: ...
    def boundary(self) -> None: ...
    def prepare(self) -> None: ...
    def announce(self, place: str, name: str) -> None: ...


class Updates:
    """Hears of every optimizer's steps, and reads what its model's parameters go through.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    steps : StepOwner
        Held weakly.
    """

    def __init__(self, model: nn.Module, steps: StepOwner) -> None:
        self._steps = weakref.ref(steps)
        self.loss = StepLoss(model, self._ignores, self._spend)
        self.first_gradients, self.uncleared = FirstGradients(), UnclearedGradients()
        self._ownership = Ownership(model)
        self._weights_read = False
        self._stepped_in = NO_BACKWARD
        self.n_elsewhere = 0
        """Steps of optimizers that hold no parameter of this model."""
        self._met: weakref.WeakKeyDictionary[Optimizer, None] = weakref.WeakKeyDictionary()

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that step this model, in the order in which they were met."""
        return [*self._met]

    def listen(self) -> list[Callable[[], None]]:
        """Hear of updates and backward passes from now on; returns what ends it."""
        passes = (backwards.listen(one) for one in (self.loss, self.uncleared))
        return [listen(self), *passes]

    def meet(self, optimizer: Optimizer) -> None:
        """It steps this model, or what it wraps does."""
        if optimizer in self._met:
            return
        new = [one for one in stepped_by(optimizer) if one not in self._met]
        if new:
            met = weakref.WeakKeyDictionary(self._met)
            met.update(dict.fromkeys(new))
            self._met = met  # replaced, never changed: other threads walk it

    def begin(self) -> None:
        """A step was opened: nothing of it has been read."""
        self._weights_read = False

    def step_begins(self, optimizer: Optimizer) -> None:
        """The Listener's part: weights, before-copies."""
        steps = self._of(optimizer)
        if steps is None:
            self.n_elsewhere += not self._ignores()
            return
        self.meet(optimizer)
        if steps.clock.stepped_before(optimizer):
            steps.boundary()
            lap()  # which has counted itself
        frame = steps.open_frame()
        if frame.readings.reader.reads_before:
            self.read_before(steps.clock, frame, optimizer)
        steps.clock.enter(optimizer)
        frame.seconds += lap()

    def read_before(self, clock: StepClock, frame: DueFrame, optimizer: Optimizer) -> None:
        """Read the weights, once per step, and copy those the optimizer is about to change."""
        if not frame.readings.reader.reads_before:
            return
        owned = owned_by(optimizer)
        if not self._weights_read:
            weights = None
        elif clock.was_interrupted(optimizer):  # a step that raised may have changed some
            weights = owned
        else:
            weights = set()
        self._weights_read = True
        frame.readings.reader.read_before(frame, weights, owned)

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """The Listener's part: gradients as they will be applied."""
        steps = self._of(optimizer)
        frame = steps.frame if steps is not None else None
        if steps is None or frame is None:
            return
        self.first_gradients.note(optimizer)
        if self.uncleared.listens:
            self.uncleared.update_comes(optimizer)
        frame.passes.apply(lambda value: id(value) in owned_by(optimizer))
        if self.loss.listens:
            owned = partial(owned_by, optimizer) if len(self._met) > 1 else None
            self.loss.applied(frame, optimizer, owned)
        frame.readings.reader.read_gradients(frame, optimizer)
        frame.seconds += lap()
        if steps.gate.awaits_update:
            frame.begun += steps.gate.before_update(frame)

    def step_ends(self, optimizer: Optimizer) -> None:
        """The Listener's part: updates and state."""
        steps = self._of(optimizer)
        frame = steps.frame if steps is not None else None
        if steps is None or frame is None:
            return
        steps.clock.leave(optimizer)
        self.uncleared.update_is_over(optimizer)
        self._stepped_in = torch._C._current_graph_task_id()
        frame.readings.reader.read_after(frame, optimizer)
        if frame.readings.at_update:
            read_step(frame, optimizer, frame.readings.at_update)
        skipped = getattr(optimizer, "found_inf", None)  # a scaler's word that nothing was applied
        if isinstance(skipped, Tensor):
            steps.announce("", SKIPPED)
            frame.collect("", SKIPPED, skipped.detach().reshape(()).clone(), "max")
        _count_passes(frame, steps)
        steps.prepare()
        frame.seconds += lap()

    def read_by_hand(self, frame: DueFrame) -> None:
        """Read what can be read of a step that no optimizer told us of."""
        begun = time.perf_counter()
        frame.readings.reader.read_before(frame, None, set())
        frame.passes.apply(lambda value: True)
        self.loss.applied(frame, None)
        frame.readings.reader.read_gradients(frame, None)
        steps = self._steps()
        if steps is not None:
            _count_passes(frame, steps)
        frame.seconds += time.perf_counter() - begun

    def accumulated(self, slot: Slot) -> tuple[StepFrame, Plan] | None:
        """The AccumulationListener's part: in which step it falls, and what is read of it.

        In another backward than that in which an optimizer stepped it belongs to the next step,
        even if no call was seen; an optimizer may step within a backward, parameter by parameter.
        """
        steps = self._steps()
        if steps is None or steps.ignores_updates:
            return None
        another = torch._C._current_graph_task_id() != self._stepped_in
        if steps.frame is None or (steps.clock.ready and another):
            steps.boundary()
        frame = steps.frame
        plan = frame.readings.raw.get(slot) if frame is not None else None
        return None if frame is None or plan is None else (frame, plan)

    def _ignores(self) -> bool:
        steps = self._steps()
        return steps is None or steps.ignores_updates

    def _spend(self, seconds: float) -> None:
        steps = self._steps()
        frame = steps.frame if steps is not None and not steps.ignores_updates else None
        if frame is not None:
            frame.seconds += seconds

    def _of(self, optimizer: Optimizer) -> StepOwner | None:
        """Whose step it is, if the optimizer holds parameters of this model."""
        steps = self._steps()
        if steps is None or steps.ignores_updates:
            return None
        is_known = steps.clock.is_in(optimizer)  # as it began
        return steps if is_known or self._ownership.has(optimizer) else None


def _count_passes(frame: DueFrame, steps: StepOwner) -> None:
    """As they are now: an optimizer that steps later may apply more."""
    if not (frame.passes.have_come or frame.collected):
        return
    for name, number in ((INNER, frame.passes.n_inner), (DISCARDED, frame.passes.n_discarded)):
        if number or ("", name) in frame.collected:
            steps.announce("", name)
            frame.collect("", name, number, "last")
