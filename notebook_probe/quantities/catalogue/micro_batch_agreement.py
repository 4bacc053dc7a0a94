"""Agreement of the micro-batches of a step, element by element and by their angles.

Micro-batches take the place of the papers' samples, as in `norm_test`: of every parameter below the
module, of one alone where it is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import components
from notebook_probe.quantities.reduce.micro_batches import MicroBatchGradients, added
from notebook_probe.quantities.reduce.vectors import dot

__all__ = ["EarlyStoppingEvidence", "Gsnr", "Stiffness"]


@dataclass(slots=True)
class _Running:
    """Mean of one parameter's gradients, and sum of their squared deviations from it."""

    n: int
    mean: Tensor
    spread: Tensor

    def add(self, gradient: Tensor) -> None:
        self.n += 1
        # Welford's update: a difference of two large sums of squares would lose the small variance.
        away = gradient - self.mean
        self.mean.add_(away, alpha=1 / self.n)
        self.spread.addcmul_(away, gradient - self.mean)

    def signal(self) -> Tensor:
        """Sum of ``n (E g)^2 / Var g`` over the elements that differ, and their number."""
        # Where all micro-batches agree exactly, mostly at 0, there is no noise to compare with.
        differ = self.spread != 0
        ratios = torch.where(differ, self.mean / self.spread.sqrt(), 0)
        total = dot(ratios, ratios) * (self.n * (self.n - 1))
        return torch.stack([total, total / self.n, differ.count_nonzero()])


class _Elements:
    """The elements of the gradients of every parameter below a place."""

    def reset(self) -> None:
        self._parameters: list[_Running] = []

    def update(self, each_grad_micro: Tensor) -> None:
        gradient = components(each_grad_micro)
        if not self._parameters:
            nothing = torch.zeros_like(gradient)
            self._parameters = [_Running(0, nothing, nothing.clone())]
        self._parameters[0].add(gradient)

    def merge(self, other: Self) -> Self:
        both = type(self)()
        both._parameters = [*self._parameters, *other._parameters]
        return both

    def means(self) -> tuple[Tensor, Tensor] | None:
        """Return the means of ``n (E g)^2 / Var g`` and ``(E g)^2 / Var g`` over what differs."""
        several = [each.signal() for each in self._parameters if each.n > 1]
        if not several:
            return None
        times_n, once, count = added(several)
        return times_n / count, once / count


@window_quantity(samples="due", source="https://arxiv.org/abs/2001.07384", question=questions.NOISE)
class Gsnr(_Elements):
    """Signal to noise of the gradient, ``mean_j (E g_j)^2 / Var g_j`` over its elements.

    Over the micro-batches of an accumulated step. Large where micro-batches agree, which goes along
    with good generalization; it falls as the training set is fitted. Elements whose gradient is the
    same in all, such as zero, are left out. Missing without accumulation.

    Warnings
    --------
    Of micro-batches of ``b`` samples it is about ``b`` times what the paper has, of single ones. Of
    pure noise it is ``(k - 1) / (k - 3) / k`` with ``k`` micro-batches, and with fewer than four a
    few elements decide. It keeps two tensors as large as the gradient.
    """

    def compute(self) -> Tensor | None:
        means = self.means()
        return None if means is None else means[1]


@window_quantity(
    samples="due", source="https://arxiv.org/abs/1703.09580", question=questions.PROGRESS
)
class EarlyStoppingEvidence(_Elements):
    """Evidence that the gradient is nothing but noise, ``1 - k mean_j (E g_j)^2 / Var g_j``.

    The left side of the paper's criterion (eq. 7), with the ``k`` micro-batches of an accumulated
    step as samples and the mean over all elements of the gradient. Below 0 there is a signal. Above
    0 the gradient is no larger than noise alone would make it: there is nothing more to learn from
    these data, and the paper stops without a validation set; at the root that is for the whole
    model, at a layer for it alone. Elements without variance are left out. Missing without
    accumulation.

    Warnings
    --------
    It swings from step to step: look at its course. The variance of few micro-batches is often too
    small, so that pure noise gives ``-2 / (k - 3)`` on average rather than 0: take eight or more.
    """

    def compute(self) -> Tensor | None:
        means = self.means()
        return None if means is None else 1 - means[0]


@window_quantity(samples="due", source="https://arxiv.org/abs/1901.09491", question=questions.NOISE)
class Stiffness(MicroBatchGradients):
    """Agreement of micro-batches, ``mean_(i<j) cos(g_i, g_j)`` over their pairs.

    Above 0 a step for one micro-batch also lowers the loss of another: what is learnt is shared.
    Near 0 they have nothing to do with each other, which is usual late in training. Missing without
    accumulation, and where a micro-batch has no gradient.

    Warnings
    --------
    The larger the micro-batches the larger it is: compare runs with the same ones. The gradient of
    each is kept until the step is over: attach it at the root, and not to every module.
    """

    def compute(self) -> Tensor | None:
        k, parameters = self.k, self.parameters
        if not k:
            return None
        squares = added([torch.stack([dot(row, row) for row in rows]) for rows in parameters])
        total = added([_of_directions(rows, squares.sqrt()) for rows in parameters])
        # ||sum of k unit vectors||^2 = k + 2 * (sum of the cosines of all pairs).
        return (total - k) / (k * (k - 1))


def _of_directions(rows: list[Tensor], sizes: Tensor) -> Tensor:
    """``||sum_i g_i / ||g_i|| ||^2``, the share of one parameter."""
    scales = sizes.to(rows[0])
    total = torch.stack([row / scale for row, scale in zip(rows, scales, strict=True)]).sum(0)
    return dot(total, total)
