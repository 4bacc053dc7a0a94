"""Predictions against the right answers, which the loop hands over: ``run.batch(targets=y)``.

All are of the samples of the due step, or of the whole evaluation, pooled exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.quantities.catalogue.labelled_logits import Labelled, labelled
from notebook_probe.quantities.catalogue.predictions import total
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity

__all__ = ["Accuracy", "Ece", "El2n"]

BINS = 15
"""Number of bins of equal width, as in the source."""


class _Mean:
    """The mean of something over the labelled predictions."""

    def reset(self) -> None:
        self._sum: Tensor | None = None
        self._n: Tensor | None = None

    def update(self, output: Tensor, batch_targets: Tensor) -> None:
        for found in labelled(output, batch_targets):
            values = torch.where(found.counts, self.of(found), 0.0)
            more, n = total(values), total(found.counts)
            self._sum = more if self._sum is None else self._sum + more
            self._n = n if self._n is None else self._n + n

    def of(self, found: Labelled) -> Tensor:
        """A number for each prediction."""
        raise NotImplementedError

    def compute(self) -> Tensor | None:
        return None if self._sum is None or self._n is None else self._sum / self._n


@window_quantity(samples="step", source="definition", question=questions.PROGRESS, bounds=(0, 1))
class Accuracy(_Mean):
    """Share of predictions that are right, ``#(argmax_k z_ik = y_i) / n``.

    With ``phase="eval"`` that of a validation set, all its batches together.

    Warnings
    --------
    Negative targets (such as -100) are left out. It needs ``run.batch(targets=y)`` before the
    forward pass.
    """

    def of(self, found: Labelled) -> Tensor:
        return found.is_right.to(found.logits.dtype)


@window_quantity(samples="step", source="https://arxiv.org/abs/2107.07075", question=questions.DATA)
class El2n(_Mean):
    """Error of the predicted distribution, ``mean_i ||p_i - onehot(y_i)||_2``.

    From 0 for certain and right to ``sqrt(2)`` for certain and wrong. Where it stays high while the
    loss falls, some samples are not learned: look at `worst_samples`.

    Warnings
    --------
    The source averages a sample's score over several trained networks; this is the mean over a
    batch of one.
    """

    def of(self, found: Labelled) -> Tensor:
        off = found.logits.softmax(-1)
        # p - onehot(y) in place, without a second tensor of that size.
        off.scatter_add_(1, found.labels[:, None], torch.full_like(off[:, :1], -1.0))
        return off.norm(dim=-1)


@window_quantity(
    samples="step", source="https://arxiv.org/abs/1706.04599", question=questions.PROGRESS
)
class Ece:
    """Expected calibration error, ``sum_b (n_b / n) |accuracy_b - confidence_b|``.

    Over 15 bins of equal width of the confidence ``max_k p_k``. 0 where of all answers given with
    70 % confidence 70 % are right. Networks that fit their data perfectly are mostly
    overconfident.

    Warnings
    --------
    Of few samples it is too large, as every bin has noise: attach it with ``phase="eval"``, where
    all batches of an evaluation count together.
    """

    def reset(self) -> None:
        self._bins: Tensor | None = None

    def update(self, output: Tensor, batch_targets: Tensor) -> None:
        for found in labelled(output, batch_targets):
            sure = found.logits.softmax(-1).amax(-1)
            if self._bins is None:
                wide = sure.dtype if sure.device.type == "mps" else torch.float64
                self._bins = torch.zeros(3, BINS, dtype=wide, device=sure.device)
            # Bins are open below and closed above, as in the source. A NaN must fall into some bin,
            # which then makes the result NaN.
            place = (torch.nan_to_num(sure) * BINS).ceil().long().clamp(1, BINS) - 1
            rows = torch.stack([torch.ones_like(sure), sure, found.is_right.to(sure.dtype)])
            rows = torch.where(found.counts, rows, 0.0)
            self._bins.index_add_(1, place, rows.to(self._bins.dtype))

    def compute(self) -> Tensor | None:
        if self._bins is None:
            return None
        n, sure, right = self._bins
        return (right - sure).abs().sum() / n.sum()
