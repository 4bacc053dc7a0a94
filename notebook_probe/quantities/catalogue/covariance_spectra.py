"""Eigenvalues of covariances: in how many directions inputs, outputs and gradients vary."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.axis import PER_CHANNEL
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.spectrum import Spectrum

__all__ = [
    "input_cov_condition",
    "input_cov_condition_20",
    "input_cov_condition_50",
    "input_cov_condition_80",
    "input_cov_condition_100",
    "input_cov_eigs",
    "input_cov_max_eig",
    "input_cov_stable_rank",
    "input_cov_top_eigs_20",
    "input_cov_top_eigs_50",
    "input_cov_top_eigs_80",
    "output_cov_eigs",
    "output_grad_cov_eigs",
]


@quantity(aliases=("InputCovMaxEig",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_max_eig(input_leading: Spectrum) -> Tensor:
    """Largest eigenvalue of the inputs' covariance, ``l_1``: variance along the main direction.

    It bounds the learning rate that the layer bears, about ``2 / l_1`` for a linear layer on
    centred inputs with squared loss; normalisation brings it down.

    Warnings
    --------
    Scales with the square of the inputs. Missing for fewer than two rows.
    """
    return input_leading.leading[0]


@quantity(aliases=("InputCovStableRank",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_stable_rank(input_leading: Spectrum) -> Tensor:
    """Stable rank of the inputs, ``sum l / l_1`` of the eigenvalues of their covariance.

    About how many directions carry them: 1 when all lie on a line, the number of channels when
    they are spread evenly. Missing for constant inputs.

    Warnings
    --------
    The largest eigenvalue alone sets it, and it cannot exceed the rows less one.
    """
    largest, total = input_leading.leading
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
        # 0 * NaN stays NaN, so that broken inputs are not reported as ill-conditioned.
        return (0 * largest).where(largest.isnan(), torch.inf)
    smallest = input_spectrum.eigenvalues[-1]
    return (largest / smallest).where(smallest != 0, torch.inf)


def _ratio(spectrum: Spectrum, percent: int) -> Tensor:
    """Return the largest eigenvalue over the one after ``percent`` of them, as Taiyi does."""
    largest, _ = spectrum.leading
    if spectrum.is_singular and percent == 100:
        return largest / 1e-7
    eigenvalues = spectrum.eigenvalues
    place = min(len(eigenvalues) * percent // 100, len(eigenvalues) - 1)
    return eigenvalues[0] / (eigenvalues[place] + 1e-7)


@quantity(aliases=("InputCovCondition20",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_20(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over a fifth of the directions, ``l_1 / (l_(i+1) + 1e-7)``.

    The eigenvalues ``l`` of the covariance fall; ``i = d * 20 // 100``. How far the first fifth
    of the directions stands out; 1 when they are all alike. Batch normalisation lowers it,
    which is one explanation of why it speeds up training.

    Warnings
    --------
    Of fewer than five channels it is about 1. Few rows make it large.
    """
    return _ratio(input_spectrum, 20)


@quantity(aliases=("InputCovCondition50",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_50(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over half of the directions, ``l_1 / (l_(i+1) + 1e-7)``.

    The eigenvalues ``l`` of the covariance fall; ``i = d * 50 // 100``. How far the main
    direction exceeds the middle one; 1 when all are alike.

    Warnings
    --------
    1e7 times the largest eigenvalue where half of the directions are empty, as with fewer rows
    than half of the channels.
    """
    return _ratio(input_spectrum, 50)


@quantity(aliases=("InputCovCondition80",), source="Taiyi", question=questions.COLLAPSE)
def input_cov_condition_80(input_spectrum: Spectrum) -> Tensor:
    """Condition of the inputs over four fifths of the directions, ``l_1 / (l_(i+1) + 1e-7)``.

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


@quantity(
    axis=PER_CHANNEL,
    aliases=("ForwardInputEigOfCovExtension",),
    source="Taiyi",
    question=questions.COLLAPSE,
)
def input_cov_eigs(input_spectrum: Spectrum) -> Tensor:
    """Eigenvalues of the covariance of the inputs, ``l_1 >= l_2 >= ...``, all.

    On a log scale a straight fall is usual; a cliff is where the inputs have no more directions.
    Its length is the number of channels.

    Warnings
    --------
    No more than the rows less one are above 0: on a small batch the end of it is the batch's.
    """
    return input_spectrum.eigenvalues


@quantity(axis=PER_CHANNEL, aliases=("spectrum",), source="definition", question=questions.COLLAPSE)
def output_cov_eigs(output_spectrum: Spectrum) -> Tensor:
    """Eigenvalues of the covariance of the outputs, ``l_1 >= l_2 >= ...``, all.

    Spectrum that `participation_ratio` and `saturation` summarize in one number. A flatter spectrum
    means that the representation uses more directions; collapse begins at the tail.

    Warnings
    --------
    No more than the rows less one are above 0: on a small batch the end of it is the batch's.
    """
    return output_spectrum.eigenvalues


@quantity(
    axis=PER_CHANNEL,
    aliases=("BackwardOutputEigOfCovExtension",),
    source="Taiyi",
    question=questions.SIGNAL,
)
def output_grad_cov_eigs(grad_output_spectrum: Spectrum) -> Tensor:
    """Eigenvalues of the covariance of the gradients at the output, ``l_1 >= l_2 >= ...``, all.

    How many directions the samples pull in: of a classifier's last layer about as many as there
    are classes.

    Warnings
    --------
    With a loss that is a mean over samples they shrink like the square of the batch.
    """
    return grad_output_spectrum.eigenvalues


def _top(spectrum: Spectrum, percent: int) -> Tensor:
    """The largest ``ceil(d percent / 100)`` eigenvalues, ascending."""
    eigenvalues = spectrum.eigenvalues
    return eigenvalues[: -(-len(eigenvalues) * percent // 100)].flip(0)


@quantity(axis=PER_CHANNEL, source="Taiyi", question=questions.COLLAPSE)
def input_cov_top_eigs_20(input_spectrum: Spectrum) -> Tensor:
    """Largest fifth of the eigenvalues of the input covariance, ``l_k, ..., l_1, k = ceil(0.2 d)``.

    Ascending: the part of `input_cov_eigs` that matters most, as Taiyi's documents have it.

    Warnings
    --------
    Of up to five channels it is the largest alone.
    """
    return _top(input_spectrum, 20)


@quantity(axis=PER_CHANNEL, source="Taiyi", question=questions.COLLAPSE)
def input_cov_top_eigs_50(input_spectrum: Spectrum) -> Tensor:
    """Largest half of the eigenvalues of the input covariance, ``l_k, ..., l_1, k = ceil(0.5 d)``.

    Ascending: the upper part of `input_cov_eigs`, as Taiyi's documents have it.

    Warnings
    --------
    With fewer rows than half of the channels some are 0.
    """
    return _top(input_spectrum, 50)


@quantity(axis=PER_CHANNEL, source="Taiyi", question=questions.COLLAPSE)
def input_cov_top_eigs_80(input_spectrum: Spectrum) -> Tensor:
    """Largest 80 % of the eigenvalues of the input covariance, ``l_k, ..., l_1, k = ceil(0.8 d)``.

    Ascending: `input_cov_eigs` without its end, which is often the batch's and not the layer's;
    as Taiyi's documents have it.

    Warnings
    --------
    With fewer rows than channels some are 0.
    """
    return _top(input_spectrum, 80)
