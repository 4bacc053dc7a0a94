"""Eigenvalues of the covariance of a module's inputs: how many directions carry them.

Rows are samples (and positions), columns are channels; see `samples`. Columns are centred, the
divisor is the number of rows less one. Several calls in a step count as one with all their rows.

What was decomposed once serves every quantity of a module and step. With fewer rows than channels
it is the small matrix of inner products between rows, which has the same non-zero eigenvalues.
Products are taken in float64, since squares in float32 lose all but the largest eigenvalues; for
the largest alone, of few rows, float32 will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities import questions
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.parts import reduction
from notebook_probe.quantities.samples import samples

__all__ = [
    "Spectrum",
    "input_cov_condition",
    "input_cov_condition_20",
    "input_cov_condition_50",
    "input_cov_condition_80",
    "input_cov_condition_100",
    "input_cov_max_eig",
    "input_cov_stable_rank",
    "spectrum",
]

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""So much of a number may be rounding."""

SINGLE = (1e-24, 1e30)
"""Sums of squares that float32 can hold with all their parts."""


@dataclass(slots=True)
class Spectrum:
    """The covariance of rows, and its eigenvalues once somebody asks for them."""

    n_rows: int
    mean: Tensor
    """float64 (channel,)"""
    matrix: Tensor
    """The rows less their mean, (row, channel), as long as they are fewer than the channels; then
    the sum of their outer products, (channel, channel)."""
    _leading: tuple[Tensor, Tensor] | None = None
    _eigenvalues: Tensor | None = None

    @classmethod
    def of(cls, rows: Tensor) -> Spectrum:
        """The Spectrum of rows (sample, channel), which are written over."""
        mean = rows.mean(0)
        return cls._centred(mean, rows.sub_(mean))

    @classmethod
    def _centred(cls, mean: Tensor, rows: Tensor) -> Spectrum:
        few = len(rows) < len(mean)
        return cls(len(rows), mean, rows if few else _inner(rows))

    @property
    def has_rows(self) -> bool:
        return self.n_rows < len(self.mean)

    @property
    def is_singular(self) -> bool:
        """Whether there are too few rows for a covariance of full rank, whatever they are."""
        return self.n_rows <= len(self.mean)

    @property
    def leading(self) -> tuple[Tensor, Tensor]:
        """The largest eigenvalue and the sum of all; NaN as below. Cheaper than all of them."""
        if self._leading is None:
            self._leading = self._lead()
        return self._leading

    @property
    def eigenvalues(self) -> Tensor:
        """All of them, descending, float64 (channel,); NaN for fewer than two rows or any NaN."""
        if self._eigenvalues is None:
            self._eigenvalues = self._all()
        return self._eigenvalues

    @property
    def participation(self) -> Tensor:
        """``(sum of eigenvalues)^2 / sum of their squares``, without knowing them."""
        products = _inner(self.matrix.T) if self.has_rows else self.matrix
        return products.trace().square() / products.square().sum()

    @property
    def singular_values(self) -> Tensor:
        """Of the rows as they came, not centred; float64, ascending, as many as the rank can be."""
        if self.has_rows:
            rows = self.matrix + self.mean
            products = _inner(rows.T)
        else:
            products = self.matrix + self.n_rows * torch.outer(self.mean, self.mean)
        if not torch.isfinite(products.trace()):
            return torch.full_like(products[0], torch.nan)
        return _eigvalsh(products).clamp(min=0).sqrt()

    def merge(self, other: Spectrum) -> Spectrum:
        """The Spectrum of the rows of both."""
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        if self.mean.shape != other.mean.shape:
            raise QuantityError(
                f"calls with {len(self.mean)} and with {len(other.mean)} channels in one step have "
                f"no common covariance"
            )
        n_rows = self.n_rows + other.n_rows
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.n_rows / n_rows)
        if self.has_rows and other.has_rows:
            moved = [each.matrix + (each.mean - mean) for each in (self, other)]
            return self._centred(mean, torch.cat(moved))
        between = torch.outer(shift, shift).mul_(self.n_rows * (other.n_rows / n_rows))
        return Spectrum(n_rows, mean, between.add_(self._scatter()).add_(other._scatter()))

    def _scatter(self) -> Tensor:
        return _inner(self.matrix) if self.has_rows else self.matrix

    def _lead(self) -> tuple[Tensor, Tensor]:
        if self.has_rows and self.n_rows > 1:
            products = _inner(self.matrix.float().T)
            total, rounding = products.trace(), self.n_rows * self._of_constants()
            if rounding < total and SINGLE[0] < total < SINGLE[1]:
                largest = _eigvalsh(products)[-1]
                return largest / (self.n_rows - 1), total / (self.n_rows - 1)
        return self.eigenvalues[0], self.eigenvalues.sum()

    def _all(self) -> Tensor:
        matrix = _inner(self.matrix.T) if self.has_rows else self.matrix
        if self.n_rows < 2 or not torch.isfinite(matrix.trace()):
            return torch.full_like(self.mean, torch.nan)
        found = _eigvalsh(matrix).flip(0) / (self.n_rows - 1)
        rank = min(len(self.mean), self.n_rows - 1)  # the others are zero but for rounding
        eigenvalues = 0 * found[0].repeat(len(self.mean))  # NaN where the solver gave up
        rounding = torch.maximum(ROUNDING * len(self.mean) * found[0], self._of_constants())
        eigenvalues[:rank] = found[:rank].masked_fill(found[:rank] <= rounding, 0.0)
        return eigenvalues

    def _of_constants(self) -> Tensor:
        """Variance that rounding may leave in constant columns."""
        return (ROUNDING * self.mean).square().sum()


