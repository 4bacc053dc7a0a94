"""Quantities of what a layer's outputs know of the classes, which the loop passes as targets.

One row per sample, over whose positions the output is averaged; or one per position, where every
position has a target.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.samples import channel_axis

__all__ = ["linear_probe_accuracy", "neural_collapse_nc1"]

RIDGE = 1e-3
"""Ridge penalty, relative to the mean squared length of a row."""


def _rows(output: Tensor, targets: Tensor, module: nn.Module | None) -> tuple[Tensor, Tensor]:
    """Features (row, channel) in float64 on the host, and their classes (row,)."""
    values = torch.atleast_2d(readable(output)).cpu().double()
    labels = targets.detach().cpu().reshape(-1)
    rows = values.movedim(channel_axis(module, values.shape), -1)
    if len(labels) == len(rows) and rows.dim() > 2:
        rows = rows.flatten(1, -2).mean(1)
    rows = rows.flatten(0, -2)
    if len(labels) != len(rows) or labels.is_floating_point():
        raise QuantityError(
            f"targets of shape {tuple(targets.shape)} and {targets.dtype} for an output of shape "
            f"{tuple(output.shape)}; one class index per sample or position is expected"
        )
    return rows[labels >= 0], labels[labels >= 0].unique(return_inverse=True)[1]


@quantity(
    cost="factorisation", source="https://arxiv.org/abs/2008.08186", question=questions.COLLAPSE
)
def neural_collapse_nc1(output: Tensor, batch_targets: Tensor, module: nn.Module) -> Tensor | None:
    """Spread within classes against that between them, ``tr(S_W pinv(S_B)) / C``.

    ``S_W`` and ``S_B`` are the covariances within and between the ``C`` classes of the batch. In
    the last layers it falls towards 0 once every sample is right: classes shrink to points.

    Warnings
    --------
    With few samples per class it is too small: take large batches. NaN for one class, or for
    classes with the same mean. The calls of a step are averaged. It is computed on the host, and
    waits for the device.
    """
    rows, classes = _rows(output, batch_targets, module)
    counts = torch.bincount(classes).double()
    if len(counts) < 2 or not rows.isfinite().all():
        return rows.new_tensor(torch.nan)
    means = torch.zeros(len(counts), rows.size(1), dtype=rows.dtype)
    means = means.index_add_(0, classes, rows) / counts[:, None]
    # pinv(S_B) by the singular vectors of the class means: S_B itself is as wide as the layer, and
    # squaring would lose half of the digits.
    _, stretch, axes = torch.linalg.svd(
        (means - rows.mean(0)) / len(counts) ** 0.5, full_matrices=False
    )
    if not stretch[0] > 0:
        return rows.new_tensor(torch.nan)
    # Means of C classes span at most C - 1 directions; the others hold rounding errors only.
    kept = stretch > stretch[0] * 1e-10
    within = ((rows - means[classes]) @ axes[kept].T) / stretch[kept]
    return within.square().sum(1).mean() / len(counts)


@quantity(
    cost="factorisation",
    source="https://arxiv.org/abs/1610.01644",
    question=questions.COLLAPSE,
    bounds=(0, 1),
)
def linear_probe_accuracy(output: Tensor, batch_targets: Tensor, module: nn.Module) -> Tensor:
    """Accuracy of a linear map from a layer's output to the classes, ``#(argmax = y) / n``.

    A ridge regression of one-hot classes is fitted to every second sample of the batch and judged
    on the others. It rises with depth where layers work towards the classes; a layer below the
    ones before it loses what they knew.

    Warnings
    --------
    Of a small batch it is noisy and too low; take large ones, and compare layers, not values. It is
    computed on the host, and waits for the device.
    """
    rows, classes = _rows(output, batch_targets, module)
    if len(rows) < 4 or not rows.isfinite().all():
        return rows.new_tensor(torch.nan)
    wanted = nn.functional.one_hot(classes).double()
    # The mean of the known half only: the other half must stay unseen until it is judged.
    middle = rows[::2].mean(0)
    known, new = rows[::2] - middle, rows[1::2] - middle
    # The dual form: as many unknowns as samples, however wide the layer is.
    inner = known @ known.T
    # Equal rows make the matrix singular, so there must always be some ridge.
    inner += torch.eye(len(known)) * (RIDGE * inner.trace().clamp(min=1e-30) / len(known))
    level = wanted[::2].mean(0)
    guesses = new @ known.T @ torch.linalg.solve(inner, wanted[::2] - level) + level
    return (guesses.argmax(1) == classes[1::2]).double().mean()
