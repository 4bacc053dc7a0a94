"""Singular values of a weight or its step: how far it stretches, in how many directions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.solvers import eigvalsh, inner, largest_eigenvalue

__all__ = [
    "Matrix",
    "Powers",
    "spectral_norm",
    "update_orthogonality",
    "weight_alpha",
    "weight_singular_values",
    "weight_stable_rank",
]

FEWEST = 10
"""Least number of eigenvalues for an exponent of their tail."""

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""Rounding error of an eigenvalue, relative to the largest and times their number."""


@dataclass(slots=True)
class Matrix:
    """Weight as a linear map; several weights are one block-diagonal map."""

    products: tuple[Tensor, ...]
    """Inner products of each weight's rows or columns, whichever are fewer; float64."""
    found: tuple[Tensor, ...] = ()
    """Squared singular values of weights whose products are not kept."""
    _squares: Tensor | None = None

    @property
    def squares(self) -> Tensor:
        """Squared singular values, ascending, float64; NaN where something is not finite."""
        if self._squares is None:
            every = [*self.found, *map(_squares, self.products)]
            self._squares = torch.cat(every).sort().values
        return self._squares

    @property
    def largest(self) -> Tensor:
        """The largest square; NaN of an empty weight. Cheaper than all of them."""
        if not self.found and self._squares is None and all(map(_is_known, self.products)):
            return torch.stack([largest_eigenvalue(each) for each in self.products]).amax()
        return self.squares[-1] if len(self.squares) else self.squares.new_tensor(math.nan)

    @property
    def total(self) -> Tensor:
        """Sum of all squares."""
        of_each = [each.trace() for each in self.products] + [each.sum() for each in self.found]
        return torch.stack(of_each).sum()

    def merge(self, other: Matrix) -> Matrix:
        """Return the map of the weights of both."""
        return Matrix(self.products + other.products, self.found + other.found)


def _is_known(products: Tensor) -> bool:
    """Return whether there is anything, and all of it finite: a solver may crash on NaN."""
    return len(products) > 0 and bool(torch.isfinite(products.trace()))


def _squares(products: Tensor) -> Tensor:
    if not _is_known(products):
        return torch.full_like(products.diagonal(), torch.nan)
    squares = eigvalsh(products)
    # Products of rounded numbers leave tiny eigenvalues where there is no direction.
    return squares.masked_fill(squares <= ROUNDING * len(squares) * squares[-1:], 0.0)


