"""Comparison of a module's output for the probe batch with its output at the first due step."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.compared_with_first import ComparedWithFirst
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import components, wide

__all__ = ["CkaToReference", "FeatureDrift"]


class _AgainstFirst(ComparedWithFirst):
    """Comparison of an output for the probe batch with that of the first step seen."""

    def update(self, probe_output: Tensor) -> None:
        if not self.is_lost:
            self.take(self.seen(wide(probe_output)))

    def seen(self, output: Tensor) -> Tensor:
        """Return the part of an output that is compared."""
        return output


@window_quantity(
    samples="due", source="https://arxiv.org/abs/2203.03466", question=questions.LEARNING
)
class FeatureDrift(_AgainstFirst):
    """Drift of the output for the probe batch, ``RMS(h_t(x) - h_s(x))``.

    ``s`` is the first due step, and the first of a new probe batch. A layer whose drift stays small
    against its `output_rms` keeps its features; one that rises at once follows the learning rate.

    Warnings
    --------
    In the units of the output: compare layers relative to their size. If a module is called several
    times, its first call is used. Missing in a run that was resumed without its checkpoint, until
    another probe batch is stored.
    """

    def compare(self, first: Tensor, now: Tensor) -> Tensor:
        # abs() first, as the output may be complex.
        return (now - first).abs().double().square().mean().sqrt()


@window_quantity(
    samples="due", source="https://arxiv.org/abs/1905.00414", question=questions.LEARNING
)
class CkaToReference(_AgainstFirst):
    """Likeness to the first output, ``||H_t' H_s||_F^2 / (||H_t' H_t||_F ||H_s' H_s||_F)``.

    Linear CKA of the outputs for the probe batch now and at the first due step, as centred matrices
    with one row per entry of the first axis: 1 when the rows keep their distances up to a common
    scale, 0 when nothing is left of them. Layers that stay near 1 have not learned new features.
    Missing for a single row, and for rows that are all the same.

    Warnings
    --------
    With fewer rows than features it is biased towards 1: keep a batch of some hundreds. Missing in
    a run that was resumed without its checkpoint, until another probe batch is kept.
    """

    def seen(self, output: Tensor) -> Tensor:
        """The inner products between centred rows: all that is needed, whatever the width."""
        parts = torch.atleast_1d(components(output))
        rows = parts.double().reshape(len(parts), math.prod(parts.shape[1:]))
        rows = rows - rows.mean(0)
        return rows @ rows.T

    def compare(self, first: Tensor, now: Tensor) -> Tensor:
        # ||A'B||_F^2 = sum(AA' * BB'): the matrices are as wide as the batch, not as the layer.
        return (first * now).sum() / (first.norm() * now.norm())
