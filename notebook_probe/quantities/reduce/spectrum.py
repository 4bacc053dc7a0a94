"""The covariance of what enters or leaves a module, and its eigenvalues.

Rows are samples (and positions), columns are channels; see `samples`. Columns are centred, the
divisor is the number of rows less one. Several calls in a step count as one with all their rows.

Each decomposition is computed once for all quantities of a module and step. With fewer rows than
channels it is the small matrix of inner products between rows, which has the same non-zero
eigenvalues. Products are taken in float64, since squares in float32 lose all but the largest
eigenvalues; for the largest alone, of few rows, float32 will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.samples import samples
from notebook_probe.quantities.reduce.solvers import LARGE, eigvalsh, inner, largest_eigenvalue

__all__ = ["Spectrum", "spectrum"]

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""Relative rounding error of a number."""

WIDEST = 2048
"""Maximum number of channels; above it, this many rows are drawn: more would take seconds."""

SINGLE = (1e-24, 1e30)
"""Sums of squares that float32 can hold with all their parts."""


@dataclass(slots=True)
class Spectrum:
    """Covariance of rows, and its eigenvalues, computed on first use."""

    n_rows: int
    mean: Tensor
    """float64 (channel,)"""
    matrix: Tensor
    """Rows less their mean, (row, channel), as long as they are fewer than the channels; then the
    sum of their outer products, (channel, channel)."""
    needs_all: bool = True
    """True if all eigenvalues will be requested, not the leading one alone."""
    _leading: tuple[Tensor, Tensor] | None = None
    _eigenvalues: Tensor | None = None
    _singular: Tensor | None = None

    @classmethod
    def of(cls, rows: Tensor) -> Spectrum:
        """Return the Spectrum of rows (sample, channel), which are written over."""
        mean = rows.mean(0)
        return cls._centred(mean, rows.sub_(mean))

    @classmethod
    def of_nothing(cls, width: int) -> Spectrum:
        """Return the Spectrum of no rows, of so many channels."""
        empty = torch.zeros((0, width), dtype=torch.float64)
        return cls(0, empty.sum(0), empty)

    @classmethod
    def _centred(cls, mean: Tensor, rows: Tensor, needs_all: bool = True) -> Spectrum:
        few = len(rows) < len(mean)
        return cls(len(rows), mean, rows if few else inner(rows), needs_all)

    @property
    def has_rows(self) -> bool:
        return self.n_rows < len(self.mean)

    @property
    def is_singular(self) -> bool:
        """True if there are too few rows for a covariance of full rank, whatever they are."""
        return self.n_rows <= len(self.mean)

    @property
    def leading(self) -> tuple[Tensor, Tensor]:
        """The largest eigenvalue and the sum of all; NaN as below. Cheaper than all of them."""
        if self._leading is None:
            self._leading = self._lead()
        return self._leading

    @property
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, descending, float64 (channel,); NaN for under two rows or any NaN."""
        if self._eigenvalues is None:
            self._eigenvalues = self._all()
        return self._eigenvalues

    @property
    def covariance(self) -> Tensor:
        """float64 (channel, channel); NaN for fewer than two rows."""
        if self.n_rows < 2:
            return self.mean.new_full((len(self.mean), len(self.mean)), torch.nan)
        return self._scatter() / (self.n_rows - 1)

    @property
    def participation(self) -> Tensor:
        """``(sum of eigenvalues)^2 / sum of their squares``, without knowing them."""
        products = inner(self.matrix.T) if self.has_rows else self.matrix
        return products.trace().square() / products.square().sum()

    @property
    def singular_values(self) -> Tensor:
        """Singular values of uncentered rows; float64, ascending, as many as the rank can be."""
        if self._singular is None:
            self._singular = self._all_singular()
        return self._singular

    def merge(self, other: Spectrum) -> Spectrum:
        """Return the Spectrum of the rows of both."""
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
            return self._centred(mean, torch.cat(moved), self.needs_all)
        between = torch.outer(shift, shift).mul_(self.n_rows * (other.n_rows / n_rows))
        scatter = between.add_(self._scatter()).add_(other._scatter())
        return Spectrum(n_rows, mean, scatter, self.needs_all)

    def _scatter(self) -> Tensor:
        return inner(self.matrix) if self.has_rows else self.matrix

    def _lead(self) -> tuple[Tensor, Tensor]:
        # Cheaper than all of them, which a singular covariance is seldom asked for.
        alone = self.has_rows or (len(self.mean) >= LARGE and not self.needs_all)
        if alone and self._eigenvalues is None and self.n_rows > 1:
            # float32 is enough here: the largest eigenvalue is the best conditioned one.
            products = inner(self.matrix.float().T) if self.has_rows else self.matrix
            trace = products.trace()
            total, rounding = float(trace), self.n_rows * float(self._of_constants())
            # Else constant columns, or a scale beyond float32: the exact way decides what is
            # rounding.
            if rounding < total and SINGLE[0] < total < SINGLE[1]:
                largest = largest_eigenvalue(products)
                return largest / (self.n_rows - 1), trace / (self.n_rows - 1)
        return self.eigenvalues[0], self.eigenvalues.sum()

    def _all(self) -> Tensor:
        matrix = inner(self.matrix.T) if self.has_rows else self.matrix
        if self.n_rows < 2 or not torch.isfinite(matrix.trace()):
            return torch.full_like(self.mean, torch.nan)
        found = eigvalsh(matrix).flip(0) / (self.n_rows - 1)
        rank = min(len(self.mean), self.n_rows - 1)  # the others are zero but for rounding
        eigenvalues = 0 * found[0].repeat(len(self.mean))  # NaN where the solver gave up
        rounding = torch.maximum(ROUNDING * len(self.mean) * found[0], self._of_constants())
        eigenvalues[:rank] = found[:rank].masked_fill(found[:rank] <= rounding, 0.0)
        return eigenvalues

    def _all_singular(self) -> Tensor:
        if self.has_rows:
            # Uncentered again: RankMe's singular values are of the rows as they are.
            products = inner((self.matrix + self.mean).T)
        else:
            products = self.matrix + self.n_rows * torch.outer(self.mean, self.mean)
        if not torch.isfinite(products.trace()):
            return torch.full_like(products[0], torch.nan)
        return eigvalsh(products).clamp(min=0).sqrt()

    def _of_constants(self) -> Tensor:
        """Variance that rounding may leave in constant columns."""
        rounding = ROUNDING * self.mean
        return rounding.dot(rounding)


@reduction("spectrum", "leading", first_only=True, cost="factorisation")
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
    width, blocks = samples(tensor, module, widest=WIDEST)
    of_blocks = map(Spectrum.of, blocks)
    first = next(of_blocks, None) or Spectrum.of_nothing(width)
    found = reduce(Spectrum.merge, of_blocks, first)
    found.needs_all = wanted != {"leading"}
    return found
