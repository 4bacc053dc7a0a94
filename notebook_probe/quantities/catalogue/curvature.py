"""Curvature of the loss on the probe batch, at a module's parameters and those below it.

At the root it is of all trainable parameters, elsewhere of the Hessian's diagonal block.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.solvers import lanczos
from notebook_probe.quantities.reduce.vectors import dot

__all__ = ["AlphaStep", "hessian_trace", "sam_sharpness", "sharpness", "tic_trace"]

RADIUS = 0.05
"""Radius of the step uphill, as Foret et al. use it."""

PARABOLA = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
"""Height at 0 and at 1, slope at 0 and at 1, of the coefficients (1, t, t^2)."""


@quantity(
    source="https://arxiv.org/abs/2103.00065; https://arxiv.org/abs/1912.07145",
    question=questions.RATE,
)
def sharpness(landscape: Landscape) -> float:
    """Largest curvature of the loss on the probe batch, ``max eig(H)``, ``H`` its Hessian.

    Plain gradient descent with learning rate ``lr`` is stable below ``2 / lr``. Trained with the
    whole data at each step, networks rise to that value and hover there: the larger the rate, the
    lower the sharpness. Found by Lanczos from the same random vector at every step, with 10 to 100
    products with ``H``, each about as long as two gradients. Missing when 100 do not find it.

    Warnings
    --------
    With momentum, Adam or small batches the limit is another one. It is larger on a small probe
    batch than on all data. BatchNorm is evaluated with its running statistics.
    """
    # The same start at every step, drawn on the host: the series has no noise of the method, and
    # every device gives the same.
    start = torch.randn(landscape.size, generator=_generator())
    return lanczos(landscape.product, start.to(landscape.position))


@quantity(source="Hutchinson 1990; https://arxiv.org/abs/1912.07145", question=questions.PROGRESS)
def hessian_trace(landscape: Landscape) -> Tensor:
    """Total curvature of the loss on the probe batch, ``tr(H) = E[v' H v]``, ``v`` random signs.

    Over the number of parameters it is the mean curvature; a flat minimum has a small one. It is
    the mean over 64 vectors, the same at every step; exact for up to 64 parameters.

    Warnings
    --------
    Directions of negative curvature cancel others. For many parameters it is an estimate with a
    standard error of ``sqrt(2 sum of H_ij^2, i != j, / 64)``, and 64 Hessian products a probe.
    """
    return landscape.trace


@quantity(source="https://arxiv.org/abs/1906.07774; Cockpit", question=questions.PROGRESS)
def tic_trace(landscape: Landscape) -> Tensor:
    """Noise of gradients against curvature, ``E[||g_i||_2^2] / tr(H)``, ``i`` the samples.

    The Takeuchi information criterion with traces in place of matrices, on the probe batch. Over
    the number of samples that were trained on it estimates how much larger the loss of new ones is;
    of models with the same training loss the one where it is small generalizes better. ``H`` is the
    Hessian, as in `hessian_trace`, ``g_i`` the gradient of a single sample's loss. Missing where
    the loss does not curve upwards on the whole, and where it is not the mean of its samples'.

    Warnings
    --------
    Meant for the neighbourhood of a minimum: before, the mean gradient counts as noise as well. One
    gradient for each sample besides the Hessian products: keep a probe batch of some hundreds.
    """
    squares, losses = [], []
    for one in landscape.samples():
        squares.append(dot(one.gradient, one.gradient))
        losses.append(one.value)
    if not losses:
        raise UnreadableError("the samples of the batch are not known one by one")
    _check_mean(torch.stack(losses), landscape)
    noise = torch.stack(squares).mean()
    return torch.where(landscape.trace > 0, noise / landscape.trace, torch.nan)


def _check_mean(losses: Tensor, landscape: Landscape) -> None:
    """Raise unless a batch's loss is the mean of its samples' losses, apart from rounding."""
    # Losses of single samples are summed in another order than those of the batch.
    rounding = torch.finfo(landscape.point[0].dtype).eps ** 0.5 * losses.abs().mean()
    if (losses.mean() - landscape.value).abs() > rounding:
        raise UnreadableError(
            f"the loss of the probe batch is {float(landscape.value):.4g}, the mean of its "
            f"{len(losses)} samples one by one {float(losses.mean()):.4g}; it must be their mean"
        )


@quantity(source="https://arxiv.org/abs/2010.01412", question=questions.PROGRESS)
def sam_sharpness(landscape: Landscape) -> Tensor:
    """Rise of the loss along its gradient, ``L(w + r g / ||g||_2) - L(w)``, ``r = 0.05``.

    On the probe batch: how much worse the worst neighbour at distance 0.05 is, to first order. A
    flat minimum has a small one. Missing where the gradient is zero.

    Warnings
    --------
    The radius is the same however large the weights are, so that networks that differ in the scale
    of their weights cannot be compared.
    """
    gradient = landscape.gradient
    return landscape.loss_at(RADIUS * gradient / gradient.norm()) - landscape.value


@window_quantity(samples="due", source="https://arxiv.org/abs/2102.06604", question=questions.RATE)
class AlphaStep:
    """Length of the last step on the loss, ``1 / t - 1``, ``t`` the minimum of its parabola.

    0 is a step to the minimum, -1 no step at all, 1 a step to the same height on the other side;
    above 1 it overshoots, below -1 it led uphill. The parabola is fitted to the losses and slopes
    on the probe batch at this due step (1) and the previous one (0). Missing before the second due
    step, and where the loss does not curve upwards.

    Warnings
    --------
    The step is all that happened since the last due step: attach it with ``every(1)`` to judge
    single updates. The source fits the training batches, each number weighed by its variance; on
    one batch there is no such noise. It has -1 where the loss curves downwards, here it is missing.
    """

    start: tuple[Tensor, Tensor, Tensor] | None = None
    end: tuple[Tensor, Tensor, Tensor] | None = None

    def reset(self) -> None:
        """Reset nothing: the next step begins where this one ends."""

    def begin_late(self) -> None:
        """Do nothing: the first due step has no value, as usual."""

    def update(self, landscape: Landscape) -> None:
        now = landscape.position, landscape.value, landscape.gradient
        self.start, self.end = self.end, now

    def compute(self) -> float | None:
        if self.start is None or self.end is None or len(self.start[0]) != len(self.end[0]):
            return None
        way = self.end[0] - self.start[0]
        slopes = [float(point[2].dot(way)) for point in (self.start, self.end)]
        rise = float(self.end[1] - self.start[1])
        return _alpha(rise, *slopes)


def _alpha(rise: float, first: float, last: float) -> float | None:
    """Locate 1 on the parabola ``a + b t + c t^2`` with this rise and these slopes at 0 and 1.

    Two heights and two slopes for three numbers: least squares.
    """
    measured = np.array([0.0, rise, first, last])
    (_, b, c), *_ = np.linalg.lstsq(PARABOLA, measured)
    # Without a minimum ahead, or on a flat line, there is no parabola to place the step on.
    return None if c <= 0 or b == 0 else float(-2 * c / b - 1)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
