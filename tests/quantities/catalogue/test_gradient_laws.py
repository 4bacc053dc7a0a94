"""What must hold of gradients' quantities whatever the gradients are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.reduce.stat import Stat
from notebook_probe.quantities.reduce.vectors import cosine, dot, length

laws = settings(max_examples=30, deadline=None, derandomize=True)

seeds = st.integers(0, 2**31)
counts = st.integers(2, 6)
scales = st.sampled_from([1e-12, 0.125, 1.0, 3.0, 1e12])


OF_ELEMENTS = ["gsnr", "early_stopping_evidence"]
OF_ANGLES = ["stiffness", "inner_product_test", "orthogonality_test"]


def gradients(seed: int, k: int, n: int = 20, signal: float = 1.0) -> torch.Tensor:
    """Of k micro-batches: what they have in common, and noise."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(n, generator=generator, dtype=torch.float64)
    return signal * common + torch.randn(k, n, generator=generator, dtype=torch.float64)


def stats(micro: torch.Tensor) -> tuple[Stat, Stat]:
    """As they are pooled over an accumulated step."""
    total = micro.sum(dim=0)
    return Stat(micro.numel(), float((micro**2).sum())), Stat(len(total), float(total @ total))


def windowed(name: str, micro: torch.Tensor) -> float:
    """Of two parameters, of 7 and 13 elements."""
    windows = [as_quantity(name)() for _ in range(2)]
    for window, parts in zip(windows, micro.split([7, 13], dim=1), strict=True):
        window.reset()
        for part in parts:
            window.update(part)
    return float(windows[0].merge(windows[1]).compute())


@laws
@given(seed=seeds, k=counts, scale=scales)
def test_ratios_of_noise_to_signal_do_not_know_the_loss_scale(
    seed: int, k: int, scale: float
) -> None:
    micro = gradients(seed, k, signal=3.0)
    for name in (*OF_ELEMENTS, *OF_ANGLES):
        assert windowed(name, scale * micro) == pytest.approx(windowed(name, micro), rel=1e-6)
    norm_test = as_quantity("norm_test")
    assert norm_test(*stats(scale * micro)) == pytest.approx(norm_test(*stats(micro)), rel=1e-6)
    one, other = as_quantity("gradient_noise_scale")(), as_quantity("gradient_noise_scale")()
    one.update(*stats(micro))
    other.update(*stats(scale * micro))
    assert other.compute() == pytest.approx(one.compute(), rel=1e-6)


@laws
@given(seed=seeds, k=counts)
def test_the_order_of_micro_batches_and_of_elements_does_not_matter(seed: int, k: int) -> None:
    micro = gradients(seed, k)
    generator = torch.Generator().manual_seed(seed)
    rows, columns = (torch.randperm(n, generator=generator) for n in micro.shape)
    mixed = micro[rows][:, columns]
    for name in (*OF_ELEMENTS, *OF_ANGLES):
        assert windowed(name, mixed) == pytest.approx(windowed(name, micro), rel=1e-9)


@laws
@given(seed=seeds, k=counts, signal=st.sampled_from([0.0, 1.0, 100.0]))
def test_the_errors_along_and_across_the_gradient_make_up_the_whole(
    seed: int, k: int, signal: float
) -> None:
    """Pythagoras: the two tests of Bollapragada et al. are the legs of that of Byrd et al."""
    micro = gradients(seed, k, signal=signal)
    legs = [windowed(name, micro) for name in ("inner_product_test", "orthogonality_test")]
    whole = as_quantity("norm_test")(*stats(micro))
    assert math.hypot(*legs) == pytest.approx(whole, rel=1e-6, abs=1e-9)


@laws
@given(seed=seeds, angle=st.floats(0.01, 1.5))
def test_two_micro_batches_as_long_as_each_other_err_across_by_the_tangent_of_half_their_angle(
    seed: int, angle: float
) -> None:
    axes, _ = torch.linalg.qr(gradients(seed, 2).T)
    turned = [axes[:, 0] * math.cos(a) + axes[:, 1] * math.sin(a) for a in (-angle, angle)]
    found = windowed("orthogonality_test", torch.stack(turned))
    assert found == pytest.approx(math.tan(angle), rel=1e-6)
    assert windowed("inner_product_test", torch.stack(turned)) == pytest.approx(0, abs=1e-6)


