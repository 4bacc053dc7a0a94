"""Linear layers that follow each other in the graph of a loss, with nothing between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import past_shapes

__all__ = ["n_stacked"]

PRODUCTS = ("AddmmBackward0", "MmBackward0")
LEAF = "torch::autograd::AccumulateGrad"
MOST_NODES = 200
"""Nodes from the loss on among which the last layer is looked for."""


def n_stacked(root: Node) -> int:
    """Return how many linear layers lead from the input to the loss, if nothing else does.

    0 where any other operation is between them, and where one is narrower than what comes in and
    goes out: a low rank is intended.
    """
    shapes = [*_shapes(_last_product(root))]
    if len(shapes) < 2 or () in shapes:
        return 0
    (n_out, _), (_, n_in) = shapes[0], shapes[-1]
    narrowest = min(shape[0] for shape in shapes[1:])
    return 0 if narrowest < min(n_in, n_out) else len(shapes)


def _last_product(root: Node) -> Node | None:
    """Return the matrix product that is nearest to the loss."""
    waiting, seen = deque([root]), {root}
    while waiting and len(seen) < MOST_NODES:
        node = waiting.popleft()
        if node.name() in PRODUCTS:
            return node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return None


def _shapes(node: Node | None) -> Iterator[tuple[int, ...]]:
    """Yield the shape of each layer's weight, from the last one on; () of anything else."""
    while (node := past_shapes(node)) is not None and node.name() != LEAF:
        given = [one for one, _ in node.next_functions]
        weight = _weight(given[-1]) if node.name() in PRODUCTS else None
        yield tuple(weight.shape) if weight is not None else ()
        node = given[-2] if weight is not None else None


def _weight(node: Node | None) -> Tensor | None:
    """Return the parameter whose transpose a product takes."""
    if node is None or node.name() != "TBackward0":
        return None
    variable = getattr(node.next_functions[0][0], "variable", None)
    return variable if isinstance(variable, Tensor) and variable.ndim == 2 else None
