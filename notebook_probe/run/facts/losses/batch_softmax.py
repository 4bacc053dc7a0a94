"""Attention whose softmax runs over the samples: what it weighs is another batch for each product.

The first operand of a batched product is ``(batch, row, inner)``: weights that it averages with sum
to one over the inner dimension, which is their last one.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import past_shapes

__all__ = ["dimension_of", "shape_of", "softmax_over_batch"]

BETWEEN = ("ExpandBackward0", "NativeDropoutBackward0", "MulBackward0", "DivBackward0")
"""Nodes between a softmax and a product, such as dropout."""


def softmax_over_batch(nodes: Iterable[Node]) -> tuple[int, ...] | None:
    """Return the shape of a softmax over the first dimension that a batched product weighs with."""
    for node in nodes:
        if node.name() == "BmmBackward0":
            softmax = _softmax(node.next_functions[0][0])
            shape = () if softmax is None else shape_of(softmax)
            is_of_several = len(shape) > 2 and shape[0] > 1
            if softmax is not None and is_of_several and dimension_of(softmax, len(shape)) == 0:
                return shape
    return None


def dimension_of(softmax: Node, n_dims: int) -> int:
    """Return the dimension of a softmax, counted from the first one."""
    dim: int = getattr(softmax, "_saved_dim", -1)
    return (dim - 2**64 if dim >= 2**63 else dim) % n_dims  # torch returns -1 without its sign


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the shape of a node's result, which is not read; empty if torch does not say."""
    metadata = getattr(node, "_input_metadata", ())
    return tuple(metadata[0].shape) if metadata else ()


def _softmax(node: Node | None) -> Node | None:
    """Return the softmax that a product takes its first operand from."""
    node = past_shapes(node)
    while node is not None and node.name() in BETWEEN:
        live = [one for one, _ in node.next_functions if one is not None]
        node = past_shapes(live[0]) if len(live) == 1 else None
    return node if node is not None and node.name() == "SoftmaxBackward0" else None