def _inner(columns: Tensor) -> Tensor:
    """Inner products between columns; numpy sees the symmetry, and does half the work."""
    if not columns.is_cpu:
        return columns.T @ columns
    array = columns.numpy()
    with np.errstate(all="ignore"):  # what is not finite is found in the result
        return torch.from_numpy(array.T @ array)


def _eigvalsh(matrix: Tensor) -> Tensor:
    """Ascending eigenvalues; NaN where the solver gives up. In float64 numpy's is the faster."""
    try:
        if matrix.is_cpu and matrix.dtype is torch.float64:
            return torch.from_numpy(np.linalg.eigvalsh(matrix.numpy()))
        return torch.linalg.eigvalsh(matrix)
    except (np.linalg.LinAlgError, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
        return torch.full_like(matrix[0], torch.nan)


@reduction("spectrum", first_only=True, cost="factorisation")
def spectrum(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Spectrum:
    """Measure the covariance of the samples in a tensor that entered or left ``module``.

    Raises
    ------
    UnreadableError
        A tensor without values, or of a kind nobody can convert.

    Examples
    --------
    >>> found = spectrum(torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), nn.Linear(2, 2))
    >>> found.eigenvalues
    tensor([4., 0.], dtype=torch.float64)
    """
    _, blocks = samples(tensor, module)
    empty = torch.zeros((0, 1), dtype=torch.float64)
    return reduce(Spectrum.merge, map(Spectrum.of, blocks), Spectrum(0, empty.sum(0), empty))


@quantity(aliases=("InputCovMaxEig",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_max_eig(input_spectrum: Spectrum) -> Tensor:
    """Largest eigenvalue of the inputs' covariance, ``l_1``: variance along the main direction.

    It bounds the learning rate that the layer bears, about ``2 / l_1`` for a linear layer on
    centred inputs with squared loss; normalisation brings it down.

    Warnings
    --------
    Scales with the square of the inputs. Missing for fewer than two rows.
    """
    return input_spectrum.leading[0]


@quantity(aliases=("InputCovStableRank",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_stable_rank(input_spectrum: Spectrum) -> Tensor:
    """Stable rank of the inputs, ``sum l / l_1`` of the eigenvalues of their covariance.

    About how many directions carry them: 1 when all lie on a line, the number of channels when
    they are spread evenly. Missing for constant inputs.

    Warnings
    --------
    The largest eigenvalue alone sets it, and it cannot exceed the rows less one.
    """
    largest, total = input_spectrum.leading
    return total / largest


@quantity(source="definition", question=questions.COLLAPSE)
def input_cov_condition(input_spectrum: Spectrum) -> Tensor:
    """Condition number of the inputs' covariance, ``l_1 / l_d``: largest over smallest eigenvalue.

    The larger, the more unequal the speeds at which a layer learns along different directions.
    Infinite when the covariance is singular, as it is with no more rows than channels.

    Warnings
    --------
    A dead or a doubled channel makes it infinite: `input_cov_condition_50` is milder.
    """
    largest, _ = input_spectrum.leading
    if input_spectrum.is_singular:
        return (0 * largest).where(largest.isnan(), torch.inf)
    smallest = input_spectrum.eigenvalues[-1]
    return (largest / smallest).where(smallest != 0, torch.inf)


def _ratio(spectrum: Spectrum, percent: int) -> Tensor:
    """Largest eigenvalue over the one after ``percent`` of them, as Taiyi computes it."""
    largest, _ = spectrum.leading
    if spectrum.is_singular and percent == 100:
        return largest / 1e-7
    eigenvalues = spectrum.eigenvalues
    place = min(len(eigenvalues) * percent // 100, len(eigenvalues) - 1)
    return eigenvalues[0] / (eigenvalues[place] + 1e-7)


@quantity(aliases=("InputCovCondition20",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_20(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over a fifth of the directions, ``l_1 / (l_i + 1e-7)``.

    The eigenvalues ``l`` of the covariance fall; ``i = d * 20 // 100``. How far the first fifth
    of the directions stands out; 1 when they are all alike. Batch normalisation lowers it,
    which is one account of why it speeds up training.

    Warnings
    --------
    Of fewer than five channels it is about 1. Few rows make it large.
    """
    return _ratio(input_spectrum, 20)


@quantity(aliases=("InputCovCondition50",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_50(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over half of the directions, ``l_1 / (l_i + 1e-7)``.

    The eigenvalues ``l`` of the covariance fall; ``i = d * 50 // 100``. How far the main
    direction stands above the middle one; 1 when all are alike.

    Warnings
    --------
    1e7 times the largest eigenvalue where half of the directions are empty, as with fewer rows
    than half of the channels.
    """
    return _ratio(input_spectrum, 50)


@quantity(aliases=("InputCovCondition80",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_80(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over four fifths of the directions, ``l_1 / (l_i + 1e-7)``.

    The eigenvalues ``l`` of the covariance fall; ``i = d * 80 // 100``. As the condition
    number, without the directions that hardly matter.

    Warnings
    --------
    1e7 times the largest eigenvalue where a fifth of the directions is empty, as with fewer
    rows than channels.
    """
    return _ratio(input_spectrum, 80)


@quantity(aliases=("InputCovCondition",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_100(input_spectrum: Spectrum) -> Tensor:
    """Condition number of the inputs as Taiyi has it, ``l_1 / (l_d + 1e-7)``, always finite.

    Comparable with Taiyi's figures; `input_cov_condition` is the plain one.

    Warnings
    --------
    1e7 times the largest eigenvalue where a direction is empty, which is then no condition
    number but a scale.
    """
    return _ratio(input_spectrum, 100)
