"""Gradients of a module's inputs: the module's own share, not the total over all consumers.

A tensor hook on an input would give the total. Here the autograd nodes that feed the inputs from
inside the module are found when it returns, and what each sends is summed.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from notebook_probe.errors import UnreadableError
from notebook_probe.model.parameter_slots import weight_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.calls.cut_views import Widened, cut_view
from notebook_probe.probes.calls.output_gradients import InPlace, hook_output
from notebook_probe.probes.reading.attempt import attempt
from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode

__all__ = ["Entry", "hook_entry", "mark_entry"]

MAX_NODES = 20_000
"""A module whose graph is larger has a gap here: the walk would cost more than it tells."""


@dataclass(slots=True)
class Entry:
    """Where a call begins in the graph: its inputs' edges, and the number of its first node."""

    inputs: list[Tensor]
    edges: list[GradientEdge]
    sequence: int


def mark_entry(inputs: list[Tensor]) -> Entry | None:
    """Remember where a call begins; None when no input needs a gradient."""
    inputs = [tensor for tensor in inputs if tensor.requires_grad]
    edges = [get_gradient_edge(tensor) for tensor in inputs]
    return Entry(inputs, edges, torch._C._autograd._get_sequence_nr()) if edges else None


def hook_entry(
    entry: Entry, outputs: list[Tensor], plan: Plan, frame: StepFrame, module: nn.Module, call: int
) -> None:
    """Have what the module sends to its inputs read when it arrives.

    Raises
    ------
    UnreadableError
        The module's graph is too large to be walked.
    """
    links = _links(entry, outputs)
    for given, edge in zip(entry.inputs, entry.edges, strict=True):
        feeding = links.get(_key(edge.node, edge.output_nr), [])
        returned = [tensor for tensor in outputs if _is_returned(tensor, given, edge)]
        is_first = given is entry.inputs[0]
        share = _Share(len(feeding) or len(returned), plan, frame, module, call, is_first)
        for tensor in returned:
            hook_output(tensor, frame, share.add)
        if returned:
            continue
        # More than that one link, and what reaches the view's base is not the view's alone.
        view = cut_view(given, edge, outputs) if len(feeding) == 1 else None
        if view is not None:
            hook_output(view, frame, partial(share.add_part, Widened(view, given)))
            continue
        share.views += [InPlace(output) for output in outputs if _is_view(output, given)]
        for node, position in feeding:
            node.register_hook(_Sender(share, position))


def _is_returned(output: Tensor, given: Tensor, edge: GradientEdge) -> bool:
    """Tell whether an output is an input, unchanged or seen in another shape.

    Then what reaches the output is what is sent to the input, and an in-place operation behind
    the module would take the node between them out of the graph.
    """
    if not output.requires_grad:
        return False
    is_whole = _is_view(output, given) and output.numel() == given.numel()
    return get_gradient_edge(output) == edge or is_whole


def _is_view(output: Tensor, given: Tensor) -> bool:
    base = given if given._base is None else given._base
    return output._base is not None and output._base is base


def _links(entry: Entry, outputs: list[Tensor]) -> dict[tuple[int, int], list[tuple[Node, int]]]:
    """Nodes of this call that send to an input, and at which position, by the input's edge."""
    wanted = {_key(edge.node, edge.output_nr) for edge in entry.edges}
    found: dict[tuple[int, int], list[tuple[Node, int]]] = {}
    waiting = [get_gradient_edge(tensor).node for tensor in outputs if tensor.requires_grad]
    seen: dict[int, Node] = {}
    while waiting:
        node = waiting.pop()
        if id(node) in seen or node._sequence_nr() < entry.sequence:
            continue
        seen[id(node)] = node  # kept: a wrapper that is freed gives its id to the next
        if len(seen) > MAX_NODES:
            raise UnreadableError(f"more than {MAX_NODES} operations between output and input")
        for position, (next_node, output_nr) in enumerate(node.next_functions):
            if next_node is None:
                continue
            key = _key(next_node, output_nr)
            if key in wanted:
                found.setdefault(key, []).append((node, position))
            waiting.append(next_node)
    return found


def _key(node: Node, output_nr: int) -> tuple[int, int]:
    return id(node), output_nr


class _Share:
    """Sums what the links of one input send in one backward, and measures the sum."""

    __slots__ = (
        "_call", "_frame", "_into", "_is_first", "_module", "_n_come", "_plan", "_sum", "n_links",
        "views"
    )  # fmt: skip

    def __init__(
        self,
        n_links: int,
        plan: Plan,
        frame: StepFrame,
        module: nn.Module,
        call: int,
        is_first: bool,
    ) -> None:
        self.n_links, self._is_first = n_links, is_first
        self._plan, self._frame, self._call = plan, frame, call
        self._into: StepFrame | None = None
        self._module = weakref.ref(module)
        self.views: list[InPlace] = []
        """Outputs that are views of the input: changed in place, their links never come."""
        self._n_come = 0
        self._sum: Tensor | None = None

    def add(self, gradient: Tensor | None) -> None:
        if torch.compiler.is_compiling() or self._frame.closed or is_traced():
            return
        if self._n_come == 0:
            self._into = self._frame.receiver()
            if self.n_links > 1:  # one may never come
                torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        self._n_come += 1
        if gradient is not None:
            gradient = gradient.detach()
            self._sum = gradient if self._sum is None else self._sum + gradient
        if self._n_come == self.n_links:
            self._finish()

    def add_part(self, widened: Widened, gradient: Tensor | None) -> None:
        """Add the gradient of a view of the input."""
        if gradient is None or torch.compiler.is_compiling() or self._frame.closed or is_traced():
            return
        try:
            plain_mode(lambda: self.add(widened(gradient.detach())))
        except Exception as error:  # whatever a tensor is, the backward goes on
            self._frame.blame_all(self._plan.of("entry"), error)

    def _finish(self) -> None:
        is_whole = self._n_come == self.n_links or not any(one.has_changed() for one in self.views)
        total, self._sum, self._n_come = self._sum, None, 0
        module, plan, frame, self._into = self._module(), self._plan, self._into, None
        if total is None or module is None or frame is None or not is_whole or self._frame.closed:
            return
        frame.seconds += attempt(
            frame, plan, "entry", plain_mode, self._measure, frame, total, module
        )

    def _measure(self, frame: StepFrame, gradient: Tensor, module: nn.Module) -> None:
        plan = self._plan
        for cell in plan.cells.get("grad_input", ()):
            if self._is_first or not cell.first_only:
                cell.add(frame, gradient, module, self._call)
        for function in plan.at("entry") if self._is_first else ():  # as of the input, the first
            given = {
                "grad_input": gradient,
                "weight": weight_of(module),
                "module": unwrapped(module),
            }
            function.call(frame, given, self._call)


class _Sender:
    """A post-hook of one node: passes on what it sends to one of its inputs."""

    __slots__ = ("_position", "_share")

    def __init__(self, share: _Share, position: int) -> None:
        self._share, self._position = share, position

    def __call__(self, sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        self._share.add(sent[self._position])
