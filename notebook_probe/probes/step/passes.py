"""The backward passes of a step: which of them are the training's.

One that accumulates into ``.grad`` is, unless what it left there was cleared before the update. One
that returns gradients instead (`torch.autograd.grad`) is if it is all there is: a loop may apply
them itself. One whose gradients have a graph is not, as these are part of a loss: of a
penalty, of a product with the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from notebook_probe.probes.step.gradient_hooks import begins_with_zeros, was_zeroed

__all__ = ["BackwardKind", "BackwardPass", "BackwardPasses", "Together"]

MOST_NODES = 32
"""Maximum number of nodes: a parameter is usually near, unless only an input gets a gradient."""

_LEAF = "torch::autograd::AccumulateGrad"


class BackwardKind(Enum):
    """Use of the gradients of a backward pass."""

    ACCUMULATED = auto()
    RETURNED = auto()
    DIFFERENTIATED = auto()


class BackwardPasses:
    """Backward passes that have reached one step, each known by torch's number."""

    # Replaced, never changed: most steps have none, and making one must cost nothing.
    _known: Mapping[int, BackwardPass] = MappingProxyType({})
    _sums: tuple[Together, ...] = ()
    _returned: Together | None = None
    have_come = False
    """True if there was any."""

    def running(self) -> BackwardPass:
        """Return the pass that has reached the step now."""
        number = torch._C._current_graph_task_id()
        found = self._known.get(number)
        if found is None:
            found = BackwardPass()
            self._known, self.have_come = {**self._known, number: found}, True
            found.joins(self._together(found))
        return found

    def _together(self, one: BackwardPass) -> Together:
        if one.kind is not BackwardKind.ACCUMULATED:
            if self._returned is None:
                self._returned = Together()
            return self._returned
        if self._sums and self._sums[-1].was_cleared:
            self._sums[-1].release()
            self._sums = (*self._sums, Together())
        elif not self._sums:
            self._sums = (Together(),)
        return self._sums[-1]

    def apply(self, owns: Callable[[nn.Parameter], bool]) -> None:
        """Note an update of the parameters for which ``owns`` is true."""
        for one in self._sums:
            one.apply(owns)

    def counts(self, some: Together) -> bool:
        """Return whether the gradients of these passes are known to be the training's."""
        if some is self._returned:
            return not self.have_accumulated
        return some.was_applied or not any(one.was_applied for one in self._sums)

    def is_training(self, one: BackwardPass) -> bool:
        """Return whether a pass has ended and its gradients are, so far, the training's."""
        is_whole = one.has_ended and one.kind is not BackwardKind.DIFFERENTIATED
        return is_whole and self.counts(one.together)

    def is_discarded(self, one: BackwardPass) -> bool:
        """Return whether its gradients were cleared before an update that applied other passes'."""
        is_whole = one.has_ended and one.kind is BackwardKind.ACCUMULATED
        return is_whole and not self.counts(one.together)

    @property
    def have_accumulated(self) -> bool:
        """True if some pass of the step accumulated gradients."""
        return BackwardKind.ACCUMULATED in self._ended

    @property
    def n_inner(self) -> int:
        """Passes that are not the training's."""
        if not self._known:
            return 0
        ended = self._ended
        have_accumulated = BackwardKind.ACCUMULATED in ended
        returned = ended.count(BackwardKind.RETURNED) if have_accumulated else 0
        return ended.count(BackwardKind.DIFFERENTIATED) + returned

    @property
    def n_discarded(self) -> int:
        """Passes whose gradients were cleared before the update."""
        if len(self._sums) < 2:  # nearly always
            return 0
        return sum(map(self.is_discarded, self._known.values()))

    @property
    def _ended(self) -> list[BackwardKind]:
        return [one.kind for one in self._known.values() if one.has_ended]

    def clear(self) -> None:
        """Release the gradients."""
        self._known, self._sums, self.have_come = MappingProxyType({}), (), False


class BackwardPass:
    """State of a backward pass; a pass that breaks off never ends."""

    __slots__ = ("_leaf", "has_ended", "kind", "together")

    def __init__(self) -> None:
        self.kind = BackwardKind.ACCUMULATED
        self.has_ended = False
        self._leaf: nn.Parameter | None = None
        try:
            torch.autograd.Variable._execution_engine.queue_callback(self._end)
            accumulates, self._leaf = _destination()
            if not accumulates:
                has_graph = torch.is_grad_enabled()
                self.kind = BackwardKind.DIFFERENTIATED if has_graph else BackwardKind.RETURNED
        except RuntimeError:  # torch knows of no pass, as where it has compiled the backward
            self.has_ended = True

    def joins(self, together: Together) -> None:
        """Add its gradients to those of these passes."""
        self.together = together
        together.n_open += 1

    def _end(self) -> None:
        self.has_ended = True
        leaf, self._leaf = self._leaf, None
        self.together.ended(leaf)