@reduction("matrix", cost="factorisation")
def matrix(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Matrix:
    """Measure a weight as the matrix (first axis, all others); a vector is a single column.

    Examples
    --------
    >>> matrix(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).squares
    tensor([ 9., 16.], dtype=torch.float64)
    """
    products = _products(tensor)
    # What waits there until it is copied must be small: products are as large as the weight.
    return Matrix((products,)) if products.is_cpu else Matrix((), (_squares(products),))


@dataclass(frozen=True, slots=True)
class Powers:
    """Sums of powers of singular values, which need no solver: traces of products."""

    total: Tensor
    """Sum of the squares."""
    fourth: Tensor
    """Sum of the fourth powers."""
    n: int
    """Number of singular values."""

    def merge(self, other: Powers) -> Powers:
        """Return the sums over the weights of both."""
        return Powers(self.total + other.total, self.fourth + other.fourth, self.n + other.n)


@reduction("powers", cost="factorisation")
def powers(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Powers:
    """Measure sums of powers of a weight's singular values, as those of `matrix`.

    Examples
    --------
    >>> powers(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).fourth
    tensor(337., dtype=torch.float64)
    """
    products = _products(tensor)
    return Powers(products.trace(), products.square().sum(), len(products))


def _products(tensor: Tensor) -> Tensor:
    """Return the inner products of rows or columns, whichever are fewer: the squares are equal."""
    values = readable(tensor)
    wide = values.double() if values.device.type != "mps" else values
    rows = wide.reshape(len(wide), -1) if wide.dim() and wide.numel() else wide.reshape(1, -1)
    return inner(rows.T if len(rows) < rows.shape[1] else rows)


@quantity(source="https://arxiv.org/abs/1705.10941", question=questions.SIGNAL)
def spectral_norm(weight_matrix: Matrix) -> Tensor:
    """Largest factor by which the weight stretches an input, ``s_1 = max ||W x||_2 / ||x||_2``.

    From the smaller of ``W W'`` and ``W' W`` in float64, right to six digits. Above 1 in many
    layers, signals and gradients can grow with depth; growth over training often comes before
    instability.

    Warnings
    --------
    A convolution's weight counts as the matrix (output channels, all else), which is not the
    norm of the convolution itself.
    """
    return weight_matrix.largest.sqrt()


@quantity(source="https://arxiv.org/abs/math/0503442", question=questions.COLLAPSE)
def weight_stable_rank(weight_matrix: Matrix) -> Tensor:
    """Number of directions in which the weight works, ``||W||_F^2 / s_1^2``.

    Between 1 and the smaller side of the matrix; a square random matrix
    has a quarter of it. Falling, the layer narrows to a few directions. Missing for a
    weight of zeros.

    Warnings
    --------
    The top singular value alone sets it: many middling directions look the same as few.
    """
    return weight_matrix.total / weight_matrix.largest


@quantity(
    source="definition, for https://kellerjordan.github.io/posts/muon",
    question=questions.RATE,
    bounds=(0, 1),
)
def update_orthogonality(update_powers: Powers) -> Tensor | float:
    """Evenness of the step's singular values, ``(sum s_i^2)^2 / (k sum s_i^4)`` of all ``k``.

    1 where the step of the weight is a multiple of an orthogonal matrix, as Muon makes it: it moves
    the layer as much in every direction. ``1 / k`` where it has a single direction. Muon's five
    iterations reach about 0.88; a square matrix drawn at random has 0.5. Missing where nothing
    moved.

    Warnings
    --------
    Weight decay adds a multiple of the weight to the step. Attach it to matrices by name: a bias is
    one column, and of several weights in one module the values are mixed.
    """
    total, fourth = update_powers.total, update_powers.fourth
    return total * total / (update_powers.n * fourth) if fourth else math.nan


@quantity(axis=PER_CHANNEL, source="definition", question=questions.COLLAPSE)
def weight_singular_values(weight_matrix: Matrix) -> Tensor:
    """Singular values of the weight, ``s_1 >= s_2 >= ...``, all, of (first axis, all others).

    A weight that was drawn at random has a smooth bulk; what training has learned stands out above
    it. A steep fall says that few directions do the work.

    Warnings
    --------
    The values of several weights in one module are mixed: attach it to each parameter by name.
    """
    values = weight_matrix.squares.flip(0).sqrt()
    return values if len(values) else weight_matrix.largest[None]


@quantity(source="https://arxiv.org/abs/1901.08276", question=questions.LEARNING)
def weight_alpha(weight_matrix: Matrix) -> float:
    """Exponent of the tail of the eigenvalues of W'W, ``p(l) ~ l^-alpha, l >= l_min``.

    By maximum likelihood, ``alpha = 1 + n / sum ln(l / l_min)`` over the ``n`` eigenvalues from
    ``l_min`` on, which is where the tail differs least from a power law (Clauset, Shalizi & Newman
    2009). Layers that are trained well have 2 to 6, a random weight has more. Missing with fewer
    than 10 eigenvalues.

    Warnings
    --------
    Of a small layer it is a rough estimate, and a tail need not be a power law at all.
    """
    squares = weight_matrix.squares.double().cpu().numpy()
    # The logarithm below needs positive values.
    tail = squares[squares > 0]
    if len(tail) < FEWEST or tail[0] == tail[-1]:
        return math.nan
    logs = np.log(tail)
    # Every possible l_min is tried; the best has the least Kolmogorov-Smirnov distance.
    fits = [_power_law(logs[start:]) for start in range(len(logs) - 1)]
    return min(fit for fit in fits if fit is not None)[1]


def _power_law(logs: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    """Distance of a tail from the power law that fits it best, and the law's exponent."""
    above = logs - logs[0]
    if not above[-1]:
        return None
    decay = len(logs) / above.sum()
    # expm1 keeps the digits near l_min, where both distributions are close to 0.
    found = np.arange(len(logs)) / len(logs)
    return float(np.abs(found + np.expm1(-decay * above)).max()), float(1 + decay)
