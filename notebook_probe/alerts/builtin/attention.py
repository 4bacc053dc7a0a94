"""Attention that looks at one position alone, and logits that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from notebook_probe.alerts.rolling import Doubles, median
from notebook_probe.alerts.rule import rule

__all__ = ["attention_collapse", "attention_logit_growing", "attention_logit_large"]


@rule(
    says=(
        "the entropy of head {attn_narrowest_head:.0f} is {attn_entropy_share:.1%} of the largest "
        "there could be, and one has been so narrow since step {since}: it looks at one position"
    ),
    steps=40,
    view="heat",
    source="https://arxiv.org/abs/2303.06296",
    explained_by=("attn_head_entropy", "attn_max_logit", "attn_sink_share"),
    flow="forward",
    consequence_of=(
        "attention_logit_large",
        "attention_logit_growing",
        "early_divergence",
        "lr_high",
    ),
)
def attention_collapse(
    attn_entropy_share: Doubles,
    attn_narrowest_head: Doubles,
    loss: Doubles,
    *,
    first_loss: Doubles,
    least: float = 0.1,
    learned: float = 0.1,
) -> Any:
    """A head that looks at one position alone, and a loss that is no small part of the first ones.

    Where the answer is at one position, as in copying, a head should look at nothing else: the loss
    has fallen below ``learned`` of its first ones. One that has collapsed lets it fall no more.
    """
    has_learned = (loss >= 0) & (loss < learned * first_loss[:, None])
    return (attn_entropy_share < least) & (attn_narrowest_head >= 0) & ~has_learned


@rule(
    says=(
        "the largest attention logit of head {attn_max_logit_head:.0f} is {attn_max_logit:.0f}, "
        "above {most:g}: the softmax has no gradient there; normalize queries and keys"
    ),
    source="https://arxiv.org/abs/2309.14322",
    severity="severe",
    explained_by=("attn_head_max_logit", "attn_entropy_share", "weight_norm"),
    flow="forward",
    consequence_of=(
        "large_outputs",
        "attention_logit_growing",
        "attention_collapse",
        "exploding_gradient",
        "early_divergence",
        "lr_high",
    ),
)
def attention_logit_large(
    attn_max_logit: Doubles, attn_max_logit_head: Doubles, most: float = 50.0
) -> Any:
    """Logits at which the softmax has no gradient."""
    return (attn_max_logit > most) & (attn_max_logit_head >= 0)


@rule(
    says=(
        "the largest attention logit is {attn_max_logit:.0f}, of head {attn_max_logit_head:.0f}, "
        "and has grown by a factor of "
        "{factor:g} or more in each of the last two thirds of {window:.0f} rows"
    ),
    source="https://arxiv.org/abs/2309.14322",
    explained_by=("attn_head_max_logit", "attn_entropy_share", "weight_norm"),
    flow="forward",
    consequence_of=(
        "early_divergence",
        "lr_high",
    ),
)
def attention_logit_growing(
    attn_max_logit: Doubles,
    attn_max_logit_head: Doubles,
    least: float = 20.0,
    factor: float = 1.2,
    window: int = 149,
) -> Any:
    """Logits that grow from window to window."""
    part = (int(window) + 1) // 3
    out = np.zeros(attn_max_logit.shape, bool)
    large = np.argwhere((attn_max_logit > least) & (attn_max_logit_head >= 0))
    for row, module in large[large[:, 0] >= 3 * part - 1]:
        thirds = attn_max_logit[row + 1 - 3 * part : row + 1, module].reshape(3, part)
        first, second, third = median(thirds, axis=1)
        out[row, module] = second > factor * first and third > factor * second
    return out
