"""The dearest reductions against the usual call: spectra against SVD, histograms against histc.

In turns, in one process, on one thread; the ratio is that of the usual call to ours. Results are
compared with numpy's before anything is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.pairs import paired
from benchmarks.table import Table
from notebook_probe.quantities.histograms import BINS, NONFINITE, POSITIVE, histogram
from notebook_probe.quantities.spectrum import spectrum

__all__ = ["add_arguments", "run"]

COLUMNS = {"reduction": 40, "ours us": 8, "usual us": 9, "times": 6, "n": 4, "target": 7, "met": 3}


LAYER = nn.Linear(1, 1)
"""Whose rows they are: any of its kind."""


@dataclass(frozen=True)
class Duel:
    """Our reduction and the call that others make for the same."""

    name: str
    tensor: Tensor
    ours: Callable[[Tensor], object]
    usual: Callable[[Tensor], object]
    target: float


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _eigenvalues(rows: Tensor) -> Tensor:
    return spectrum(rows, LAYER).eigenvalues


def _svd_of_covariance(rows: Tensor) -> Tensor:
    return torch.linalg.svd(torch.cov(rows.T))[1]


def _histc(values: Tensor) -> Tensor:
    return torch.histc(values, BINS.size)


def _counts(values: Tensor) -> Tensor:
    return histogram(values).counts


def _leading(rows: Tensor) -> object:
    return spectrum(rows, LAYER).leading


SIZES = (65_536, 2_359_296)
SHAPES = ((256, 512, 15.0), (128, 784, 60.0))
DUELS = (
    *(
        Duel(f"{name}, {n} x {d}", _normal(n, d), ours, _svd_of_covariance, target)
        for n, d, target in SHAPES
        for name, ours in (("largest and stable rank", _leading), ("all eigenvalues", _eigenvalues))
    ),
    *(Duel(f"histogram of {n:,}", _normal(n), _counts, _histc, 6.0) for n in SIZES),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line (default 5)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per reduction and size."""
    torch.set_num_threads(1)
    _check()
    print("reductions, CPU, one thread: how many times faster than the usual call\n")
    table = Table(COLUMNS)
    for duel in DUELS:
        ours, usual = (_calling(call, duel.tensor) for call in (duel.ours, duel.usual))
        ours(), usual()
        pairs = paired(usual, ours, seconds=chosen.seconds)
        ratio, ours_us = pairs.ratio(), 1e6 * pairs.plain_s
        table.row(
            duel.name,
            f"{ours_us:.0f}",
            f"{1e6 * float(np.median(pairs.probed)):.0f}",
            f"{ratio:.1f}",
            str(pairs.n),
            f">= {duel.target:.0f}",
            "yes" if ratio >= duel.target else "NO",
        )


def _calling(call: Callable[[Tensor], object], tensor: Tensor) -> Callable[[], None]:
    def step() -> None:
        call(tensor)

    return step


def _check() -> None:
    """Ours are numpy's numbers: eigenvalues to 1e-5, counts exactly."""
    for duel in DUELS[: -len(SIZES)]:
        want = np.linalg.eigvalsh(np.cov(duel.tensor.double().numpy().T))[::-1]
        np.testing.assert_allclose(_eigenvalues(duel.tensor), want, atol=1e-5 * want[0])
    for duel in DUELS[-len(SIZES) :]:
        edges = [*BINS.coords["bin_lo"][POSITIVE:NONFINITE], np.inf]
        want, _ = np.histogram(duel.tensor.numpy(), edges)
        np.testing.assert_array_equal(_counts(duel.tensor)[POSITIVE:NONFINITE].numpy(), want)
