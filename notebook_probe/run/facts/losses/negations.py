"""Signs of a loss: the negative of one that is never below 0 has no floor."""

from __future__ import annotations

from collections.abc import Iterable, Set

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import past_shapes
from notebook_probe.run.facts.losses.loss_ends import LONGEST_CHAIN, links

__all__ = ["is_in_front", "negation"]

FLOORED = ("NllLoss", "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy")
"""Losses that are never below 0."""
DISTANCES = (
    *("NormBackward", "LinalgVectorNormBackward", "SqrtBackward"),
    *("CdistBackward", "EuclideanDistBackward"),  # of up to 25 rows, and of more
)
LAYERS = ("Addmm", "Mm", "Convolution", "Bmm", "Baddbmm")
TURNS = ("TBackward0", "TransposeBackward0", "PermuteBackward0")
READINGS_OF_A_FACTOR = 3
"""Readings in a row with a factor of -1: in a single one it may be a reward."""


def negation(root: Node) -> int:
    """Return how many readings with this sign tell of a mistake; 0 if the sign is right."""
    sign, readings = 1, 1
    for node in links(root, LONGEST_CHAIN):
        name = node.name()
        if name.startswith(FLOORED) or _is_hinge_of_distances(node):
            return readings if sign < 0 else 0
        if name == "NegBackward0":
            sign = -sign
        elif name in ("MulBackward0", "DivBackward0") and _factor(node) in (1, -1):
            sign, readings = sign * int(_factor(node)), READINGS_OF_A_FACTOR
        elif name not in ("MeanBackward0", "SumBackward0", "IndexBackward0"):
            return 0
    return 0


def is_in_front(nodes: Iterable[Node], known: Set[int]) -> bool:
    """Return whether all layers of a graph are of another network than these parameters are.

    So it is where a perturbation of a network's inputs alone is watched.
    """
    layers = [node for node in nodes if node.name().startswith(LAYERS)]
    given = [_unturned(one) for node in layers for one, _ in node.next_functions]
    return bool(layers) and not any(id(getattr(one, "variable", None)) in known for one in given)


def _unturned(node: Node | None) -> Node | None:
    """Return the first node from this one on that neither reshapes nor transposes."""
    node = past_shapes(node)
    is_turn = node is not None and node.name() in TURNS
    return past_shapes(node.next_functions[0][0]) if node is not None and is_turn else node


def _is_hinge_of_distances(node: Node) -> bool:
    """Return whether a node is a triplet loss: how much farther one distance is than another."""
    is_clamp = node.name() in ("ClampMinBackward0", "ClampBackward1")
    is_hinge = node.name() == "ReluBackward0" or (
        is_clamp and getattr(node, "_saved_min", None) == 0
    )
    below = _past_margin(node.next_functions[0][0]) if is_hinge else None
    if below is None or below.name() != "SubBackward0":
        return False
    sides = [_past_margin(one) for one, _ in below.next_functions]
    return all(one is not None and one.name().startswith(DISTANCES) for one in sides)


def _past_margin(node: Node | None) -> Node | None:
    """Return the first node from this one on that neither adds a constant nor picks pairs."""
    node = past_shapes(node)
    while node is not None and node.name().startswith(("AddBackward", "IndexBackward")):
        live = [one for one, _ in node.next_functions if one is not None]
        node = past_shapes(live[0]) if len(live) == 1 else None
    return node


def _factor(node: Node) -> float:
    """Return the number that a product has as its second factor; 0 if it is no number."""
    other = getattr(node, "_saved_other", None)
    # On the host: an accelerator would have to be waited for.
    if not isinstance(other, Tensor) or other.dim() or other.requires_grad or not other.is_cpu:
        return 0.0
    return float(other)
