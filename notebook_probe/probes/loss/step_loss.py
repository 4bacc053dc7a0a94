"""Loss of each step: the value of ``backward()``, if an update applied its gradients.

The losses of the micro-batches of an update are summed, and several losses with one backward each.
A loss whose gradients were cleared before the update belongs to another model, or to an attack.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.due.readings import DueFrame
from notebook_probe.probes.loss.arrivals import KeptGradient, NodeHook, Witnesses
from notebook_probe.probes.parameters.scalers import scaler_calling
from notebook_probe.probes.step.phase import PhaseOfThread
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["NO_SLOTS", "StepLoss"]

MOST_PASSES = 64
"""Maximum number of kept passes between which gradients were cleared; one update needs no more."""

OUTSIDE = -1

NO_SLOTS: frozenset[Slot] = frozenset()

SHOWN_AS = "loss"
"""Name of the loss for quantities that read what a loop logs."""


class LossPass:
    """Pass, or several that have left their gradients in the same place."""

    __slots__ = ("hooks", "left", "seconds", "thread", "value", "was_applied")

    def __init__(self, value: Number, thread: int) -> None:
        self.value, self.thread = value, thread
        self.hooks: Sequence[NodeHook] = ()
        """Hooks that are there as long as it runs."""
        self.left: dict[Slot, KeptGradient] = {}
        self.was_applied = False
        self.seconds = 0.0
        """Seconds that the hooks on parameters took."""

    @property
    def is_there(self) -> bool:
        for left in self.left.values():  # as left.is_there, at every step
            gradient = left.gradient
            if left.parameter is not None and gradient is left.parameter.grad is not None:
                return True
        return False

    @property
    def was_replaced(self) -> bool:
        """True if its gradients were replaced by hand."""
        return not all(left.was_cleared for left in self.left.values())

    def of(self, owned: set[int]) -> list[Slot]:
        """Return the slots of the parameters with these identities that it has reached."""
        return [slot for slot, left in self.left.items() if id(left.parameter) in owned]


class LossSteps(Protocol):
    """Protocol of the steps of a model, for their losses.

    `StepSequence` is one; `Updates`, which it uses, has the loss.
    """

    training: DueProbes
    is_silent: bool
    phase: PhaseOfThread


class StepLoss:
    """A `BackwardListener` and an `ArrivalListener` for one model.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    steps : callable
        Returns the steps of the model, or None once they are gone.

    Attributes
    ----------
    listens : bool
        Losses are looked for.
    n_logged : int
        Steps of which the loop has logged a loss.
    applied_slots : frozenset of Slot or None
        Parameters that the backward pass had come to which was applied last; none if there was no
        pass to apply, None if there were several. Kept where several optimizers step the model.
    has_added : bool
        The last of several passes before an update has added to the gradients of the pass before.
    """

    def __init__(self, model: nn.Module, steps: Callable[[], LossSteps | None]) -> None:
        self.witnesses, self._steps = Witnesses(model, self), steps
        self._spare: LossPass | None = None
        self.listens = self.has_added = False
        self.n_logged = self._n_seen = 0
        self.applied_slots: frozenset[Slot] | None = None
        self._running: dict[int, LossPass] = {}
        self._ended: list[LossPass] = []
        self._left: dict[Slot, KeptGradient] = {}
        self._thread = 0
        self._n_elsewhere = 0
        self._applied_by: list[int] = []
        self._told_by: list[list[Slot]] = []
        self._step = -1

    def look(self, is_wanted: bool) -> None:
        """Look for losses from now on, or look no more."""
        self.listens = is_wanted
        if not self.listens:
            self._end()

    @property
    def is_logged(self) -> bool:
        """Return whether the loop logs a loss in half of the steps or more."""
        return 2 * self.n_logged >= self._n_seen

    @property
    def is_given(self) -> bool:
        """Return whether the loop logs the loss of nearly every step."""
        return 4 * self.n_logged >= 3 * self._n_seen

    def close(self) -> None:
        """Look no more, and take the hooks off."""
        self.listens = False
        self._end()

    def _end(self) -> None:
        self._ended, self._left = [], {}
        self.witnesses.remove()

    def begin(self, thread: int) -> None:
        """Note that a step was opened on this thread."""
        self._thread = thread
        self.witnesses.begin()

    # ---------------------------------------------------------------- passes

    def backward_begins(self, loss: Number, roots: Sequence[Any] = ()) -> LossPass | None:
        steps = self._steps()
        if steps is None or steps.is_silent or steps.phase.is_past:
            return None
        thread = threading.get_ident()
        if not self.witnesses.are_hooked and self._thread in (0, thread):
            self.witnesses.begin()  # no call of the model was seen: it is compiled, perhaps
        hooks = () if self.witnesses.are_chosen else self.witnesses.await_pass()
        if self._ended:
            self._forget_cleared()
        one, self._spare = self._spare, None
        if one is None:
            one = LossPass(loss, thread)
        else:
            one.value, one.thread, one.was_applied, one.seconds = loss, thread, False, 0.0
        one.hooks = hooks
        self._running[thread] = one
        return one

    def _forget_cleared(self) -> None:
        """Forget passes whose gradients were filled with zeros before the next pass."""
        for left in [*self._left.values()]:  # as left.was_zeroed, for each micro-batch
            if left.gradient is not None and left.gradient._version != left.version:
                break
        else:
            return
        zeroed = {slot for slot, left in [*self._left.items()] if left.was_zeroed}
        if not zeroed:
            return
        for slot in zeroed:
            self._left.pop(slot).gradient = None
        self._ended = [one for one in self._ended if not one.left.keys() <= zeroed]

    def arrived(self, slot: Slot, parameter: Tensor, begun: float) -> None:
        """Implement the ArrivalListener."""
        # The pass of this thread, mostly.
        one, gradient = self._running.get(threading.get_ident()) or self._here(), parameter.grad
        if one is None or gradient is None or one.was_applied:
            return
        left = self._left.get(slot)
        if left is not None and left.gradient is None:  # that of an update at rest
            left.parameter, left.gradient = parameter, gradient
        elif left is None or left.gradient is not gradient:
            if left is not None:
                left.gradient = None
            left = self._left[slot] = KeptGradient(parameter, gradient)
        one.left[slot], left.version = left, gradient._version
        one.seconds += time.perf_counter() - begun

    def _here(self) -> LossPass | None:
        """Return the pass that runs on this thread.

        Gradients on an accelerator arrive on a thread of torch, where no pass begins. They belong
        to the pass of the thread that trains the model.
        """
        one = self._running.get(threading.get_ident())
        return one if one is not None else self._running.get(self._thread)

    def backward_ends(
        self, begun: LossPass | None, since: float, *, has_come_through: bool
    ) -> None:
        if begun is None:
            return
        for hook in begun.hooks:
            hook.remove()
        begun.hooks = ()
        self._running.pop(begun.thread, None)
        if has_come_through and not begun.was_applied:
            if not begun.left:
                self._n_elsewhere += begun.thread == self._thread
            elif self._ended:
                self._keep(begun)
            else:
                self._ended = [begun]
        if begun.left or begun.was_applied:  # else it has not reached this run's model
            steps = self._steps()
            frame = steps.training.frame if steps is not None else None
            if steps is not None and frame is not None and not steps.phase.is_past:
                frame.seconds += time.perf_counter() - since + begun.seconds

    def _keep(self, new: LossPass) -> None:
        last = self._ended[-1]
        self.has_added = last.left == new.left
        if self.has_added:
            last.value = last.value + new.value
        else:
            self._ended = [*self._ended[-MOST_PASSES:], new]

    # ---------------------------------------------------------------- updates

    def applied(
        self,
        frame: DueFrame,
        optimizer: Optimizer | None,
        owned: Callable[[], set[int]] | None = None,
    ) -> None:
        """Record the loss that an update applies; later runs of a closure are ignored.

        Parameters
        ----------
        frame : DueFrame
            Frame of the step.
        optimizer : Optimizer, optional
            None for an update by hand.
        owned : callable, optional
            Gives the identities of the parameters that it changes; None where that is all.
        """
        if not self.listens:
            return
        try:
            ended, is_outside = self._ended, torch._C._current_graph_task_id() == OUTSIDE
            if owned is None and len(ended) == 1 and is_outside and ended[0].is_there:  # mostly
                applied, self._ended = ended, []
                self._release(ended[0], is_applied=True)
            else:
                applied = self._taken(owned)
            if owned is not None:
                slots = frozenset(applied[0].left) if applied else NO_SLOTS
                self.applied_slots = slots if len(applied) < 2 else None
            if not self._is_later(frame.step, optimizer):
                self._take_in(frame, applied, owned)
        except Exception:  # whatever a gradient is, the optimizer steps on: a gap
            frame.loss = None

    def applied_at_rest(
        self, frame: DueFrame, optimizer: Optimizer, slots: frozenset[Slot] | None
    ) -> bool:
        """Record the loss that an optimizer applies in a step in which nothing is due.

        As `applied`, without further calls if there was one pass, as usual. Return False, with
        nothing done, if anything is unusual. ``slots`` are those of `UsualUpdate`.
        """
        ended, is_first = self._ended, self._step != frame.step
        one = ended[0] if ended else None
        reached = NO_SLOTS if one is None else one.left.keys()
        if (
            len(ended) > 1
            or self._running
            or frame.scalars
            or not self.witnesses.are_chosen
            or (not is_first and id(optimizer) in self._applied_by)
            or (one is None and self._n_elsewhere)
            or (slots is None and (one is None or frame.loss is not None))
            or (slots is not None and slots != reached)
            or torch._C._current_graph_task_id() != OUTSIDE
        ):
            return False
        try:
            if one is not None:
                for left in one.left.values():
                    if left.parameter is None or left.gradient is not left.parameter.grad:
                        return False
                self._ended, one.was_applied = [], True
                for left in one.left.values():
                    left.parameter = left.gradient = None
                one.left.clear()
                self._spare, self._n_elsewhere = one, 0
                scaler = scaler_calling()
                loss = one.value if scaler is None else _unscaled(one.value, scaler)
                frame.loss = loss if frame.loss is None else frame.loss + loss
            if is_first:
                self._step, self._applied_by = frame.step, [id(optimizer)]
                self._n_seen += 1
            else:
                self._applied_by.append(id(optimizer))
        except Exception:  # as in `applied`
            frame.loss = None
        return True

    def _taken(self, owned: Callable[[], set[int]] | None) -> list[LossPass]:
        """Return the passes that are applied, and release those that were cleared before."""
        own, self._ended = self._ended, []
        if owned is not None and own:
            identities = owned()
            self._ended = [one for one in own if not one.of(identities)]
            own = [one for one in own if one not in self._ended]
        found = [one for one in own if one.is_there]
        if not found and any(one.was_replaced for one in own):
            found = own
        running = self._here() if torch._C._current_graph_task_id() != OUTSIDE else None
        if running is not None and not running.was_applied:
            found = [*found, running]
        for one in {*own, *found}:
            self._release(one, is_applied=one in found)
        return found

    def _release(self, one: LossPass, is_applied: bool) -> None:
        """Release the gradients of a pass, of which it is known whether it was applied."""
        one.was_applied = is_applied
        for slot, left in one.left.items():
            left.gradient = None
            self._left.pop(slot, None)

    def try_again(self, frame: DueFrame) -> None:
        """Take the passes since an update raised in place of those before it; none leaves them."""
        if self._ended:
            self.begin_again()
            frame.loss = None

    def begin_again(self) -> None:
        """Take in the open step once more: its update has raised."""
        self._applied_by, self._told_by = [], []

    def _is_later(self, step: int, optimizer: Optimizer | None) -> bool:
        """Return whether the optimizer has applied something in this step already."""
        if self._step != step:
            if not self.witnesses.are_chosen:
                self.witnesses.choose(self._told_by)
            self._step, self._applied_by, self._told_by = step, [], []
            self._n_seen += 1
        if id(optimizer) in self._applied_by:
            return True
        self._applied_by.append(id(optimizer))
        return False

    def _take_in(
        self,
        frame: DueFrame,
        applied: Sequence[LossPass],
        owned: Callable[[], set[int]] | None,
    ) -> None:
        if applied:
            self._add(frame, applied)
            if not self.witnesses.are_chosen:
                self._tell_of(applied, owned)
        elif self._n_elsewhere or (self._ended and self.witnesses.may_search):
            self.witnesses.forget()
        self._n_elsewhere = 0

    def _tell_of(self, applied: Sequence[LossPass], owned: Callable[[], set[int]] | None) -> None:
        """Note where the passes have come; only where the update was made of them, if others own.

        A generator's pass reaches its discriminator, too, whose optimizer is another.
        """
        if owned is None:
            self._told_by += [[*one.left] for one in applied]
        else:
            identities = owned()
            self._told_by += [one.of(identities) for one in applied]

    def _add(self, frame: DueFrame, applied: Sequence[LossPass]) -> None:
        if SHOWN_AS in frame.scalars and self.is_given:  # that of this step is known
            return
        total = applied[0].value
        for one in applied[1:]:
            total = total + one.value
        if (scaler := scaler_calling()) is not None:
            total = _unscaled(total, scaler)
        frame.loss = total if frame.loss is None else frame.loss + total
        if frame.reads and not self.is_logged and not frame.logged({SHOWN_AS}):
            frame.scalars[SHOWN_AS] = frame.loss
            frame.recorded_beside |= {SHOWN_AS}
            frame.on_device |= isinstance(frame.loss, Tensor)


def _unscaled(loss: Number, scaler: GradScaler) -> Number:
    """Divide by the factor of the gradient scaler that calls the optimizer."""
    if scaler._scale is None:
        return loss
    scale = scaler._scale
    return loss / (scale.to(loss.device) if isinstance(loss, Tensor) else scale.item())
