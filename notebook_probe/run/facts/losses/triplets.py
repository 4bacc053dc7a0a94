"""Facts about triplet losses: which of two distances is the larger one, before and after learning.

A network that has not learned mirrors the distances of its inputs, of which those within a class
are usually the smaller ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import past_shapes
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.loss_ends import links, saved_tensor

__all__ = ["TripletOrder"]

RULE = "triplet_order"
DISTANCES = ("NormBackward", "LinalgVectorNormBackward", "SqrtBackward")
OF_SQUARES = ("SumBackward1", "MeanBackward1")
"""Nodes that make a squared distance of the squares of each difference."""
RELU = "ReluBackward0"
FEWEST = 8
"""Triplets of a batch that are enough to compare distances."""
N_FIRST, N_LAST = 3, 5
"""Readings of a network that has hardly learned, and readings in a row that show a plateau."""


@dataclass(frozen=True)
class _Distances:
    """Average distances of a batch, and how certain it is which one is larger.

    Attributes
    ----------
    step : int
    small, large : float
        Distances that are to become small and large.
    deviations : float
        By how many standard errors the first one is larger.
    margin : float
    """

    step: int
    small: float
    large: float
    deviations: float
    margin: float


class TripletOrder:
    """Fact about the order of anchor, positive and negative.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._n_reversed = 0
        self._last: deque[_Distances] = deque(maxlen=N_LAST)

    def read(self, root: Node, step: int) -> None:
        """Read both distances of a hinge, on the training thread."""
        for node in links(root):
            is_clamp = node.name() == "ClampBackward1" and getattr(node, "_saved_min", None) == 0
            if is_clamp or node.name() in ("ClampMinBackward0", RELU):
                found = _distances(node)
                if found is not None:
                    self._later.read(_numbers(*found), partial(self._judge, step))
                return

    def _judge(self, step: int, read: Sequence[Any]) -> None:
        small, large, spread, n, margin = read
        deviations = (small - large) / max(spread / n**0.5, 1e-12)
        self._last.append(_Distances(step, small, large, deviations, margin))
        bounds = [self._findings.threshold(RULE, one) for one in ("deviations", "share", "span")]
        most, share, span = bounds
        first, last = self._last[0], self._last[-1]
        self._n_reversed += deviations > most
        words = {"small": f"{small:.2g}", "large": f"{large:.2g}"}
        if self._n_reversed == len(self._last) == N_FIRST:
            what = "already before the network has learned, the distance that is to be small is"
            self._say(step, words | {"what": what, "how": "larger than"})
        is_equal = all(abs(one.small - one.large) < share * one.margin for one in self._last)
        if is_equal and len(self._last) == N_LAST and last.step - first.step >= span:
            what = f"since step {first.step} the distance that is to be small has been"
            self._say(step, words | {"what": what, "how": "equal to"})

    def _say(self, step: int, words: Mapping[str, object]) -> None:
        self._findings.say(RULE, step, words=words)


def _distances(hinge: Node) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return both distances and what is above the margin; None of another loss, or chosen pairs."""
    difference = past_shapes(hinge.next_functions[0][0])
    # A ReLU saves what it returns, which is the same above 0.
    given = saved_tensor(hinge, "result" if hinge.name() == RELU else "self")
    difference = _past_sums(difference)
    if given is None or difference is None or difference.name() != "SubBackward0":
        return None
    sides = [_past_sums(past_shapes(one)) for one, _ in difference.next_functions]
    made = [None if one is None else _made(one) for one in sides]
    if len(made) != 2 or made[0] is None or made[1] is None:
        return None
    is_plain = made[0].shape == made[1].shape == given.shape and given.numel() >= FEWEST
    return (made[0], made[1], given) if is_plain else None


def _made(node: Node) -> Tensor | None:
    """Return distances, or their squares, which are sums or means of saved differences."""
    if node.name().startswith(DISTANCES):
        return saved_tensor(node, "result")
    square = node.next_functions[0][0] if node.name() in OF_SQUARES else None
    if square is None or square.name() != "PowBackward0":
        return None
    difference = saved_tensor(square, "self")
    if getattr(square, "_saved_exponent", None) != 2 or difference is None:
        return None
    squares, dims = difference.detach().square(), node._saved_dim  # type: ignore[attr-defined]
    last = tuple(one - 2**64 if one >= 2**63 else one for one in dims)  # torch drops the sign
    return squares.sum(last) if node.name() == OF_SQUARES[0] else squares.mean(last)


def _past_sums(node: Node | None) -> Node | None:
    """Return the first node from this one on that does not add a constant, such as the margin."""
    while node is not None and node.name().startswith("AddBackward"):
        live = [one for one, _ in node.next_functions if one is not None]
        node = past_shapes(live[0]) if len(live) == 1 else None
    return node


def _numbers(small: Tensor, large: Tensor, given: Tensor) -> list[Tensor]:
    small, large = small.detach().double(), large.detach().double()
    apart = small - large
    n = apart.new_tensor(float(apart.numel()))
    is_positive = given.detach() > 0
    margin = ((given.detach().double() - apart) * is_positive).sum() / is_positive.sum()
    return [small.mean(), large.mean(), apart.std(), n, margin]
