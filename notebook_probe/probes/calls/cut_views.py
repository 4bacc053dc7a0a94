"""Tensors that are views: gradients of the whole as those of a part, and the other way round.

A module may return a part of its input: a slice, a transposed slice, a diagonal.

An operation that later changes such a view in place takes the nodes between it and the input out
of the graph. So the gradient is read at the view itself, and put at the view's place in the input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

__all__ = ["Narrowed", "Widened", "cut_view"]


def cut_view(given: Tensor, edge: GradientEdge, outputs: Sequence[Tensor]) -> Tensor | None:
    """Return the one output that is a part of an input; None where there is none, or several."""
    if any(step == 0 and size > 1 for size, step in zip(given.size(), given.stride(), strict=True)):
        return None  # its elements overlap in memory
    base = given if given._base is None else given._base
    found = [
        output
        for output in outputs
        if output.requires_grad
        and output._base is base
        and _leads_to(edge, get_gradient_edge(output).node)
    ]
    return found[0] if len(found) == 1 else None


def _leads_to(edge: GradientEdge, node: Node) -> bool:
    """Return whether a chain of views leads from ``node`` to the edge."""
    while len(node.next_functions) == 1 and node.name() != "CopySlices":
        next_node, output_nr = node.next_functions[0]
        if next_node is None:
            return False
        if next_node == edge.node and output_nr == edge.output_nr:
            return True
        node = next_node
    return False


class Widened:
    """Conversion of a view's gradient to that of the whole input: zero outside the view."""

    __slots__ = ("_offset", "_view", "_whole")

    def __init__(self, view: Tensor, whole: Tensor) -> None:
        self._view, self._whole = (view.size(), view.stride()), (whole.size(), whole.stride())
        self._offset = view.storage_offset() - whole.storage_offset()

    def __call__(self, gradient: Tensor) -> Tensor:
        size, stride = self._whole
        n = 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        places = torch.arange(n, device=gradient.device).as_strided(*self._view, self._offset)
        flat = gradient.new_zeros(n).index_add_(0, places.reshape(-1), gradient.reshape(-1))
        return flat.as_strided(size, stride)


class Narrowed:
    """Conversion of the gradient of a view's base to that of the view."""

    __slots__ = ("_base", "_view")

    def __init__(self, view: Tensor, base: Tensor) -> None:
        offset = view.storage_offset() - base.storage_offset()
        self._view = view.size(), view.stride(), offset
        self._base = base.size(), base.stride()

    def __call__(self, gradient: Tensor) -> Tensor:
        laid_out = torch.empty_strided(*self._base, dtype=gradient.dtype, device=gradient.device)
        return laid_out.copy_(gradient.detach()).as_strided(*self._view)
