"""How many directions something uses: of activations, of gradients, of a weight."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.quantities import questions
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


@quantity(
    aliases=("RankMe",),
    source="Roy & Vetterli 2007; https://arxiv.org/abs/2210.02885",
    question=questions.COLLAPSE,
)
def effective_rank(output_spectrum: Spectrum) -> Tensor:
    """Effective rank of the outputs, ``exp(-sum p ln p)``, ``p = s / sum(s) + 1e-7``.

    ``s`` are the singular values of the matrix of samples and positions by channels, not
    centred. 1 when all outputs are multiples of one, the number of channels when they are
    spread evenly; falling, the representation collapses. Missing where all is zero.

    Warnings
    --------
    Not more than the rows: on a small batch it says more of the batch than of the layer. A
    large common mean brings it towards 1.
    """
    values = output_spectrum.singular_values
    share = values / values.sum() + 1e-7
    return (-(share * share.log()).sum()).exp()


@quantity(source="common usage", question=questions.COLLAPSE)
def participation_ratio(output_spectrum: Spectrum) -> Tensor:
    """Number of directions in which the outputs vary, ``(sum l)^2 / sum l^2``.

    ``l`` are the eigenvalues of their covariance, which need not be computed. As
    `effective_rank`, but large directions count more and the mean not at all. Missing for
    constant outputs.

    Warnings
    --------
    Not more than the rows less one. A single direction that grows pulls it down while all
    others stay as they were.
    """
    return output_spectrum.participation


@quantity(aliases=("BackwardOutputEigOfCov",), source="Taiyi", question=questions.SIGNAL)
def output_grad_cov_max_eig(grad_output_spectrum: Spectrum) -> Tensor:
    """Largest eigenvalue of the covariance of the gradients at the output, ``l_1(cov(dL/dy))``.

    How strongly the backward signal of the samples agrees on one direction; a rise over
    training is a layer on which all samples pull alike.

    Warnings
    --------
    With a loss that is a mean over samples it shrinks like the square of the batch.
    """
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


@quantity(source="Yoshida & Miyato 2017", question=questions.SIGNAL)
def spectral_norm(weight_matrix: Matrix) -> Tensor:
    """Largest factor by which the weight stretches an input, its singular value ``s_1``.

    Exact, from the smaller of ``W W^T`` and ``W^T W`` in float64. Above 1 in many layers,
    signals and gradients can grow with depth; growth over training often comes before
    instability.

    Warnings
    --------
    A convolution's weight counts as the matrix (output channels, all else), which is not the
    norm of the convolution itself.
    """
    return weight_matrix.largest.clamp(min=0).sqrt()


@quantity(source="Rudelson & Vershynin 2007", question=questions.COLLAPSE)
def weight_stable_rank(weight_matrix: Matrix) -> Tensor:
    """Number of directions in which the weight works, ``||W||_F^2 / s_1^2``.

    Between 1 and the smaller side of the matrix; a square random matrix
    has a quarter of it. Falling, the layer narrows to a few directions. Missing for a
    weight of zeros.

    Warnings
    --------
    The top singular value alone sets it: many middling directions look the same as few.
    """
    return weight_matrix.sumsq / weight_matrix.largest
