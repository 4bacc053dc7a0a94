"""Number of directions in use: of activations, and of the gradients that reach them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.arrays import readable
from notebook_probe.quantities.reduce.reductions import reduction
from notebook_probe.quantities.reduce.spectrum import Spectrum

__all__ = [
    "Saturation",
    "effective_rank",
    "effective_rank_share",
    "n_output_rows",
    "output_grad_cov_max_eig",
    "participation_ratio",
    "sample_effective_rank",
]

EXPLAINED = 0.99
"""Share of the variance that counts as all of it."""


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
    return _entropy_rank(output_spectrum.singular_values)


@quantity(source="https://arxiv.org/abs/2210.02885", question=questions.COLLAPSE, bounds=(0, 1))
def effective_rank_share(output_spectrum: Spectrum) -> Tensor:
    """Effective rank of the outputs over the largest, ``effective_rank / min(rows, channels)``.

    Comparable between layers of any width and batches of any size. Below about 0.05 the outputs
    of a wide layer are nearly the same for every input, or lie on a line. Missing where all is
    zero.

    Warnings
    --------
    Never below ``1 / min(rows, channels)``: of narrow layers and tiny batches it says little.
    """
    values = output_spectrum.singular_values
    return _entropy_rank(values) / len(values)


def _entropy_rank(values: Tensor) -> Tensor:
    total = values.sum()
    # The addend is that of RankMe; it keeps the logarithm finite.
    share = values / total + 1e-7
    return (-(share * share.log()).sum()).exp().where(total > 0, torch.nan)


@reduction("sample_spectrum", first_only=True, cost="factorisation")
def sample_spectrum(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> Spectrum:
    """Measure a tensor as one row per sample, with everything of the sample in its columns.

    Examples
    --------
    >>> sample_spectrum(torch.zeros(2, 3, 4, 4)).mean.shape
    torch.Size([48])
    """
    values = torch.atleast_2d(readable(tensor))
    wide = torch.float64 if values.device.type != "mps" else torch.float32
    return Spectrum.of(values.to(wide, copy=True).flatten(1))


@quantity(source="https://arxiv.org/abs/2210.02885", question=questions.COLLAPSE)
def sample_effective_rank(output_sample_spectrum: Spectrum) -> Tensor:
    """Effective rank of one vector per sample, ``exp(-sum p ln p)``, ``p = s / sum(s) + 1e-7``.

    As `effective_rank`, with all that belongs to a sample in one row: how many different samples
    the layer still tells apart. Falling, they are mapped onto each other.

    Warnings
    --------
    At most the number of samples in a step: small batches say little.
    """
    return _entropy_rank(output_sample_spectrum.singular_values)


@quantity(source="definition", question=questions.COLLAPSE)
def n_output_rows(output_spectrum: Spectrum) -> float:
    """Number of samples and positions that spectra and ranks of the outputs are of, ``R``.

    No rank is larger than ``R``, that of a covariance not than ``R - 1``: where it is below the
    number of channels they describe the batch as well. With more than 2048 channels, 2048 rows of
    each call are drawn.

    Warnings
    --------
    Positions of one sample resemble each other: many rows need not be much evidence.
    """
    return float(output_spectrum.n_rows)


@quantity(source="https://doi.org/10.1101/214262", question=questions.COLLAPSE)
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


@quantity(
    aliases=("BackwardOutputEigOfCov", "grad_output_cov_max_eig"),
    source="Taiyi",
    question=questions.SIGNAL,
)
def output_grad_cov_max_eig(grad_output_leading: Spectrum) -> Tensor:
    """Largest eigenvalue of the covariance of the gradients at the output, ``l_1(cov(dL/dy))``.

    How strongly the backward signal of the samples agrees on one direction; a rise over
    training is a layer on which all samples pull alike.

    Warnings
    --------
    With a loss that is a mean over samples it shrinks like the square of the batch.
    """
    return grad_output_leading.leading[0]


@window_quantity(
    source="https://arxiv.org/abs/1907.08589; Delve", question=questions.COLLAPSE, bounds=(0, 1)
)
class Saturation:
    """Share of the directions that hold 99 % of the variance, ``k / d``: Delve's saturation.

    ``k`` is the smallest with ``l_1 + ... + l_k >= 0.99 sum(l)``; ``l`` are the eigenvalues of
    the covariance of the outputs over all steps since the last due one. Near 1 the layer is too
    narrow, near 0 wider than it needs to be. Missing for constant outputs.

    Warnings
    --------
    With fewer rows than channels it is bounded by the rows: let it gather some steps, as with
    ``"every(50)"``. Every step in between costs a covariance.
    """

    def reset(self) -> None:
        # Of no rows rather than None: so a checkpoint can be read into it.
        self._seen = Spectrum.of_nothing(0)

    def update(self, output_spectrum: Spectrum) -> None:
        is_same = self._seen.mean.shape == output_spectrum.mean.shape
        # Calls of another width cannot be pooled: the window starts again.
        self._seen = self._seen.merge(output_spectrum) if is_same else output_spectrum

    def compute(self) -> Tensor | None:
        if not self._seen.n_rows:
            return None
        eigenvalues = self._seen.eigenvalues
        total = eigenvalues.sum()
        missing = total - eigenvalues.cumsum(0) > (1 - EXPLAINED) * total
        share = (1 + missing.double().sum()) / len(eigenvalues)
        return share.where(total > 0, torch.nan)
