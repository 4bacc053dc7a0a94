"""The optimizer's side of a step: what is read before it, at its gradients, and after it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.due.readings import DueFrame
from notebook_probe.probes.loss import backwards
from notebook_probe.probes.loss.step_loss import NO_SLOTS, StepLoss
from notebook_probe.probes.loss.uncleared import UnclearedGradients
from notebook_probe.probes.parameters.first_gradients import FirstGradients
from notebook_probe.probes.parameters.ownership import Ownership
from notebook_probe.probes.parameters.scalers import read_step
from notebook_probe.probes.parameters.stepped import stepped_by
from notebook_probe.probes.reading.options import owned_by
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.optimizer_steps import lap, listen, running
from notebook_probe.probes.step.phase import PhaseOfThread
from notebook_probe.probes.step.sink import StepGate
from notebook_probe.probes.step_clock import LastWritten, SharedSteps, StepClock

__all__ = ["StepOwner", "Updates"]

NO_BACKWARD = -1
"""Number that torch gives for the current backward outside of any."""

DISCARDED = "discarded_backwards"
"""Passes of the step whose gradients were cleared before its update."""

INNER = "inner_backwards"
"""Passes of the step that were not the training's: of a penalty, of a product with the Hessian."""

SKIPPED = "skipped"
"""1 where a gradient scaler found infinities and the optimizer applied nothing, else 0."""


class StepOwner(Protocol):
    """Protocol of the sequence that opens and closes the steps of a model, and uses this module.

    `StepSequence`, which imports this module, is one.
    """

    clock: StepClock
    gate: StepGate
    training: DueProbes
    is_silent: bool
    phase: PhaseOfThread
    n_forwards: int
    """Training calls of the root in the open step."""
    has_to_prepare: bool
    """`update_is_over` has work to do."""

    @property
    def ignores_updates(self) -> bool: ...
    def open_frame(self) -> DueFrame: ...
    def boundary(self, rooted: bool) -> None: ...
    def follow_at_rest(self, now: float) -> bool: ...
    def update_is_over(self) -> None: ...
    def announce(self, place: str, name: str) -> None: ...


class UsualUpdate(NamedTuple):
    """An optimizer whose updates are all alike, so that one at rest is known by little.

    Attributes
    ----------
    optimizer : weak reference to Optimizer
    written : LastWritten
        Parameter that it writes last.
    identity : int
        Identity of the parameter.
    n_writes : int
        Number of times that an update writes to the parameter.
    slots : frozenset of Slot or None
        Parameters that the backward pass had come to which it applied; none if it applied no pass.
        None if no other optimizer steps the model, so that it applies each pass.
    """

    optimizer: weakref.ref[Optimizer]
    written: LastWritten
    identity: int
    n_writes: int
    slots: frozenset[Slot] | None