class LeftGradient(NamedTuple):
    """A gradient that a pass has left at a parameter.

    It is held, and not by a weak reference: torch swaps no tensor that has one.
    """

    parameter: nn.Parameter
    gradient: Tensor | None
    """Gradient; None if it is known to be gone."""
    contents: int
    address: int
    version: int
    was_zero: bool
    """True if it may have been all zeros, so that clearing changes nothing."""

    @classmethod
    def at(cls, parameter: nn.Parameter, gradient: Tensor) -> LeftGradient:
        own = gradient._cdata, _address(gradient), gradient._version
        return cls(parameter, gradient, *own, begins_with_zeros(gradient))

    @property
    def is_there(self) -> bool:
        """True if it is still the parameter's, whatever was done to its values in place.

        Where its contents are others torch has swapped them, as `Module.to` does.
        """
        now = self.gradient
        if now is None or self.parameter.grad is not now:
            return False
        return now._cdata != self.contents or _address(now) == self.address

    @property
    def was_cleared(self) -> bool:
        """True if it is gone or all zeros; read when the next pass begins."""
        now = self.gradient
        if now is None or not self.is_there:
            return True
        return not self.was_zero and was_zeroed(now, self.version)


class Together:
    """Passes between which nothing was cleared, so that what becomes of one becomes of all.

    Each is judged by the gradient of one parameter: of that nearest to where it was first seen.
    """

    __slots__ = ("_is_known", "_left", "n_open", "was_applied")

    def __init__(self) -> None:
        self.n_open = 0
        """Passes that have not ended."""
        self.was_applied = False
        self._left: list[LeftGradient] = []
        self._is_known = True

    def ended(self, leaf: nn.Parameter | None) -> None:
        """Note the end of a pass that has reached this parameter, if any is known."""
        self.n_open -= 1
        gradient = leaf.grad if leaf is not None else None
        if leaf is None or gradient is None:
            self._is_known = False
        else:
            left = LeftGradient.at(leaf, gradient)
            if self._left:
                others = [
                    one for one in self._left if one.parameter is not leaf or not one.is_there
                ]
                self._left = [*others, left]
            else:
                self._left = [left]

    @property
    def is_gone(self) -> bool:
        """True if none of the gradients is where the passes left them."""
        if self.n_open or not self._is_known:
            return False
        for left in self._left:  # at each update  # noqa: SIM110
            if left.is_there:
                return False
        return True

    @property
    def was_cleared(self) -> bool:
        """All of the gradients are gone, or were filled with zeros where they are."""
        if self.n_open or not self._is_known:
            return False
        return all(left.was_cleared for left in self._left)

    def release(self) -> None:
        """Release the gradients, now that they are gone."""
        self._left = [left._replace(gradient=None) for left in self._left]

    def apply(self, owns: Callable[[nn.Parameter], bool]) -> None:
        """Note an update; a parameter that it does not change cannot disprove it."""
        if not self.was_applied and self.is_gone:
            self.was_applied = not all(owns(left.parameter) for left in self._left)
        else:
            self.was_applied = True
        if self.was_applied:
            self._left, self._is_known = [], False


def _address(gradient: Tensor) -> int:
    """Return the address of its values; 0 if it has no memory."""
    try:
        return gradient.data_ptr()
    except RuntimeError:
        return 0


def _destination() -> tuple[bool, nn.Parameter | None]:
    """Return whether the running pass adds to the gradient of a leaf, and the first such leaf.

    It is followed from where it is to a leaf; torch refuses to say of one whose gradient it is
    to return.
    """
    node = torch._C._current_autograd_node()
    waiting: list[Node] = [node] if node is not None else []
    seen: dict[int, Node] = {}
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node  # kept: a wrapper that is freed gives its id to the next
        following = (
            [node] if node.name() == _LEAF else [n for n, _ in node.next_functions if n is not None]
        )
        for one in following:
            try:
                is_run = torch._C._will_engine_execute_node(one)
            except RuntimeError:  # its gradient is returned
                return False, None
            if is_run and one.name() == _LEAF:
                return True, _parameter_of(one)
            if is_run:
                waiting.append(one)
    # Nothing was found near by: only a pass for certain tensors leaves some nodes out.
    engine = torch.autograd.Variable._execution_engine
    return bool(waiting) and bool(engine.is_checkpoint_valid()), None


def _parameter_of(node: Node) -> nn.Parameter | None:
    """Return the parameter of a node; an input, which holds what is large, is not kept."""
    variable = getattr(node, "variable", None)
    return variable if isinstance(variable, nn.Parameter) else None
