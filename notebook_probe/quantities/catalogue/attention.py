"""Quantities of attention: how evenly queries spread it, how large the scores are, what sinks it.

Worked out in the steps that are due, from the queries and keys of every
``scaled_dot_product_attention`` and ``nn.MultiheadAttention`` that a module's call computes, and
from every softmax over the last of three or more axes. Masked keys do not count, nor do queries
that may see none. All calls of a step count as one with all their queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.errors import QuantityError, UnreadableError
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.questions import ATTENTION
from notebook_probe.quantities.reduce.attention_scores import Attention, Products
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = [
    "Heads",
    "NormProducts",
    "attn_entropy",
    "attn_entropy_min",
    "attn_entropy_share",
    "attn_head_entropy",
    "attn_head_max_logit",
    "attn_head_sink_share",
    "attn_max_logit",
    "attn_max_logit_head",
    "attn_narrowest_head",
    "attn_sink_share",
    "heads",
    "norms",
    "qk_norm_product",
]

LOWEST = -1e4
"""The exponential of a lower number is 0 in every type, and its product with it is not NaN."""


@dataclass(slots=True)
class Heads:
    """Sums over the queries of each head; float64 (head,)."""

    n_queries: Tensor
    entropy: Tensor
    possible: Tensor
    """Entropy if every query looked equally at all keys that it may see."""
    first: Tensor
    """Shares of the first key."""
    largest: Tensor
    """Largest score; -inf of no query."""

    @classmethod
    def of(cls, scores: Tensor) -> Heads:
        """Measure the scores of a piece (batch, head, query, key), which are overwritten."""
        n_keys = (scores != -torch.inf).sum(-1)
        largest = scores.amax(-1)
        seeing = n_keys > 0
        # Shifted by the largest score, as a softmax that cannot overflow. NaN for a query that sees
        # no key, which over_queries leaves out.
        lower = scores.sub_(largest.unsqueeze(-1)).clamp_(min=LOWEST)
        weights = lower.exp()
        total = weights.sum(-1)
        # H = ln Z - sum(p l): unlike -sum(p ln p), it takes no logarithm of a weight that is 0.
        entropy = total.log() - (weights * lower).sum(-1) / total
        # MPS has no float64.
        wide = torch.float64 if scores.device.type != "mps" else torch.float32

        def over_queries(values: Tensor) -> Tensor:
            return values.to(wide).where(seeing, 0).sum((0, 2))

        return cls(
            n_queries=over_queries(seeing),
            entropy=over_queries(entropy),
            possible=over_queries(n_keys.to(wide).log()),
            first=over_queries(weights[..., 0] / total),
            largest=largest.amax((0, 2)).to(wide),
        )

    def merge(self, other: Heads) -> Heads:
        """Return the sums over the queries of both."""
        if self.entropy.shape != other.entropy.shape:
            raise QuantityError(
                f"attention of {len(self.entropy)} and of {len(other.entropy)} heads in one step "
                f"has no common heads"
            )
        return Heads(
            self.n_queries + other.n_queries,
            self.entropy + other.entropy,
            self.possible + other.possible,
            self.first + other.first,
            torch.maximum(self.largest, other.largest),
        )


def _misfit(module: nn.Module) -> str:
    """Torch's own modules that hold no others compute none, but for a softmax."""
    is_own = type(module).__module__.startswith("torch.nn.modules.")
    is_softmax = isinstance(module, nn.Softmax)
    return "computes no attention" if is_own and not is_softmax and not module._modules else ""


@reduction("heads", cost="forward", misfit=_misfit)
def heads(
    attention: Attention,
    module: nn.Module | None = None,
    wanted: frozenset[str] = frozenset(),
) -> Heads:
    """Measure the heads of an attention.

    Raises
    ------
    UnreadableError
        Anything but an attention, or one without any score.

    Examples
    --------
    >>> from notebook_probe.quantities.reduce.attention_scores import Products
    >>> alike = torch.zeros(1, 2, 5, 8)
    >>> found = heads(Products.of(alike, alike))
    >>> [round(share, 6) for share in (found.entropy / found.possible).tolist()]
    [1.0, 1.0]
    """
    if not isinstance(attention, Attention):
        raise UnreadableError(f"a {type(attention).__name__} has no attention heads")
    if 0 in attention.shape:
        raise UnreadableError(f"attention of shape {attention.shape} has no score")
    return reduce(Heads.merge, map(Heads.of, attention.pieces()))


