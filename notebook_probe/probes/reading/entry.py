"""Entry of a call into the graph of gradients, and the nodes that send its inputs theirs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from notebook_probe.errors import UnreadableError

__all__ = [
    "Entry",
    "GivenInput",
    "base_of",
    "is_returned",
    "is_view",
    "key_of",
    "links_of",
    "mark_entry",
]

MAX_NODES = 20_000
"""A module whose graph is larger has a gap here: the walk would cost more than it tells."""


@dataclass(slots=True)
class GivenInput:
    """Input at the beginning of a call; in-place changes leave other edges behind."""

    tensor: Tensor
    edge: GradientEdge
    base_edge: GradientEdge | None
    """Edge of the tensor that this one is a view of."""
    version: int

    @classmethod
    def of(cls, tensor: Tensor) -> GivenInput:
        base = tensor._base
        is_of_graph = base is not None and base.grad_fn is not None
        base_edge = get_gradient_edge(base) if base is not None and is_of_graph else None
        return cls(tensor, get_gradient_edge(tensor), base_edge, tensor._version)

    @property
    def has_changed(self) -> bool:
        return self.tensor._version != self.version

    def edges(self) -> list[GradientEdge]:
        """Return the edges to which the call sends the input's gradient.

        An operation that changes a view in place stands between its base and what comes later.
        """
        through = self.base_edge if self.has_changed else None
        return [self.edge] if through is None else [self.edge, through]


@dataclass(slots=True)
class Entry:
    """Entry of a call into the graph: its inputs, and the number of its first node."""

    inputs: list[GivenInput]
    sequence: int


def mark_entry(inputs: list[Tensor]) -> Entry | None:
    """Remember where a call begins; None when no input needs a gradient."""
    given = [GivenInput.of(tensor) for tensor in inputs if tensor.requires_grad]
    return Entry(given, torch._C._autograd._get_sequence_nr()) if given else None


def base_of(tensor: Tensor) -> Tensor:
    """Return the tensor that one is a view of, or itself."""
    return tensor if tensor._base is None else tensor._base


def is_view(output: Tensor, given: Tensor) -> bool:
    """Return whether an output is a view of what an input is, or of what that is a view of."""
    return output._base is not None and output._base is base_of(given)


def links_of(entry: Entry, outputs: list[Tensor]) -> dict[tuple[int, int], list[tuple[Node, int]]]:
    """Return the nodes of a call that send to an input, each with a position, by the input's edge.

    Raises
    ------
    UnreadableError
        The call has too many nodes to be walked.
    """
    wanted = {key_of(edge) for given in entry.inputs for edge in given.edges()}
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
            key = id(next_node), output_nr
            if key in wanted:
                found.setdefault(key, []).append((node, position))
            waiting.append(next_node)
    return found


def key_of(edge: GradientEdge) -> tuple[int, int]:
    """Return what `links_of` knows an edge by."""
    return id(edge.node), edge.output_nr


def is_returned(output: Tensor, given: GivenInput) -> bool:
    """Return whether an output is an input, unchanged or seen in another shape.

    Then what reaches the output is what is sent to the input, and an in-place operation behind
    the module would take the node between them out of the graph.
    """
    if not output.requires_grad:
        return False
    is_whole = is_view(output, given.tensor) and output.numel() == given.tensor.numel()
    is_same = is_whole and not given.has_changed
    return is_same or get_gradient_edge(output) == given.edge
