"""Curvature against Hessians in closed form, in float64 numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.catalogue.curvature import (
    AlphaStep,
    hessian_trace,
    sam_sharpness,
    sharpness,
)
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.solvers import lanczos

Array = npt.NDArray[np.float64]


def quadratic(matrix: Array, at: Array, slope: Array | float = 0.0) -> Landscape:
    """``w A w / 2 + b w``: its Hessian is A everywhere."""
    a, b = torch.tensor(matrix), torch.tensor(np.broadcast_to(slope, at.shape).copy())
    return Landscape(lambda point: point[0] @ a @ point[0] / 2 + b @ point[0], [torch.tensor(at)])


def symmetric(seed: int, values: Sequence[float]) -> Array:
    """With these eigenvalues."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return axes @ np.diag(values) @ axes.T


class Logistic:
    """Logistic regression, whose loss, gradient and Hessian are known in closed form."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x, self.w = rng.normal(size=(30, 5)), rng.normal(size=5)
        self.y = rng.integers(0, 2, 30).astype(float)

    def landscape(self) -> Landscape:
        x, y = torch.tensor(self.x), torch.tensor(self.y)
        loss = nn.functional.binary_cross_entropy_with_logits
        return Landscape(lambda point: loss(x @ point[0], y), [torch.tensor(self.w)])

    def loss(self, w: Array) -> float:
        z = self.x @ w
        return float(np.mean(np.logaddexp(0, z) - self.y * z))

    @property
    def gradient(self) -> Array:
        return self.x.T @ (self.p - self.y) / len(self.y)

    @property
    def hessian(self) -> Array:
        return self.x.T @ np.diag(self.p * (1 - self.p)) @ self.x / len(self.y)

    @property
    def p(self) -> Array:
        return 1 / (1 + np.exp(-self.x @ self.w))


def test_loss_gradient_and_products_are_those_of_logistic_regression() -> None:
    model = Logistic()
    landscape, v = model.landscape(), np.arange(5.0)

    assert float(landscape.value) == pytest.approx(model.loss(model.w))
    np.testing.assert_allclose(landscape.gradient.numpy(), model.gradient)
    np.testing.assert_allclose(landscape.product(torch.tensor(v)).numpy(), model.hessian @ v)
    assert float(landscape.loss_at(torch.tensor(v))) == pytest.approx(model.loss(model.w + v))


def test_sharpness_trace_and_sam_are_those_of_logistic_regression() -> None:
    model, landscape = Logistic(), Logistic().landscape()
    uphill = model.w + 0.05 * model.gradient / np.linalg.norm(model.gradient)

    largest = np.linalg.eigvalsh(model.hessian)[-1]
    assert sharpness(landscape) == pytest.approx(largest, rel=1e-6)
    assert float(hessian_trace(landscape)) == pytest.approx(np.trace(model.hessian))
    rise = model.loss(uphill) - model.loss(model.w)
    assert float(sam_sharpness(landscape)) == pytest.approx(rise)


def test_a_network_has_the_curvature_of_its_full_hessian() -> None:
    x, y = torch.randn(20, 3), torch.randn(20, 2)
    net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
    names, point = zip(*net.named_parameters(), strict=True)

    def loss(point: Sequence[Tensor]) -> Tensor:
        parameters = dict(zip(names, point, strict=True))
        return (torch.func.functional_call(net, parameters, (x,)) - y).square().mean()

    landscape = Landscape(loss, point)
    wide = Landscape(lambda point: loss([p.float() for p in point]), point)
    full = torch.autograd.functional.hessian(
        lambda flat: loss(wide.split(flat)), wide.position, vectorize=False
    )
    eigenvalues = np.linalg.eigvalsh(full.double().numpy())
    assert sharpness(landscape) == pytest.approx(eigenvalues[-1], rel=1e-4)
    assert float(hessian_trace(landscape)) == pytest.approx(eigenvalues.sum(), rel=1e-4)


@example(9, [0.03125, -3.0, 0.0])
@given(
    st.integers(0, 99),
    st.lists(st.floats(-100, 100, width=16), min_size=1, max_size=12),
)
def test_lanczos_finds_the_largest_eigenvalue_of_any_symmetric_matrix(
    seed: int, values: list[float]
) -> None:
    matrix = symmetric(seed, values)
    start = torch.tensor(np.random.default_rng(seed + 1).normal(size=len(values)))
    found = lanczos(lambda v: torch.tensor(matrix) @ v, start)
    assert found == pytest.approx(max(values), abs=1e-3 * max(map(abs, values)) + 1e-9)


def test_a_large_negative_curvature_is_not_taken_for_sharpness() -> None:
    matrix = symmetric(0, [-50.0, -1.0, 0.0, 2.0])
    assert sharpness(quadratic(matrix, np.zeros(4))) == pytest.approx(2.0, rel=1e-5)


@pytest.mark.slow
@given(st.floats(0.01, 100))
def test_sharpness_and_trace_scale_with_the_loss(factor: float) -> None:
    matrix = symmetric(3, [1.0, 2.0, 5.0])
    once, more = (quadratic(k * matrix, np.ones(3)) for k in (1.0, factor))
    assert sharpness(more) == pytest.approx(factor * sharpness(once), rel=1e-6)
    traces = [float(hessian_trace(one)) for one in (once, more)]
    assert traces[1] == pytest.approx(factor * traces[0])


def test_the_trace_of_many_parameters_is_within_its_standard_error() -> None:
    matrix = symmetric(1, [*np.linspace(0, 3, 200)])
    off = matrix - np.diag(np.diag(matrix))
    error = math.sqrt(2 * np.sum(off**2) / 64)
    assert abs(float(hessian_trace(quadratic(matrix, np.zeros(200)))) - 300.0) < 3 * error


def test_random_signs_give_the_exact_trace_of_a_diagonal_matrix() -> None:
    diagonal = np.linspace(-1, 3, 300)
    found = float(hessian_trace(quadratic(np.diag(diagonal), np.zeros(300))))
    assert found == pytest.approx(diagonal.sum())


def steps_of(landscapes: Sequence[Landscape]) -> float | None:
    window: Any = AlphaStep()
    window.reset()
    for landscape in landscapes:
        window.update(landscape)
    found: float | None = window.compute()
    return found


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0, 1.7])
def test_alpha_is_how_far_gradient_descent_goes_on_a_parabola(rate: float) -> None:
    """On ``h w^2 / 2`` a step of rate r goes ``r h`` of the way to the minimum."""
    h, w = 2.0, np.array([3.0])
    ends = [quadratic(np.array([[h]]), at) for at in (w, w - rate * h * w)]
    assert steps_of(ends) == pytest.approx(rate * h - 1)


def test_alpha_is_missing_before_a_second_step_and_on_a_slope_that_does_not_curve() -> None:
    flat = [quadratic(np.zeros((1, 1)), np.array([at]), slope=1.0) for at in (1.0, 0.0)]
    assert steps_of(flat[:1]) is None
    assert steps_of(flat) is None


@pytest.mark.parametrize("measured", [sharpness, hessian_trace, sam_sharpness])
def test_a_loss_that_is_not_a_number_has_no_curvature(
    measured: Callable[[Landscape], Any],
) -> None:
    broken = quadratic(np.eye(3) * math.nan, np.ones(3))
    assert math.isnan(float(measured(broken)))


def test_at_a_minimum_there_is_no_uphill() -> None:
    assert math.isnan(float(sam_sharpness(quadratic(np.eye(3), np.zeros(3)))))


def test_a_linear_loss_has_no_curvature() -> None:
    plane = Landscape(lambda point: point[0].sum(), [torch.ones(3)])
    assert sharpness(plane) == 0.0
    assert float(hessian_trace(plane)) == 0.0


def test_sixteen_bit_weights_are_joined_to_vectors_of_thirty_two() -> None:
    landscape = Landscape(
        lambda point: sum((part.float().square().sum() for part in point), torch.zeros(())),
        [torch.ones(2, dtype=torch.bfloat16), torch.ones(1, 3)],
    )
    assert landscape.gradient.dtype is torch.float32
    assert sharpness(landscape) == pytest.approx(2.0, rel=3e-2)  # of vectors rounded to 16 bits
    assert [part.shape for part in landscape.split(landscape.gradient)] == [(2,), (1, 3)]


@pytest.mark.parametrize(
    ("loss", "point", "said"),
    [
        (lambda point: torch.ones(()), [], "nothing there requires a gradient"),
        (lambda point: torch.ones(()), [torch.ones(2)], "does not depend"),
        (lambda point: torch.ones(()), [torch.ones(2) + 1j], "complex"),
    ],
)
def test_what_has_no_landscape_says_why(
    loss: Callable[[Any], Tensor], point: list[Tensor], said: str
) -> None:
    with pytest.raises(UnreadableError, match=said):
        sharpness(Landscape(loss, point))