@dataclass(slots=True)
class NormProducts:
    """The largest product of a query's and a key's norm in each head, scaled; float (head,)."""

    largest: Tensor

    def merge(self, other: NormProducts) -> NormProducts:
        """Return the larger ones of both."""
        if self.largest.shape != other.largest.shape:
            raise QuantityError(
                f"attention of {len(self.largest)} and of {len(other.largest)} heads in one step "
                f"has no common heads"
            )
        return NormProducts(torch.maximum(self.largest, other.largest))


@reduction("norms", cost="forward", misfit=_misfit)
def norms(
    attention: Attention,
    module: nn.Module | None = None,
    wanted: frozenset[str] = frozenset(),
) -> NormProducts:
    """Measure the norms of an attention's queries and keys.

    Raises
    ------
    UnreadableError
        Anything but an attention of queries and keys, or one without any score.

    Examples
    --------
    >>> from notebook_probe.quantities.reduce.attention_scores import Products
    >>> norms(Products.of(torch.ones(1, 2, 5, 4), torch.ones(1, 2, 3, 4))).largest.tolist()
    [2.0, 2.0]
    """
    if not isinstance(attention, Products):
        raise UnreadableError(
            f"a {type(attention).__name__} has no queries and keys, only what their products are"
        )
    if 0 in attention.shape:
        raise UnreadableError(f"attention of shape {attention.shape} has no score")
    return NormProducts(attention.norm_products())


@quantity(units="nat", source="https://arxiv.org/abs/2303.06296", question=ATTENTION)
def attn_entropy(attention_heads: Heads) -> Tensor:
    """Width of the queries' attention, ``mean_i(-sum_j p_ij ln p_ij)`` over all heads and queries.

    0 where each query looks at one key alone, ``ln n`` where it looks at ``n`` keys alike. Before a
    divergence it often falls to 0, in the first layers first.

    Warnings
    --------
    Under a causal mask the first queries can see few keys, so that even attention has less than
    ``ln n``; ``attn_entropy_share`` allows for that.
    """
    return _mean(attention_heads, attention_heads.entropy).mean()


@quantity(units="nat", source="https://arxiv.org/abs/2303.06296", question=ATTENTION)
def attn_entropy_min(attention_heads: Heads) -> Tensor:
    """Entropy of the head that looks least widely, ``min_h mean_i(-sum_j p_ij ln p_ij)``.

    A head that has collapsed hardly moves the mean of many; here it shows.

    Warnings
    --------
    Some heads of a healthy model look at one key only, such as the previous one; a fall tells more
    than a low value.
    """
    return _mean(attention_heads, attention_heads.entropy).amin()


@quantity(source="https://arxiv.org/abs/2303.06296", question=ATTENTION, bounds=(0, 1))
def attn_entropy_share(attention_heads: Heads) -> Tensor:
    """Entropy of the least wide head against even attention, ``min_h sum_i H_i / sum_i ln n_i``.

    ``n_i`` is the number of keys that query ``i`` may see. 1 where all look at all keys alike;
    below 0.1 for long, attention has collapsed. Missing where no query may see two keys.

    Warnings
    --------
    A key that is masked by a number above half the lowest of its type, such as -10000, counts as
    one that may be seen.
    """
    return (attention_heads.entropy / attention_heads.possible).amin()


@quantity(source="https://arxiv.org/abs/2309.14322", question=ATTENTION)
def attn_max_logit(attention_heads: Heads) -> Tensor:
    """Largest score that a query gives a key, ``max_ij q_i.k_j / sqrt(d)``, masks applied.

    Scores of 50 and more make the softmax pick a single key; a steady rise is an early sign of an
    instability. Missing where every key is masked.

    Warnings
    --------
    The scale is the module's own where it has one. A constant that is added to all scores of a
    query raises it and changes nothing.
    """
    return _largest(attention_heads).amax()


