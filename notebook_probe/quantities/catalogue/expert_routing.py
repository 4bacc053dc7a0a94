"""Quantities of a mixture of experts: whether its router uses all of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.questions import COLLAPSE
from notebook_probe.quantities.reduce.reductions import Traced, reduction
from notebook_probe.quantities.reduce.samples import samples, traced_rows

__all__ = [
    "Winners",
    "dead_expert_fraction",
    "router_load",
    "router_load_entropy",
    "router_max_violation",
    "winners",
]


@dataclass(slots=True)
class Winners:
    """Number of rows whose largest value is in each channel; float64 (channel,)."""

    counts: Tensor

    def merge(self, other: Winners) -> Winners:
        """Return the counts over the rows of both."""
        if self.counts.shape != other.counts.shape:
            raise QuantityError(
                f"calls with {len(self.counts)} and with {len(other.counts)} channels in one step "
                f"have no common channels"
            )
        return Winners(self.counts + other.counts)


def _traced(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Tensor:
    rows = traced_rows(tensor, module)
    largest = rows.max(1)
    is_winner = largest.indices[:, None] == torch.arange(rows.shape[1], device=rows.device)
    return (is_winner & ~largest.values.isnan()[:, None]).sum(0).double()


def _of_sums(sums: Tensor, n: int, wanted: frozenset[str]) -> Winners:
    return Winners(sums)


@reduction("winners", first_only=True, traced=Traced(_traced, _of_sums))
def winners(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Winners:
    """Count which channel is the largest of each sample or position; one with NaN is left out.

    Examples
    --------
    >>> winners(torch.tensor([[0.0, 1.0], [3.0, 2.0], [0.0, 5.0]]), nn.Linear(2, 2)).counts
    tensor([1., 2.], dtype=torch.float64)
    """
    width, blocks = samples(tensor, module)
    counts = torch.zeros(width, dtype=torch.float64, device=tensor.device)
    for rows in blocks:
        largest = rows.max(1)  # NaN where one is
        counts.index_add_(0, largest.indices, (~largest.values.isnan()).to(counts))
    return Winners(counts)


@quantity(
    source="definition; loads of eq. 5 in https://arxiv.org/abs/2101.03961", question=COLLAPSE
)
def router_load_entropy(output_winners: Winners) -> Tensor:
    """Evenness of a router's use of its experts, ``-sum_e l_e ln l_e / ln E`` of all ``E``.

    Attached at the module that gives the router's scores; ``l_e`` is the share of tokens whose
    largest score is that of expert ``e``. 1 where all are used alike, 0 where one has every token:
    the router has collapsed.

    Warnings
    --------
    Only the first choice of a token counts; with a second one loads are more even. A batch of few
    tokens cannot reach all experts.
    """
    counts = output_winners.counts
    share = counts / counts.sum()
    # xlogy counts an unused expert as 0 ln 0 = 0.
    return -torch.special.xlogy(share, share).sum() / torch.log(torch.tensor(float(len(counts))))


@quantity(
    axis=PER_CHANNEL,
    source="f_i of eq. 5 in https://arxiv.org/abs/2101.03961",
    question=COLLAPSE,
    bounds=(0, 1),
)
def router_load(output_winners: Winners) -> Tensor:
    """Share of the tokens that goes to each expert, ``l_e = #{argmax = e} / n``.

    A vector, one number per expert, attached at the module that gives the router's scores. All are
    ``1 / E`` where experts are used alike; it names the experts that are crowded or idle.

    Warnings
    --------
    Only the first choice of a token counts.
    """
    counts = output_winners.counts
    return counts / counts.sum()


@quantity(source="MaxVio of https://arxiv.org/abs/2408.15664", question=COLLAPSE)
def router_max_violation(output_winners: Winners) -> Tensor:
    """Excess of the most crowded expert over an even load, ``E max_e l_e - 1``.

    0 where all experts are used alike, ``E - 1`` where one has every token. With experts on several
    devices the slowest one sets the pace: at 1 a step waits for twice the even load.

    Warnings
    --------
    Only the first choice of a token counts. A batch of few tokens is never even.
    """
    counts = output_winners.counts
    return counts.max() * len(counts) / counts.sum() - 1


@quantity(source="definition", question=COLLAPSE, bounds=(0, 1))
def dead_expert_fraction(output_winners: Winners) -> Tensor:
    """Share of the experts that no token of the step chooses, ``#{l_e = 0} / E``.

    An expert without tokens gets no gradient, so it stays behind: what begins as chance becomes
    permanent.

    Warnings
    --------
    Only the first choice of a token counts. With fewer tokens than experts some are always idle.
    """
    counts = output_winners.counts
    # Without any token, as of scores that are NaN, nothing is known.
    return (counts == 0).double().mean() + 0 * counts.sum().log()
