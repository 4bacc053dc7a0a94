"""The loss of each step: what ``backward()`` was called on, where an update applied what it left.

So the micro-batches of an update are summed, and several losses that are gone back through one
after the other. What was cleared before the update is another model's loss, or an attack's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.due.readings import DueFrame
from notebook_probe.probes.loss.reached import Left, Look, Witnesses
from notebook_probe.probes.parameters.scalers import scaler_calling
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["StepLoss"]

MOST_PASSES = 64
"""Between whose gradients something was cleared; more do not come to one update."""

OUTSIDE = -1

SHOWN_AS = "loss"
"""What quantities call it that read what a loop logs."""


class Pass:
    """One pass, or several that have left their gradients in the same place."""

    __slots__ = ("before", "left", "value", "was_applied")

    def __init__(self, value: Number, before: Look) -> None:
        self.value, self.before = value, before
        self.left: list[Left] = []
        self.was_applied = False

    @property
    def is_there(self) -> bool:
        return any(left.is_there for left in self.left)

    @property
    def was_replaced(self) -> bool:
        """Somebody has made something of its gradients by hand."""
        return not all(left.was_cleared for left in self.left)

    def is_of(self, owned: set[int]) -> bool:
        return any(id(left.parameter) in owned for left in self.left)


class StepLoss:
    """A `BackwardListener` for one model.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    ignores : callable
        Whether nothing is measured, or what is trained on this thread is no matter of a step.
    spend : callable
        Counts seconds as spent in the open step.

    Attributes
    ----------
    listens : bool
        Losses are looked for.
    """

    def __init__(
        self, model: nn.Module, ignores: Callable[[], bool], spend: Callable[[float], None]
    ) -> None:
        self._witnesses, self._ignores = Witnesses(model), ignores
        self.backward_took = spend
        self.listens = self._is_logged = False
        self._running: list[Pass] = []
        self._ended: list[Pass] = []
        self._n_elsewhere = 0
        self._applied_by: list[int] = []
        self._told_by: list[list[Slot]] = []
        self._step = -1

    def look(self, is_wanted: bool) -> None:
        """Look for losses from now on, unless the loop has told of one; or look no more."""
        self.listens = is_wanted and not self._is_logged

    def give_way(self) -> None:
        """The loop logs a loss: that is the one, from now on."""
        self._is_logged, self.listens = True, False
        self._ended.clear()

    # ---------------------------------------------------------------- passes

    def backward_begins(self, loss: Number) -> Pass | None:
        if self._ignores():
            return None
        one = Pass(loss, self._witnesses.look())
        self._running.append(one)
        return one

    def backward_ends(self, begun: Pass | None, *, has_come_through: bool) -> None:
        if begun is None:
            return
        self._running.remove(begun)
        before, begun.before = begun.before, []
        if begun.was_applied or not has_come_through:
            return
        begun.left = self._witnesses.left(before)
        if begun.left:
            self._keep(begun)
        else:
            self._n_elsewhere += 1

    def _keep(self, new: Pass) -> None:
        last = self._ended[-1] if self._ended else None
        same = last is not None and len(last.left) == len(new.left)
        if last is not None and same and all(map(_is_same, last.left, new.left)):
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
        """An update comes; those of a closure's later runs are looked past.

        Parameters
        ----------
        frame : DueFrame
            Of the step.
        optimizer : Optimizer, optional
            None for an update by hand.
        owned : callable, optional
            Gives the identities of the parameters that it changes; None where that is all.
        """
        if not self.listens:
            return
        try:
            applied = self._taken(owned)
            if not self._is_later(frame.step, optimizer):
                self._take_in(frame, applied)
        except Exception:  # whatever a gradient is, the optimizer steps on: a gap
            frame.loss = None

    def _taken(self, owned: Callable[[], set[int]] | None) -> list[Pass]:
        """The passes that are applied; those that were cleared before are let go of with them."""
        own, self._ended = self._ended, []
        if owned is not None and own:
            identities = owned()
            self._ended = [one for one in own if not one.is_of(identities)]
            own = [one for one in own if one not in self._ended]
        found = [one for one in own if one.is_there]
        if not found and any(one.was_replaced for one in own):
            found = own
        if self._running and torch._C._current_graph_task_id() != OUTSIDE:
            found += [one for one in self._running if not one.was_applied]
        for one in found:
            one.was_applied = True
        return found

    def _is_later(self, step: int, optimizer: Optimizer | None) -> bool:
        """The optimizer has applied something in this step already."""
        if self._step != step:
            self._witnesses.choose(self._told_by)
            self._step, self._applied_by, self._told_by = step, [], []
        if id(optimizer) in self._applied_by:
            return True
        self._applied_by.append(id(optimizer))
        return False

    def _take_in(self, frame: DueFrame, applied: Sequence[Pass]) -> None:
        if applied:
            self._add(frame, applied)
            self._told_by += [[left.slot for left in one.left] for one in applied]
        elif self._n_elsewhere:
            self._witnesses.forget()
        self._n_elsewhere = 0

    def _add(self, frame: DueFrame, applied: Sequence[Pass]) -> None:
        total = applied[0].value
        for one in applied[1:]:
            total = total + one.value
        total = _unscaled(total)
        frame.loss = total if frame.loss is None else frame.loss + total
        if frame.reads:
            frame.scalars[SHOWN_AS] = frame.loss
            frame.recorded_beside |= {SHOWN_AS}
            frame.on_device |= isinstance(frame.loss, Tensor)


def _is_same(one: Left, other: Left) -> bool:
    return one.parameter is other.parameter and one.gradient() is other.gradient()


def _unscaled(loss: Number) -> Number:
    """Without the factor of the gradient scaler that calls the optimizer, if one does."""
    scaler = scaler_calling()
    if scaler is None or scaler._scale is None:
        return loss
    scale = scaler._scale
    return loss / (scale.to(loss.device) if isinstance(loss, Tensor) else scale.item())
