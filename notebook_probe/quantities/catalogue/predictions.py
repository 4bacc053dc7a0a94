"""Quantities of logits without the right answers: scale, doubt and confidence.

Classes are along the module's channel axis; each position is a separate prediction. A single
logit is that of class 1 against class 0. Sums are exact over the calls of a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import channel_axis, sample_blocks

__all__ = [
    "Predictions",
    "class_blocks",
    "confidence",
    "logit_logsumexp",
    "prediction_entropy",
    "predictions",
    "total",
]


@dataclass(slots=True)
class Predictions:
    """Sums over predictions; 0-d float64, on their device."""

    n: int
    logsumexp: Tensor
    entropy: Tensor
    confidence: Tensor

    @classmethod
    def of(cls, logits: Tensor) -> Predictions:
        """Measure logits (prediction, class)."""
        logs, top = logits.log_softmax(-1), logits.amax(-1)
        surest = logs.amax(-1)
        surprise = -logs.clamp(min=torch.finfo(logs.dtype).min)  # finite, as 0 ln 0 counts as 0
        return cls(
            len(logits),
            # ln Z = z_k - ln p_k, taken at the largest logit; infinite logits would give inf - inf.
            total(top.where(top.isinf(), top - surest)),
            total((logs.exp() * surprise).sum(-1)),
            total(surest.exp()),
        )

    def merge(self, other: Predictions) -> Predictions:
        """Return the sums over both."""
        return Predictions(
            self.n + other.n,
            self.logsumexp + other.logsumexp,
            self.entropy + other.entropy,
            self.confidence + other.confidence,
        )


@reduction("predictions", first_only=True)
def predictions(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Predictions:
    """Measure the logits in an output of ``module``.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> found = predictions(torch.zeros(2, 4), nn.Linear(3, 4))
    >>> float(found.confidence), round(float(found.entropy) / found.n, 4)
    (0.5, 1.3863)
    """
    values = readable(tensor)
    nothing = total(values.new_zeros(0))
    found = Predictions(0, nothing, nothing, nothing)
    for logits in class_blocks(values, channel_axis(module, torch.atleast_2d(values).shape)):
        found = found.merge(Predictions.of(logits))
    return found


def class_blocks(values: Tensor, axis: int) -> Iterator[Tensor]:
    """Yield rows (prediction, class) in float32 or wider; a single logit becomes two classes."""
    wide = values.dtype if values.is_floating_point() else torch.float32
    for block in sample_blocks(values, axis, wide):
        yield torch.cat([torch.zeros_like(block), block], 1) if block.size(1) == 1 else block


def total(values: Tensor) -> Tensor:
    """Sum in float64, where the device has it."""
    return values.sum() if values.device.type == "mps" else values.sum(dtype=torch.float64)


@quantity(source="https://arxiv.org/abs/2309.14322", question=questions.SPIKE)
def logit_logsumexp(output_predictions: Predictions) -> Tensor | float:
    """Scale of the logits, ``mean_i ln Z_i``, ``Z_i = sum_k exp(z_ik)``.

    The softmax does not see it, so that nothing holds it: it drifts, and far from 0 bf16 logits
    lose their digits and training diverges. The source keeps it near 0 with ``1e-4 log(Z)^2`` in
    the loss.

    Warnings
    --------
    Of logits, as they leave the last layer. Log-probabilities have 0 everywhere.
    """
    return output_predictions.logsumexp / output_predictions.n if output_predictions.n else math.nan


@quantity(units="nat", source="definition", question=questions.PROGRESS)
def prediction_entropy(output_predictions: Predictions) -> Tensor | float:
    """Doubt of the model, ``mean_i(-sum_k p_ik ln p_ik)``, ``p_i = softmax(z_i)``.

    ``ln`` of the number of classes for a guess, where training begins; 0 for certainty. At the
    first value again after a while: the model has collapsed to one answer for all.

    Warnings
    --------
    Of logits or log-probabilities, not of probabilities.
    """
    return output_predictions.entropy / output_predictions.n if output_predictions.n else math.nan


@quantity(source="https://arxiv.org/abs/1706.04599", question=questions.PROGRESS)
def confidence(output_predictions: Predictions) -> Tensor | float:
    """Confidence of the model in its answers, ``mean_i max_k p_ik``, ``p_i = softmax(z_i)``.

    Above its `accuracy` it is overconfident; `ece` measures by how much.

    Warnings
    --------
    Of logits or log-probabilities, not of probabilities.
    """
    n = output_predictions.n
    return output_predictions.confidence / n if n else math.nan