class Updates:
    """Listener of every optimizer's steps, which reads the affected parameters of its model.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    steps : StepOwner
        Held weakly.
    """

    rests_until = 0

    def __init__(self, model: nn.Module, steps: StepOwner) -> None:
        self._steps = weakref.ref(steps)
        self.loss = StepLoss(model, self._steps)
        self.first_gradients, self.uncleared = FirstGradients(), UnclearedGradients()
        self._ownership = Ownership(model)
        self._weights_read = False
        self.can_be_interrupted = False
        """Nothing is read in the open step: whether it has stepped the clock learns later, too."""
        self._stepped_in = NO_BACKWARD
        self._usual: dict[int, UsualUpdate] = {}
        self._inner: list[Optimizer] = []  # that have stepped within the step of another
        self.thread, self.shared = 0, SharedSteps()
        """The thread that opened the step, and the steps in which another one called the model."""
        self.n_elsewhere = 0
        """Steps since its last one of optimizers that hold no parameter of this model."""
        self._met: weakref.WeakKeyDictionary[Optimizer, None] = weakref.WeakKeyDictionary()
        self.wrote_nothing: Callable[[Optimizer], object] = lambda optimizer: None
        """Called at the end of an update that has not written to a parameter with a gradient."""

    @property
    def optimizers(self) -> list[Optimizer]:
        """Optimizers that step this model, in the order in which they were met."""
        return [*self._met]

    def has_met(self, optimizer: Optimizer) -> bool:
        """Return whether this one steps the model."""
        return optimizer in self._met

    def listen(self) -> list[Callable[[], None]]:
        """Listen to updates and backward passes from now on, and return functions to stop it."""
        ends = backwards.listen(self.loss), self.loss.close, self.uncleared.end
        return [listen(self), *ends]

    def meet(self, optimizer: Optimizer) -> None:
        """Note that the optimizer steps this model, or wraps one that does."""
        if optimizer in self._met:
            return
        new = [one for one in stepped_by(optimizer) if one not in self._met]
        if new:
            met = weakref.WeakKeyDictionary(self._met)
            met.update(dict.fromkeys(new))
            self._met = met  # replaced, never changed: other threads walk it
            self._usual = {}  # passes are shared with another one

    def begin(self, at_rest: bool) -> None:
        """Note that a step was opened on this thread: nothing of it has been read."""
        self._weights_read, self.can_be_interrupted = False, at_rest
        self.thread = threading.get_ident()
        if self.loss.listens:
            self.loss.begin(self.thread)

    def update_comes(self, optimizer: Optimizer) -> None:
        """Implement the Listener: read weights and gradients; at rest do what each step needs."""
        steps, usual = self._steps(), self._usual.get(id(optimizer))
        if steps is None or steps.is_silent or steps.phase.is_past:
            return
        clock, frame, last = steps.clock, steps.training.frame, None
        if (
            usual is not None
            and usual.optimizer() is optimizer
            and self.can_be_interrupted
            and frame is not None
            and not frame.passes.have_come
            and usual.optimizer not in clock.stepped
            and clock.begun is None
            and not (clock.has_raised or self._inner)
            and not (self.first_gradients.n_left or self.uncleared.looks)
            and not steps.gate.awaits_update
        ):
            group, place = usual.written
            groups = optimizer.param_groups
            values = groups[group]["params"] if group < len(groups) else ()
            last = values[place] if place < len(values) else None
        if last is None or frame is None or usual is None or id(last) != usual.identity:
            if self._ownership.excludes(optimizer):
                self.n_elsewhere += 1
                return
            self._usual.pop(id(optimizer), None)
            self.step_begins(optimizer)
            self.gradients_ready(optimizer)
            return
        self.n_elsewhere = 0
        clock.written, clock.version = usual.written, last._version
        clock.begun, clock.thread = usual.optimizer, threading.get_ident()
        if self.loss.listens and not self.loss.applied_at_rest(frame, optimizer, usual.slots):
            self._apply_loss(frame, optimizer)
            if usual.slots is not None:  # which may be those of the first steps
                self._usual.pop(id(optimizer), None)  # another thread may have met one more
        now = running.now
        since, now.lap = now.lap, time.perf_counter()
        frame.seconds += now.lap - since

    def step_begins(self, optimizer: Optimizer) -> None:
        """Implement the Listener: read weights, and copy them."""
        steps = self._steps()
        if steps is None or steps.is_silent or steps.phase.is_past:
            return
        begun = steps.clock.begun
        if (begun is None or begun() is not optimizer) and not self._ownership.has(optimizer):
            self.n_elsewhere += 1
            return
        clock = steps.clock
        if optimizer not in self._met:
            self.meet(optimizer)
        if begun is not None and clock.surrounds(optimizer):
            self._inner_begins(steps, optimizer)
            return
        self._inner, self.n_elsewhere = [], 0  # of one that has raised
        if (clock.stepped or begun is not None) and clock.stepped_before(optimizer):
            rests = clock.begun is None and steps.follow_at_rest(running.now.lap)
            if not rests:
                # A closure that has called the root will call it again.
                steps.boundary(rooted=steps.n_forwards > 0)
                lap()  # which has counted itself
        frame = steps.training.frame or steps.open_frame()
        if clock.has_raised:  # and no call of the model was seen since
            self.loss.try_again(frame)
        if frame.plan.reader.reads_before:
            self.read_before(clock, frame, optimizer)
        clock.enter(optimizer)
        frame.seconds += lap()

    def _inner_begins(self, steps: StepOwner, optimizer: Optimizer) -> None:
        """Copy the weights that only the inner of two nested optimizers changes."""
        frame, outer = steps.training.frame, steps.clock.inside
        is_first = all(one is not optimizer for one in self._inner)
        if frame is not None and outer is not None and is_first:
            self._inner.append(optimizer)
            changing = owned_by(optimizer) - owned_by(outer)
            frame.plan.reader.read_before(frame, set(), changing)
            frame.seconds += lap()

    def read_before(self, clock: StepClock, frame: DueFrame, optimizer: Optimizer) -> None:
        """Read the weights, once per step, and copy those the optimizer is about to change."""
        if not frame.plan.reader.reads_before:
            return
        owned = owned_by(optimizer)
        if not self._weights_read:
            weights = None
        elif clock.has_raised:  # it may have changed some
            weights = owned
        else:
            weights = set()
        self._weights_read = True
        frame.plan.reader.read_before(frame, weights, owned)

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """Implement the Listener: read gradients as they will be applied."""
        steps = self._steps()
        if steps is None or steps.is_silent or steps.phase.is_past:
            return
        begun, frame = steps.clock.begun, steps.training.frame
        # It is known since its step began.
        is_ours = (begun is not None and begun() is optimizer) or self._ownership.has(optimizer)
        if frame is None or not is_ours:
            return
        if self.first_gradients.n_left:
            self.first_gradients.note(optimizer)
        if self.uncleared.looks:
            self.uncleared.update_comes(optimizer)
        if frame.passes.have_come:
            frame.passes.apply(lambda value: id(value) in owned_by(optimizer))
        if self.loss.listens:
            self._apply_loss(frame, optimizer)
        if frame.plan.reader.reads_gradients:
            frame.plan.reader.read_gradients(frame, optimizer)
        frame.seconds += lap()
        if steps.gate.awaits_update:
            frame.begun += steps.gate.before_update(frame)

    def _apply_loss(self, frame: DueFrame, optimizer: Optimizer) -> None:
        owned = partial(owned_by, optimizer) if len(self._met) > 1 else None
        self.loss.applied(frame, optimizer, owned)

    def step_ends(self, optimizer: Optimizer) -> None:
        """Implement the Listener: read updates and state."""
        steps = self._steps()
        if steps is None or steps.is_silent or steps.phase.is_past:
            return
        begun, frame = steps.clock.begun, steps.training.frame
        is_known = begun is not None and begun() is optimizer  # as it began
        if frame is None or not (is_known or self._ownership.has(optimizer)):
            return
        usual, clock = self._usual.get(id(optimizer)), steps.clock
        if (
            usual is not None
            and begun is usual.optimizer
            and is_known
            and self.can_be_interrupted
            and not (self._inner or frame.passes.have_come or frame.collected)
            and usual.optimizer not in clock.stepped
            and not (steps.has_to_prepare or "found_inf" in optimizer.__dict__)
        ):
            group, place = usual.written
            groups = optimizer.param_groups
            values = groups[group]["params"] if group < len(groups) else ()
            last = values[place] if place < len(values) else None
            if last is not None and last._version - clock.version == usual.n_writes:
                clock.stepped.append(usual.optimizer)
                clock.begun, self._stepped_in = None, torch._C._current_graph_task_id()
                now = running.now
                since, now.lap = now.lap, time.perf_counter()
                frame.seconds += now.lap - since
                return
        if begun is not None and not is_known and clock.surrounds(optimizer):
            return
        clock.leave(optimizer)
        if clock.wrote_nothing:
            self.wrote_nothing(optimizer)
        settled = self.uncleared.settled_last
        if settled is None or settled() is not optimizer:
            self.uncleared.update_is_over(optimizer)
        self._stepped_in = torch._C._current_graph_task_id()
        inner, self._inner = self._inner, []
        if frame.plan.reader.reads_after:
            frame.plan.reader.read_after(frame, [optimizer, *inner])
        if frame.plan.at_update:
            read_step(frame, optimizer, frame.plan.at_update)
        skipped = getattr(optimizer, "found_inf", None)  # a scaler's word that nothing was applied
        if isinstance(skipped, Tensor):
            steps.announce("", SKIPPED)
            frame.collect("", SKIPPED, skipped.detach().reshape(()).clone(), "max")
        if frame.passes.have_come or frame.collected:
            _count_passes(frame, steps)
        if steps.has_to_prepare:
            steps.update_is_over()
        frame.seconds += lap()
        self._learn_usual(steps, optimizer)

    def _learn_usual(self, steps: StepOwner, optimizer: Optimizer) -> None:
        """Learn what the next update need not find again, after one at rest."""
        clock, settled = steps.clock, self.uncleared.settled_last
        slots = self.loss.applied_slots if self.loss.listens else NO_SLOTS
        is_settled = settled is not None and settled() is optimizer
        is_only = len(clock.stepped) == len(self._met) == 1
        is_shared = len(self._met) > 1 and slots is not None
        if not self.can_be_interrupted or not is_settled or self._inner or clock.written is None:
            return
        last = clock.written.parameter(optimizer)
        n_writes = clock.n_writes.get(id(optimizer), 0)
        if last is not None and n_writes > 0 and (is_only or is_shared):
            found = weakref.ref(optimizer), clock.written, id(last), n_writes
            self._usual[id(optimizer)] = UsualUpdate(*found, None if is_only else slots)

    def read_by_hand(self, frame: DueFrame) -> None:
        """Read what can be read of a step without an optimizer."""
        begun = time.perf_counter()
        frame.plan.reader.read_before(frame, None, set())
        frame.passes.apply(lambda value: True)
        self.loss.applied(frame, None)
        frame.plan.reader.read_gradients(frame, None)
        steps = self._steps()
        if steps is not None and (frame.passes.have_come or frame.collected):
            _count_passes(frame, steps)
        frame.seconds += time.perf_counter() - begun

    def accumulated(self, slot: Slot) -> tuple[StepFrame, ReadingPlan] | None:
        """Implement the AccumulationListener: return the step's frame, and what is read of it.

        In another backward than that in which an optimizer stepped it belongs to the next step,
        even if no call was seen; an optimizer may step within a backward, parameter by parameter.
        """
        steps = self._steps()
        if steps is None or steps.ignores_updates:
            return None
        another = torch._C._current_graph_task_id() != self._stepped_in
        if steps.training.frame is None or (steps.clock.ready and another):
            steps.boundary(rooted=False)
        frame = steps.training.frame
        plan = frame.plan.raw.get(slot) if frame is not None else None
        return None if frame is None or plan is None else (frame, plan)


def _count_passes(frame: DueFrame, steps: StepOwner) -> None:
    """Record the present counts of passes: an optimizer that steps later may apply more."""
    for name, number in ((INNER, frame.passes.n_inner), (DISCARDED, frame.passes.n_discarded)):
        if number or ("", name) in frame.collected:
            steps.announce("", name)
            frame.collect("", name, number, "last")
