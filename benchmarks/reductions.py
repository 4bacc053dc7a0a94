"""The dearest reductions against the usual call: spectra against SVD, histograms against histc.

In turns, in one process, on one thread: each finds the caches full of what the other left, as
between the layers of a training step. The ratio is that of the usual call to ours, median of the
pairs and quartiles. Results are compared with numpy's before anything is timed. All eigenvalues
are found in float64, whatever the rows are in, so that the SVD of the same accuracy is that in
float64; the one in float32 is what a user would write.

``floor`` lines have the one library call in place of ours that ours cannot do without.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.pairs import Step, paired
from benchmarks.table import Table
from notebook_probe.quantities.catalogue.histograms import histogram
from notebook_probe.quantities.catalogue.log_histograms import (
    BINS,
    NONFINITE,
    POSITIVE,
    log_histogram,
)
from notebook_probe.quantities.reduce.spectrum import spectrum

__all__ = ["add_arguments", "run"]

COLUMNS = {
    "reduction": 43,
    "against": 12,
    "ours us": 8,
    "usual us": 9,
    "times": 6,
    "quartiles": 12,
    "n": 4,
    "target": 7,
    "met": 3,
}

LAYER = nn.Linear(1, 1)
"""Whose rows they are: any of its kind."""


@dataclass(frozen=True)
class Duel:
    """Our reduction and the call that others make for the same."""

    name: str
    against: str
    ours: Step
    usual: Step
    target: float | None = None


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _eigenvalues(rows: Tensor) -> Tensor:
    return spectrum(rows, LAYER).eigenvalues


def _leading(rows: Tensor) -> object:
    return spectrum(rows, LAYER, frozenset({"leading"})).leading


def _counts(values: Tensor) -> Tensor:
    return log_histogram(values).counts


def _equal_bins(values: Tensor) -> Tensor:
    return histogram(values).counts


def _svd_of_covariance(rows: Tensor) -> Tensor:
    return torch.linalg.svd(torch.cov(rows.T))[1]


def _histc(values: Tensor) -> Tensor:
    return torch.histc(values, BINS.size)


SIZES = (65_536, 262_144, 2_359_296)
SHAPES = ((256, 512, 15.0), (128, 784, 60.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, help="for each line (default 5)")


def run(chosen: argparse.Namespace) -> None:
    """Print a line per reduction, size and usual call."""
    torch.set_num_threads(1)
    for n, d, _ in SHAPES:
        _check_eigenvalues(_normal(n, d))
    for size in SIZES:
        _check_counts(_normal(size))
    print("reductions, CPU, one thread: how many times faster than the usual call\n")
    table = Table(COLUMNS)
    for duel in [*_of_spectra(), *_of_histograms()]:
        _measure(duel, table, chosen.seconds)


def _of_spectra() -> list[Duel]:
    duels = []
    for n, d, target in SHAPES:
        rows = _normal(n, d)
        products = (rows.double() @ rows.double().T).numpy()
        ours = {
            f"largest and stable rank, {n} x {d}": (_on(_leading, rows), target),
            f"all eigenvalues, {n} x {d}": (_on(_eigenvalues, rows), target),
            f"floor: float64 eigvalsh of {n} x {n} alone": (
                _on(np.linalg.eigvalsh, products),
                None,
            ),
        }
        usual = {
            "float32 SVD": _on(_svd_of_covariance, rows),
            "float64 SVD": _on(_svd_of_covariance, rows.double()),
        }
        duels += [
            Duel(name, against, call, svd, least)
            for name, (call, least) in ours.items()
            for against, svd in usual.items()
        ]
    return duels


def _of_histograms() -> list[Duel]:
    duels = []
    for size in SIZES:
        values = _normal(size)
        usual = _on(_histc, values)
        first_bytes = values.view(torch.uint8)[3::4].contiguous()
        alone = _on(torch.bincount, first_bytes)
        duels += [
            Duel(f"equal bins of {size:,}", "histc", _on(_equal_bins, values), usual),
            Duel(f"powers of four of {size:,}", "histc", _on(_counts, values), usual, 6.0),
            Duel("floor: bincount of as many bytes alone", "histc", alone, usual),
        ]
    return duels


def _on(call: Callable[..., object], argument: object) -> Step:
    def step() -> None:
        call(argument)

    return step


def _measure(duel: Duel, table: Table, seconds: float) -> None:
    duel.ours()
    duel.usual()
    pairs = paired(duel.usual, duel.ours, seconds=seconds)
    ratio = pairs.ratio()
    table.row(
        duel.name,
        duel.against,
        f"{1e6 * pairs.plain_s:.0f}",
        f"{1e6 * float(np.median(pairs.probed)):.0f}",
        f"{ratio:.1f}",
        f"{pairs.ratio(0.25):.1f} … {pairs.ratio(0.75):.1f}",
        str(pairs.n),
        *(
            [f">= {duel.target:.0f}", "yes" if ratio >= duel.target else "NO"]
            if duel.target
            else []
        ),
    )


def _check_eigenvalues(rows: Tensor) -> None:
    """Ours are numpy's of the covariance, all of them to 1e-12 of the largest, that one to 1e-6."""
    want = np.linalg.eigvalsh(np.cov(rows.double().numpy().T))[::-1]
    np.testing.assert_allclose(_eigenvalues(rows), want, atol=1e-12 * want[0])
    leading = spectrum(rows, LAYER, frozenset({"leading"})).leading
    np.testing.assert_allclose([*map(float, leading)], [want[0], want.sum()], rtol=1e-6)


def _check_counts(values: Tensor) -> None:
    edges = [*BINS.coords["bin_lo"][POSITIVE:NONFINITE], np.inf]
    want, _ = np.histogram(values.numpy(), edges)
    np.testing.assert_array_equal(_counts(values)[POSITIVE:NONFINITE].numpy(), want)
    want, _ = np.histogram(values.numpy(), float(histogram(values).width) * np.arange(-32, 33))
    np.testing.assert_array_equal(_equal_bins(values)[:64].numpy(), want)