@quantity(source="https://arxiv.org/abs/2302.05442", question=ATTENTION)
def qk_norm_product(attention_norms: NormProducts) -> Tensor:
    """Largest score that queries and keys are long enough for, ``max_ij |q_i| |k_j| / sqrt(d)``.

    No score of ``attn_max_logit`` is larger. It rises before that does, as long as queries and keys
    do not point the same way yet; where both are normalized, it stands still.

    Warnings
    --------
    Masks do not count. Missing where scores are handed to a softmax without their queries and keys.
    """
    return attention_norms.largest.amax()


@quantity(source="https://arxiv.org/abs/2309.17453", question=ATTENTION, bounds=(0, 1))
def attn_sink_share(attention_heads: Heads) -> Tensor:
    """Attention that goes to the first key, ``mean_i p_i0`` over all heads, items and queries.

    Language models put much of it there when a head has nothing to do: an attention sink.

    Warnings
    --------
    With padding on the left the first key is masked, and the share is 0. A causal attention that
    attends equally to all of ``n`` keys has ``(1 + 1/2 + ... + 1/n) / n``.
    """
    return _mean(attention_heads, attention_heads.first).mean()


@quantity(source="https://arxiv.org/abs/2303.06296", question=ATTENTION)
def attn_narrowest_head(attention_heads: Heads) -> Tensor:
    """Number of the head that looks least widely, ``argmin_h sum_i H_i / sum_i ln n_i``, from 0.

    That of ``attn_entropy_share``, which says how narrow it is. The same head for long is one that
    has settled, or collapsed; where heads are alike it is one of them at random.

    Warnings
    --------
    Heads that were folded into the batch count as one, the head 0.
    """
    return _number_of(attention_heads.entropy / attention_heads.possible, torch.argmin)


@quantity(source="https://arxiv.org/abs/2309.14322", question=ATTENTION)
def attn_max_logit_head(attention_heads: Heads) -> Tensor:
    """Number of the head with the largest score, ``argmax_h max_ij q_i.k_j / sqrt(d)``, from 0.

    That of ``attn_max_logit``, which says how large it is. Where one head's scores grow, its
    queries and keys are the ones to look at.

    Warnings
    --------
    As of ``attn_max_logit`` and ``attn_narrowest_head``.
    """
    return _number_of(_largest(attention_heads), torch.argmax)


@quantity(
    units="nat", axis=PER_CHANNEL, source="https://arxiv.org/abs/2303.06296", question=ATTENTION
)
def attn_head_entropy(attention_heads: Heads) -> Tensor:
    """Width of the attention of each head's queries, ``mean_i(-sum_j p_ij ln p_ij)``.

    A vector, one number per head, in the module's order.

    Warnings
    --------
    An attention over three axes counts as a single head: heads that were folded into the batch
    cannot be distinguished.
    """
    return _mean(attention_heads, attention_heads.entropy)


@quantity(axis=PER_CHANNEL, source="https://arxiv.org/abs/2309.14322", question=ATTENTION)
def attn_head_max_logit(attention_heads: Heads) -> Tensor:
    """Largest score of each head, ``max_ij q_i.k_j / sqrt(d)``, masks applied.

    A vector, one number per head, in the module's order.

    Warnings
    --------
    As of ``attn_max_logit`` and ``attn_head_entropy``.
    """
    return _largest(attention_heads)


@quantity(
    axis=PER_CHANNEL, source="https://arxiv.org/abs/2309.17453", question=ATTENTION, bounds=(0, 1)
)
def attn_head_sink_share(attention_heads: Heads) -> Tensor:
    """Attention of each head that goes to the first key, ``mean_i p_i0``.

    A vector, one number per head, in the module's order.

    Warnings
    --------
    As of ``attn_sink_share`` and ``attn_head_entropy``.
    """
    return _mean(attention_heads, attention_heads.first)


def _mean(heads: Heads, sums: Tensor) -> Tensor:
    """Per query; NaN of a head without any."""
    return sums / heads.n_queries


def _number_of(values: Tensor, found: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the index of one head among all; NaN where one cannot be compared."""
    return found(values).double().where(~values.isnan().any(), torch.nan)


def _largest(heads: Heads) -> Tensor:
    return heads.largest.where(heads.n_queries > 0, torch.nan)
