"""The losses of single samples, which the loop hands over: ``run.batch(losses=losses)``.

A loss function gives them with ``reduction="none"``; the mean of them is what it gives otherwise.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.quantiles import LEVELS, QUANTILES, Sample, Vector
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import sent

__all__ = ["WorstSampleLosses", "WorstSamples", "losses_of", "sample_loss_quantiles"]

N_WORST = 8

NTH = Axis("nth_worst", {"nth_worst": tuple(map(float, range(N_WORST)))}, group="worst")
"""The worst sample is number 0."""


def losses_of(batch_losses: Tensor) -> Tensor:
    """Return one loss per sample, float64 (n,); of a sample with many, such as tokens, their mean.

    Examples
    --------
    >>> losses_of(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [2.0, 0.0]
    """
    losses = torch.atleast_1d(batch_losses.detach())
    wide = torch.float32 if losses.device.type == "mps" else torch.float64
    return losses.to(wide).flatten(1).mean(1) if losses.dim() > 1 else losses.to(wide).clone()


@quantity(axis=QUANTILES, source="definition", question=questions.DATA)
def sample_loss_quantiles(batch_losses_sample: Sample) -> Vector:
    """Spread of the loss over samples, ``F^-1(q)`` at 1, 5, 25, 50, 75, 95 and 99 %.

    Training that goes well moves the whole spread down. A top that stays where it was: hard or
    wrongly labelled samples, which `worst_samples` names. All micro-batches of a step together.

    Warnings
    --------
    Of a batch the outer ones are of single samples. Losses that come per token are taken as they
    are. Missing where one is NaN.
    """
    return batch_losses_sample.quantiles(np.array(LEVELS))


class _Worst:
    """Indices and losses of the samples with the largest losses, the worst first."""

    def reset(self) -> None:
        self._pairs: Tensor | None = None

    def update(self, batch_losses: Tensor, batch_indices: Tensor) -> None:
        losses = losses_of(batch_losses)
        indices = sent(batch_indices.detach(), losses.device).reshape(-1)
        if len(indices) != len(losses):
            raise QuantityError(
                f"{len(indices)} indices for {len(losses)} losses; one of each per sample is "
                f"expected"
            )
        # One tensor, so that one sort moves both; indices are exact in float64.
        pairs = torch.stack([losses, indices.to(losses.dtype)])
        if self._pairs is not None:
            pairs = torch.cat([self._pairs, pairs], 1)
        # A NaN loss counts as the worst; stable, so that of equal losses the first stay.
        order = torch.nan_to_num(pairs[0], nan=torch.inf).argsort(descending=True, stable=True)
        self._pairs = pairs[:, order[:N_WORST]]

    def row(self, which: int) -> Tensor | None:
        """Return one row of the worst samples; NaN where there are fewer samples."""
        if self._pairs is None:
            return None
        found = self._pairs[which]
        return torch.cat([found, found.new_full((N_WORST - len(found),), torch.nan)])


@window_quantity(
    samples="step", axis=NTH, cost="sort", source="definition", question=questions.SPIKE
)
class WorstSamples(_Worst):
    """Samples with the largest losses, ``argsort(-L_i)``, the worst 8 of the step.

    Their indices in the data set, as the loop hands them over with the losses:
    ``run.batch(indices=i, losses=losses)``. A sample that comes back epoch after epoch is worth a
    look; at a spike these are its suspects. A loss that is NaN comes first.

    Warnings
    --------
    Stored in float32: indices above 16,777,216 are rounded.
    """

    def compute(self) -> Tensor | None:
        return self.row(1)


@window_quantity(
    samples="step", axis=NTH, cost="sort", source="definition", question=questions.SPIKE
)
class WorstSampleLosses(_Worst):
    """The largest losses of single samples, ``sort(-L_i)``: those of `worst_samples`.

    Far above the quantiles of `sample_loss_quantiles`, single samples drive the gradient.

    Warnings
    --------
    Of this step's samples alone: the hardest of the data set may be in another batch. Losses
    that come per token are averaged over their sample first.
    """

    def compute(self) -> Tensor | None:
        return self.row(0)
