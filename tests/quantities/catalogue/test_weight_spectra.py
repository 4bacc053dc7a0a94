"""Singular values of weights with known spectra; saturation of known covariances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from notebook_probe.quantities import as_quantity, quantities
from notebook_probe.quantities.catalogue.weight_spectra import powers
from tests.quantities.evaluated import evaluate


def normal(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def with_values(values: Tensor, seed: int = 0) -> Tensor:
    """A square matrix with these singular values."""
    n = len(values)
    left, right = (torch.linalg.qr(normal(seed + i, n, n))[0] for i in range(2))
    return left @ torch.diag(values) @ right


def test_singular_values_are_those_it_was_made_of() -> None:
    values = torch.logspace(1, -4, 12, dtype=torch.float64)
    found = evaluate(quantities["weight_singular_values"], with_values(values))
    np.testing.assert_allclose(found, values, rtol=1e-4)


@pytest.mark.parametrize("shape", [(300, 400), (400, 300), (256, 64, 3, 3)])
def test_the_norm_of_a_large_weight_needs_no_other_singular_value(shape: tuple[int, ...]) -> None:
    weight = normal(4, *shape).float()
    values = np.linalg.svd(weight.double().numpy().reshape(shape[0], -1), compute_uv=False)
    found = float(evaluate(quantities["spectral_norm"], weight))
    assert found == pytest.approx(values[0], rel=1e-7)
    rank = float(evaluate(quantities["weight_stable_rank"], weight))
    assert rank == pytest.approx(np.square(values / values[0]).sum(), rel=1e-6)


@pytest.mark.parametrize("alpha", [2.0, 3.5])
def test_the_exponent_of_a_power_law_is_found(alpha: float) -> None:
    ranks = (torch.arange(400, dtype=torch.float64) + 0.5) / 400
    eigenvalues = ranks ** (-1 / (alpha - 1))  # the quantiles of a Pareto distribution
    found = evaluate(quantities["weight_alpha"], with_values(eigenvalues.sqrt()))
    assert float(found) == pytest.approx(alpha, rel=0.05)


def test_the_exponent_knows_no_scale_and_no_few_eigenvalues() -> None:
    weight = normal(3, 60, 40)
    one, other = (float(evaluate(quantities["weight_alpha"], w)) for w in (weight, 1e-3 * weight))
    assert one == pytest.approx(other)
    assert np.isnan(evaluate(quantities["weight_alpha"], weight[:9]))


@pytest.mark.parametrize(("large", "share"), [(1, 0.1), (4, 0.4), (10, 1.0)])
def test_saturation_counts_the_directions_that_matter(large: int, share: float) -> None:
    scales = torch.ones(10, dtype=torch.float64)
    scales[large:] = 1e-3
    steps = [normal(i, 40, 10) * scales for i in range(3)]
    found = evaluate(quantities["saturation"], *steps, module=nn.Linear(1, 1))
    assert float(found) == pytest.approx(share)
    together = evaluate(quantities["saturation"], torch.cat(steps), module=nn.Linear(1, 1))
    assert float(found) == float(together), "of all steps since the last due one"


def test_the_step_of_muon_is_nearly_orthogonal_and_that_of_one_direction_is_not() -> None:
    of = as_quantity("update_orthogonality")
    rotation = torch.linalg.qr(normal(5, 12, 8))[0]
    assert float(of(powers(0.02 * rotation))) == pytest.approx(1.0)
    assert float(of(powers(normal(6, 12, 1) @ normal(7, 1, 8)))) == pytest.approx(1 / 8)
    assert float(of(powers(newton_schulz(normal(8, 64, 256))))) == pytest.approx(0.88, abs=0.03)
    assert float(of(powers(normal(9, 64, 64)))) == pytest.approx(0.5, abs=0.03)
    assert np.isnan(of(powers(torch.zeros(3, 4))))


def newton_schulz(gradient: Tensor) -> Tensor:
    """Muon's iterations, with the factors of its author."""
    x = gradient / gradient.norm()
    for _ in range(5):
        products = x @ x.T
        x = 3.4445 * x + (-4.775 * products + 2.0315 * products @ products) @ x
    return x
