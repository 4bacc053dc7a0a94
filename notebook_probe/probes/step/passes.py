"""The backward passes of a step: which of them are the training's.

One that accumulates into ``.grad`` is, unless what it left there was cleared before the update. One
that returns gradients instead (`torch.autograd.grad`) is if it is all there is: a loop may apply
them itself. One whose gradients have a graph of their own is not, as these are part of a loss: of a
penalty, of a product with the Hessian.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

__all__ = ["BackwardKind", "Pass", "Passes", "Together"]

MOST_NODES = 32
"""A parameter is nearly always nearer; that of a pass towards an input alone may be far."""

_LEAF = "torch::autograd::AccumulateGrad"


class BackwardKind(Enum):
    """What becomes of the gradients of a backward pass."""

    ACCUMULATED = auto()
    RETURNED = auto()
    DIFFERENTIATED = auto()


class Passes:
    """The backward passes that have come to one step, each known by torch's number."""

    def __init__(self) -> None:
        self._known: dict[int, Pass] = {}
        self._sums: list[Together] = []
        self._returned: Together | None = None

    def running(self) -> Pass:
        """The pass that has come to the step now."""
        number = torch._C._current_graph_task_id()
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = Pass()
            found.joins(self._together(found))
        return found

    def _together(self, one: Pass) -> Together:
        if one.kind is not BackwardKind.ACCUMULATED:
            if self._returned is None:
                self._returned = Together()
            return self._returned
        if not self._sums or self._sums[-1].is_gone:
            self._sums.append(Together())
        return self._sums[-1]

    def apply(self, owns: Callable[[nn.Parameter], bool]) -> None:
        """An update comes now, of the parameters that ``owns`` says; it applies what is there."""
        for one in self._sums:
            one.apply(owns)

    def counts(self, some: Together) -> bool:
        """Tell whether the gradients of these passes are the training's, as far as is known."""
        if some is self._returned:
            return not self.have_accumulated
        return some.was_applied or not any(one.was_applied for one in self._sums)

    def is_discarded(self, one: Pass) -> bool:
        """What it accumulated was cleared before an update that applied what others did."""
        is_whole = one.has_ended and one.kind is BackwardKind.ACCUMULATED
        return is_whole and not self.counts(one.together)

    @property
    def have_come(self) -> bool:
        """There was any."""
        return bool(self._known)

    @property
    def have_accumulated(self) -> bool:
        """Some pass of the step was what training is about."""
        return BackwardKind.ACCUMULATED in self._ended

    @property
    def n_inner(self) -> int:
        """Passes that are not the training's."""
        if not self._known:
            return 0
        ended = self._ended
        returned = ended.count(BackwardKind.RETURNED) if self.have_accumulated else 0
        return ended.count(BackwardKind.DIFFERENTIATED) + returned

    @property
    def n_discarded(self) -> int:
        """Passes whose gradients were cleared before the update."""
        if len(self._sums) < 2:  # nearly always
            return 0
        return sum(map(self.is_discarded, [*self._known.values()]))

    @property
    def _ended(self) -> list[BackwardKind]:
        return [one.kind for one in [*self._known.values()] if one.has_ended]

    def clear(self) -> None:
        """Let go of the gradients."""
        self._known.clear()
        self._sums.clear()


class Pass:
    """A pass, as far as it has come; one that breaks off never ends."""

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
        """Its gradients go where those of these passes went."""
        self.together = together
        together.n_open += 1

    def _end(self) -> None:
        self.has_ended = True
        leaf, self._leaf = self._leaf, None
        self.together.ended(leaf)


class Left(NamedTuple):
    """A gradient that a pass has left at a parameter."""

    parameter: nn.Parameter
    gradient: weakref.ref[Tensor]
    address: int

    @property
    def is_there(self) -> bool:
        """It is still the parameter's, whatever was done to its values in place."""
        now = self.parameter.grad
        return now is not None and now is self.gradient() and _address(now) == self.address


class Together:
    """Passes between which nothing was cleared, so that what becomes of one becomes of all.

    Each is judged by the gradient of one parameter: of that nearest to where it was first seen.
    """

    __slots__ = ("_is_known", "_left", "n_open", "was_applied")

    def __init__(self) -> None:
        self.n_open = 0
        """Passes that have not ended."""
        self.was_applied = False
        self._left: list[Left] = []
        self._is_known = True

    def ended(self, leaf: nn.Parameter | None) -> None:
        """One of the passes is over; it has reached this parameter, if any is known."""
        self.n_open -= 1
        gradient = leaf.grad if leaf is not None else None
        if leaf is None or gradient is None:
            self._is_known = False
        elif not any(left.parameter is leaf and left.is_there for left in self._left):
            self._left.append(Left(leaf, weakref.ref(gradient), _address(gradient)))

    @property
    def is_gone(self) -> bool:
        """None of the gradients is where the passes left them."""
        if self.n_open or not self._is_known:
            return False
        return not any(left.is_there for left in self._left)

    def apply(self, owns: Callable[[nn.Parameter], bool]) -> None:
        """An update comes; who judges by a parameter that it leaves alone cannot say no."""
        if not self.was_applied and self.is_gone:
            self.was_applied = not all(owns(left.parameter) for left in self._left)
        else:
            self.was_applied = True
        if self.was_applied:  # torch swaps no gradient that somebody refers to
            self._left, self._is_known = [], False


def _address(gradient: Tensor) -> int:
    """Of its values; 0 where it has none of its own."""
    try:
        return gradient.data_ptr()
    except RuntimeError:
        return 0


def _destination() -> tuple[bool, nn.Parameter | None]:
    """Tell whether the pass that is running adds to the gradient of a leaf, and to which first.

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
    """Of an input, which holds what is large, nothing is kept."""
    variable = getattr(node, "variable", None)
    return variable if isinstance(variable, nn.Parameter) else None
