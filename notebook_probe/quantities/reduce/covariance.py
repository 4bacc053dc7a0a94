"""The covariance of a tensor's channels and its eigenvalues, for quantities of a user's own.

As functions, of a tensor and of a matrix; as shared reductions, ``input_covariance`` and
``input_cov_eigs`` of every tensor, both worked out of the one `Spectrum` that all our spectra are.
"""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import Derived, derive
from notebook_probe.quantities.reduce.samples import samples
from notebook_probe.quantities.reduce.solvers import eigvalsh
from notebook_probe.quantities.reduce.spectrum import Spectrum

__all__ = ["cov_eigs", "covariance"]

SAME = 1e-4
"""Two elements of a symmetric matrix may differ by so much of the largest: float32's rounding."""


def covariance(tensor: Tensor, module: nn.Module | None = None) -> Tensor:
    """Covariance of the channels of a tensor, ``C = sum_r (x_r - m)(x_r - m)^T / (R - 1)``.

    Rows ``x_r`` are samples and positions, ``m`` is their mean. It is that of ``numpy.cov`` with
    ``rowvar=False``.

    Parameters
    ----------
    tensor : Tensor
        Tensor of any real, complex (by its modulus) or integer type except int64, and any shape:
        (row, channel); or at a call of ``module``, with the channels where that kind of module has
        them.
    module : nn.Module, optional
        Without one they are on the last of three axes, else on axis 1.

    Returns
    -------
    Tensor, float64 (channel, channel)
        NaN for fewer than two rows; where a row is not finite so are its columns.

    Raises
    ------
    UnreadableError
        A tensor without values, or of indices.

    See Also
    --------
    cov_eigs : Its eigenvalues.

    Examples
    --------
    >>> covariance(torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]]))
    tensor([[4., 0.],
            [0., 0.]], dtype=torch.float64)
    >>> covariance(torch.randn(8, 3, 5, 5), nn.Conv2d(3, 16, 3)).shape
    torch.Size([3, 3])
    """
    if not isinstance(tensor, Tensor):
        raise QuantityError(f"covariance({type(tensor).__name__}): a tensor is expected")
    width, blocks = samples(tensor, module)
    return reduce(Spectrum.merge, map(Spectrum.of, blocks), Spectrum.of_nothing(width)).covariance


def cov_eigs(matrix: Tensor) -> Tensor:
    """Eigenvalues of a covariance, ``l_1 >= l_2 >= ...``.

    An eigenvalue that is zero up to rounding is set to 0, so that no covariance has a negative one.

    Parameters
    ----------
    matrix : Tensor, shape (n, n)
        Symmetric, of any real type; it is not written to.

    Returns
    -------
    Tensor, float64 (n,)
        Descending; NaN where the matrix is not finite, or the solver gives up.

    Raises
    ------
    QuantityError
        A matrix that is not square, or not symmetric.

    Examples
    --------
    >>> cov_eigs(covariance(torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])))
    tensor([4., 0.], dtype=torch.float64)
    """
    if not isinstance(matrix, Tensor) or matrix.dim() != 2 or len(matrix) != matrix.shape[1]:
        given = tuple(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
        raise QuantityError(f"cov_eigs({given}): a square matrix is expected, as of covariance()")
    values = readable(matrix)
    wide = values.double() if values.device.type != "mps" else values
    if not wide.numel() or not torch.isfinite(wide).all():
        return torch.full_like(wide[:, 0] if wide.numel() else wide.flatten(), torch.nan)
    largest = wide.abs().max()
    if (wide - wide.T).abs().max() > SAME * largest:
        raise QuantityError("cov_eigs: the matrix is not symmetric, as a covariance is")
    # The mean of both halves: a solver reads one triangle only.
    found = eigvalsh((wide + wide.T) / 2).flip(0)
    # Of the given type, not of the wider one: that is where the rounding happened.
    rounding = len(found) * torch.finfo(values.dtype).eps * found.abs().max()
    return found.masked_fill(found.abs() <= rounding, 0.0)


def _covariance_of(spectrum: Spectrum) -> Tensor:
    return spectrum.covariance


def _eigenvalues_of(spectrum: Spectrum) -> Tensor:
    return spectrum.eigenvalues


derive(Derived("covariance", _covariance_of, ("spectrum",), "factorisation"))
derive(Derived("cov_eigs", _eigenvalues_of, ("spectrum",), "factorisation"))
