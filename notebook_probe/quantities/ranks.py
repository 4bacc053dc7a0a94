"""How many directions something uses: of activations, of gradients, of a weight."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.quantities.arrays import readable
from notebook_probe.quantities.base import quantity
from notebook_probe.quantities.parts import reduction
from notebook_probe.quantities.spectra import Spectrum

__all__ = [
    "Matrix",
    "effective_rank",
    "output_grad_cov_max_eig",
    "participation_ratio",
    "spectral_norm",
    "weight_stable_rank",
]


@quantity(aliases=("RankMe",), source="Roy & Vetterli 2007; https://arxiv.org/abs/2210.02885")
def effective_rank(output_spectrum: Spectrum) -> Tensor:
    """Effective rank of the outputs, ``exp(-sum p ln p)``, ``p = s / sum(s) + 1e-7``.

    ``s`` are the singular values of the matrix of samples and positions by channels, not centred.
    1 when all outputs are multiples of one, the number of channels when they are spread evenly.
    Missing where all is zero.
    """
    values = output_spectrum.singular_values
    share = values / values.sum() + 1e-7
    return (-(share * share.log()).sum()).exp()


@quantity(source="common usage")
def participation_ratio(output_spectrum: Spectrum) -> Tensor:
    """Number of directions in which the outputs vary, ``(sum l)^2 / sum l^2``.

    ``l`` are the eigenvalues of their covariance, which need not be computed. Missing for
    constant outputs.
    """
    return output_spectrum.participation


@quantity(aliases=("BackwardOutputEigOfCov",), source="Taiyi")
def output_grad_cov_max_eig(grad_output_spectrum: Spectrum) -> Tensor:
    """Largest eigenvalue of the covariance of the gradients that reach the output."""
    return grad_output_spectrum.leading[0]


@dataclass(slots=True)
class Matrix:
    """What is asked of a weight as a linear map; of several, of all side by side."""

    largest: Tensor
    """Largest squared singular value, float64."""
    sumsq: Tensor
    """Sum of them all."""

    def merge(self, other: Matrix) -> Matrix:
        """Of the block-diagonal matrix of both."""
        return Matrix(torch.maximum(self.largest, other.largest), self.sumsq + other.sumsq)


@reduction("matrix", cost="factorisation")
def matrix(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Matrix:
    """Measure a weight as the matrix (first axis, all others); a vector is a single column.

    Examples
    --------
    >>> found = matrix(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> float(found.largest), float(found.sumsq)
    (16.0, 25.0)
    """
    values = readable(tensor)
    wide = values.double() if values.device.type != "mps" else values
    rows = wide.reshape(len(wide), -1) if wide.dim() and wide.numel() else wide.reshape(1, -1)
    products = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    total = products.trace()
    if not products.numel() or not torch.isfinite(total):
        return Matrix(total, total)
    return Matrix(torch.linalg.eigvalsh(products)[-1], total)


@quantity(source="Yoshida & Miyato 2017")
def spectral_norm(weight_matrix: Matrix) -> Tensor:
    """Largest factor by which the weight stretches an input, its largest singular value.

    Exact, from the smaller of ``W W^T`` and ``W^T W`` in float64. A convolution's weight counts
    as the matrix (output channels, all else).
    """
    return weight_matrix.largest.clamp(min=0).sqrt()


@quantity(source="Rudelson & Vershynin 2007")
def weight_stable_rank(weight_matrix: Matrix) -> Tensor:
    """Number of directions in which the weight works, ``||W||_F^2 / s_max^2``; missing if zero."""
    return weight_matrix.sumsq / weight_matrix.largest
