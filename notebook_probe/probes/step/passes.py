"""The backward passes of a step: which of them are the training's.

One that accumulates into ``.grad`` is. One that returns gradients instead (`torch.autograd.grad`)
is if it is all there is: a loop may apply them itself. One whose gradients have a graph of their
own is not, as these are part of a loss: of a penalty, of a product with the Hessian.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

import torch
from torch.autograd.graph import Node

__all__ = ["BackwardKind", "Passes", "Reached"]

MOST_NODES = 32
"""A parameter is nearly always nearer; that of a pass towards an input alone may be far."""

_LEAF = "torch::autograd::AccumulateGrad"


class BackwardKind(Enum):
    """What becomes of the gradients of a backward pass."""

    ACCUMULATED = auto()
    RETURNED = auto()
    DIFFERENTIATED = auto()


class Reached(Protocol):
    """A part of a step that gradients may come back to."""

    has_gradient: bool


class Passes:
    """The backward passes that have come to one step, each known by torch's number."""

    def __init__(self) -> None:
        self._known: dict[int, _Pass] = {}

    def kind(self, part: Reached) -> BackwardKind:
        """Of the pass that is running, which has come to a part of the step."""
        number = torch._C._current_graph_task_id()
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = _Pass()
        found.reach(part)
        return found.kind

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
    def _ended(self) -> list[BackwardKind]:
        return [one.kind for one in [*self._known.values()] if one.has_ended]

    def clear(self) -> None:
        """Let go of the parts."""
        self._known.clear()


class _Pass:
    """A pass, as far as it has come; one that breaks off never ends."""

    __slots__ = ("_reached", "has_ended", "kind")

    def __init__(self) -> None:
        self.kind = BackwardKind.ACCUMULATED
        self.has_ended = False
        self._reached: list[Reached] = []
        try:
            torch.autograd.Variable._execution_engine.queue_callback(self._end)
            if not _accumulates():
                has_graph = torch.is_grad_enabled()
                self.kind = BackwardKind.DIFFERENTIATED if has_graph else BackwardKind.RETURNED
        except RuntimeError:  # torch knows of no pass, as where it has compiled the backward
            self.has_ended = True

    def reach(self, part: Reached) -> None:
        """It has come to a part of the step."""
        self._reached.append(part)
        part.has_gradient |= self.has_ended

    def _end(self) -> None:
        self.has_ended = True
        for part in self._reached:
            part.has_gradient = True
        self._reached.clear()


def _accumulates() -> bool:
    """Tell whether the pass that is running adds to the gradient of a leaf.

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
                return False
            if is_run and one.name() == _LEAF:
                return True
            if is_run:
                waiting.append(one)
    # Nothing was found near by: only a pass for certain tensors leaves some nodes out.
    engine = torch.autograd.Variable._execution_engine
    return bool(waiting) and bool(engine.is_checkpoint_valid())
