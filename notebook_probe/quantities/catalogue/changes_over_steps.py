"""Comparison of a weight or a gradient with the one at the step before or at the beginning."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.compared_with_first import ComparedWithFirst
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import components
from notebook_probe.quantities.reduce.vectors import cosine, length

__all__ = ["DistanceFromInit", "GradCosine", "LayerRotation", "SignFlipCount", "SignFlips"]


class _Pair:
    """Pair of the tensors of this step and of the step before, whether or not it is due."""

    before: Tensor | None = None
    now: Tensor | None = None

    def reset(self) -> None:
        """Reset nothing: the next step's pair needs both tensors."""

    def begin_late(self) -> None:
        """Do nothing: the first step has no pair, as usual."""

    def keep(self, tensor: Tensor) -> None:
        self.before, self.now = self.now, tensor

    @property
    def pair(self) -> tuple[Tensor, Tensor] | None:
        """Both tensors; None before the second step, and where the shape has changed."""
        if self.before is None or self.now is None or self.before.shape != self.now.shape:
            return None
        return self.before, self.now


class _SignPair(_Pair):
    """Pair of the signs of a weight."""

    def update(self, weight: Tensor) -> None:
        # A sign takes one byte per weight between two steps, the weight itself four.
        self.keep(components(weight).sign().to(torch.int8))


class _SinceFirst(ComparedWithFirst):
    """Comparison of a weight with that of the first step seen."""

    def update(self, weight: Tensor) -> None:
        if not self.is_lost:
            self.take(components(weight))


@window_quantity(samples="due", combine="rss", source="Cockpit", question=questions.LEARNING)
class DistanceFromInit(_SinceFirst):
    """Distance of the weight from its initial value, ``||W_t - W_0||_2``.

    ``W_0`` is that of the first due step. It grows fast at first and then more slowly; a layer
    that stays near 0 unlike the others is frozen or gets no gradient.

    Warnings
    --------
    A probe that is attached in the middle of training measures the distance from there; in a run
    that was resumed without its checkpoint the value is missing. Without weight decay the distance
    of a random walk grows too, like the square root of the number of steps.
    """

    def compare(self, first: Tensor, now: Tensor) -> Tensor:
        return length(now - first)


@window_quantity(
    samples="due", source="https://arxiv.org/abs/1806.01603", question=questions.LEARNING
)
class LayerRotation(_SinceFirst):
    """Rotation of the weight since the start, ``1 - cos(W_t, W_0)``: 0 unturned, 1 a right angle.

    ``W_0`` is that of the first due step. In the source, all layers of networks that
    generalize well turned far, to nearly 1; a layer that stays near 0 keeps its random features.
    Missing for a weight of zeros.

    Warnings
    --------
    A probe that is attached in the middle of training measures the rotation from there; in a run
    that was resumed without its checkpoint the value is missing. A fine-tuned layer is meant to
    turn little.
    """

    def compare(self, first: Tensor, now: Tensor) -> Tensor:
        return 1 - cosine(first.double(), now.double())  # of which little is left


@window_quantity(
    combine="sum", aliases=("WeightParamJump",), source="Taiyi", question=questions.RATE
)
class SignFlipCount(_SignPair):
    """Number of weights that changed sign since the step before, ``#(w_t w_(t-1) < 0)``.

    High at first, and falling as training settles; a rise means that the steps are as large as
    the weights.

    Warnings
    --------
    Large layers have more to flip: `sign_flips` is the share. Missing in the first step that is
    seen.
    """

    def compute(self) -> Tensor | None:
        return None if self.pair is None else _n_flips(*self.pair)


@window_quantity(source="Taiyi", question=questions.RATE, bounds=(0, 1))
class SignFlips(_SignPair):
    """Share of weights that changed sign since the step before, ``#(w_t w_(t-1) < 0) / n``.

    Below one per cent is usual after the first steps. A rise means that the steps are as large as
    the weights.

    Warnings
    --------
    Weights around zero flip without meaning: many of them, as with sparse weights, make a noisy
    share. Missing in the first step that is seen.
    """

    def compute(self) -> Tensor | None:
        return None if self.pair is None else _n_flips(*self.pair) / self.pair[0].numel()


@window_quantity(source="definition", question=questions.RATE, bounds=(-1, 1))
class GradCosine(_Pair):
    """Agreement of successive gradients, ``cos(g_t, g_(t-1))``, as applied.

    Below 0 the weight oscillates: the learning rate is high. Near 1 it could be higher. About 0 is
    usual where the noise of small batches dominates. Missing for a gradient of zeros and
    in the first step that is seen.

    Warnings
    --------
    Says little about small batches, whose noise is nearly orthogonal in many dimensions.
    """

    def update(self, grad: Tensor) -> None:
        now, oldest = components(grad), self.before
        if oldest is not None and _laid_out(oldest) == _laid_out(now):
            self.keep(oldest.copy_(now))  # into existing memory, in a third of the time
        else:
            self.keep(now.clone())

    def compute(self) -> Tensor | None:
        return None if self.pair is None else cosine(*self.pair)


def _laid_out(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _n_flips(before: Tensor, now: Tensor) -> Tensor:
    """Count the sign changes of -1, 0 and 1; summing products is faster than comparing."""
    return (before * now).clamp_(max=0).sum().neg().double()