@laws
@given(seed=seeds, k=counts, signal=st.sampled_from([0.0, 1.0, 100.0]))
def test_stiffness_lies_between_the_widest_spread_and_agreement(
    seed: int, k: int, signal: float
) -> None:
    found = windowed("stiffness", gradients(seed, k, signal=signal))
    assert -1 / (k - 1) - 1e-12 <= found <= 1 + 1e-12


@laws
@given(seed=seeds, k=counts)
def test_micro_batches_that_are_all_alike_have_no_noise(seed: int, k: int) -> None:
    alike = gradients(seed, 1).expand(k, -1)
    assert windowed("stiffness", alike) == pytest.approx(1)
    for name in ("inner_product_test", "orthogonality_test"):
        assert windowed(name, alike) == pytest.approx(0, abs=1e-12)
    assert math.isnan(windowed("gsnr", alike)), "no element differs"
    assert as_quantity("norm_test")(*stats(alike)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("k", [8, 16])
def test_pure_noise_gives_the_evidence_and_the_signal_that_few_micro_batches_bias(k: int) -> None:
    """A mean over its standard error has Student's t with ``k - 1`` degrees of freedom."""
    generator = torch.Generator().manual_seed(k)
    noise = torch.randn(k, 20, 20_000, generator=generator, dtype=torch.float64).flatten(1)
    windows = as_quantity("early_stopping_evidence")(), as_quantity("gsnr")()
    for window in windows:
        window.reset()
        for gradient in noise:
            window.update(gradient)
    evidence, signal = (float(window.compute()) for window in windows)
    assert evidence == pytest.approx(-2 / (k - 3), abs=0.01)
    assert signal == pytest.approx((k - 1) / (k - 3) / k, rel=0.01)


@laws
@given(
    start=st.floats(1e-6, 1e6),
    ratio=st.floats(0.01, 100),
    n=st.integers(2, 30),
    scale=st.floats(1e-3, 1e3),
)
def test_gradients_that_grow_by_a_factor_have_its_logarithm_as_slope(
    start: float, ratio: float, n: int, scale: float
) -> None:
    """On their way back: from the last layer to the first."""
    slope = as_quantity("grad_depth_slope")
    layers = [Stat(1, (start * ratio**k) ** 2) for k in reversed(range(n))]
    scaled = [Stat(1, scale**2 * layer.sumsq) for layer in layers]
    assert slope(layers) == pytest.approx(math.log10(ratio), abs=1e-6)
    assert slope(scaled) == pytest.approx(slope(layers), abs=1e-6)
    assert slope(layers[::-1]) == pytest.approx(-slope(layers), abs=1e-6)


@laws
@given(
    seed=seeds,
    shape=st.sampled_from([(0,), (1,), (7, 3), (2048,), (5000,), (64, 65)]),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    transposed=st.booleans(),
)
def test_a_dot_product_is_that_of_float64(
    seed: int, shape: tuple[int, ...], scale: float, transposed: bool
) -> None:
    """Also where products leave the range of float32, and of tensors that lie differently."""
    generator = torch.Generator().manual_seed(seed)
    one, other = (torch.randn(shape, generator=generator) * scale for _ in range(2))
    if transposed and len(shape) == 2:
        other = other.T.contiguous().T
    exact = float(np.sum(one.double().numpy() * other.double().numpy()))
    size = float(length(one) * length(other))
    assert float(dot(one, other)) == pytest.approx(exact, abs=1e-6 * size)
    assert float(length(one)) == pytest.approx(float(one.double().norm()), rel=1e-6)
    if one.numel():
        assert abs(float(cosine(one, other))) <= 1 + 1e-6
        assert float(cosine(one, 2.5 * one)) == pytest.approx(1, abs=1e-6)
