"""Laws that hold whatever the numbers are, and what becomes of numbers that are none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.quantities.catalogue import precision, weight_spectra
from notebook_probe.quantities.catalogue import ranks as ranks
from notebook_probe.quantities.catalogue import rms_and_maxima as scales
from notebook_probe.quantities.catalogue.weight_spectra import matrix
from notebook_probe.quantities.reduce.measure import measure
from notebook_probe.quantities.reduce.spectrum import spectrum
from tests.models import normal

SEEDS = st.integers(0, 2**31 - 1)
SIZES = st.integers(2, 9)
FACTORS = st.sampled_from([-3.0, 0.25, 1e-6, 5e4])
LAWS = settings(max_examples=25, deadline=None)
LARGEST = frozenset({"largest"})


def orthogonal(seed: int, n: int) -> Tensor:
    return torch.linalg.qr(normal(seed, n, n).double())[0].float()


@LAWS
@given(SEEDS, SIZES, SIZES, FACTORS)
def test_scales_scale(seed: int, rows: int, columns: int, factor: float) -> None:
    x = normal(seed, rows, columns)
    for quantity in (scales.output_rms, scales.output_abs_max):
        one, other = (float(quantity(measure(t, LARGEST))) for t in (x, factor * x))
        assert math.isclose(other, abs(factor) * one, rel_tol=1e-5)


@LAWS
@given(SEEDS, SIZES, SIZES, FACTORS)
def test_ranks_are_bounded_and_know_neither_scale_nor_basis(
    seed: int, rows: int, columns: int, factor: float
) -> None:
    x = normal(seed, rows, columns)
    turned = factor * (x.double() @ orthogonal(seed, columns).double()).float()
    linear = nn.Linear(columns, columns)
    for quantity in (ranks.effective_rank, ranks.participation_ratio):
        one, other = (float(quantity(spectrum(t, linear))) for t in (x, turned))
        most = min(rows, columns)
        assert 1 - 1e-9 <= one <= most * (1 + 1e-5)
        assert math.isclose(one, other, rel_tol=1e-3)


@LAWS
@given(SEEDS, SIZES, SIZES)
def test_a_weight_s_stable_rank_lies_between_1_and_its_rank(seed: int, n: int, m: int) -> None:
    w = normal(seed, n, m)
    found = matrix(w)
    stretch = float(weight_spectra.spectral_norm(found))
    assert math.isclose(stretch, np.linalg.norm(w.double().numpy(), 2), rel_tol=1e-6)
    assert 1 - 1e-9 <= float(weight_spectra.weight_stable_rank(found)) <= min(n, m) + 1e-6


@LAWS
@given(SEEDS, SIZES, st.integers(-20, 20))
def test_a_bit_of_headroom_is_a_factor_of_two(seed: int, n: int, bits: int) -> None:
    x = normal(seed, n)
    for dtype in (torch.float32, torch.bfloat16):
        one, other = (float(precision.range_headroom_bits(t.to(dtype))) for t in (x, x * 2.0**bits))
        assert math.isclose(other, one - bits, abs_tol=1e-9)


def test_two_tensors_of_one_step_have_the_larger_maximum() -> None:
    one, two, broken = (torch.tensor(values) for values in ([1.0, -7.0], [3.0], [math.nan, 9.0]))
    assert measure(one, LARGEST).merge(measure(two, LARGEST)).largest == 7.0
    assert math.isnan(measure(one, LARGEST).merge(measure(broken, LARGEST)).largest)
    assert math.isnan(measure(broken, LARGEST).merge(measure(one, LARGEST)).largest)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_headroom_and_underflow_are_of_the_type_itself(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype)
    x = torch.tensor([info.max, 1.0, info.tiny, info.smallest_normal / 2]).to(dtype)
    assert float(precision.range_headroom_bits(x)) == 0.0
    assert float(precision.range_headroom_bits(x[1:2])) == pytest.approx(math.log2(info.max))
    assert float(precision.underflow_fraction(x)) == 0.25


NOTHING_TO_SAY: dict[str, tuple[Tensor, dict[str, float]]] = {
    "empty": (torch.zeros(0, 3), {"output_rms": math.nan, "output_abs_max": math.nan}),
    "NaN": (torch.tensor([[1.0, math.nan]]), {"output_rms": math.nan, "output_abs_max": math.nan}),
    "infinite": (torch.tensor([[1.0, -math.inf]]), {"output_rms": math.inf}),
    "zero": (torch.zeros(2, 3), {"output_rms": 0.0, "output_abs_max": 0.0}),
    "huge": (torch.full((2, 2), 3e38), {"output_rms": 3e38, "output_abs_max": 3e38}),
    "complex": (torch.tensor([3 + 4j]), {"output_rms": 5.0, "output_abs_max": 5.0}),
    "integers": (torch.tensor([3, -4]), {"output_abs_max": 4.0}),
}


@pytest.mark.parametrize("kind", NOTHING_TO_SAY)
def test_a_scale_of_unusual_numbers_is_what_is_documented(kind: str) -> None:
    tensor, want = NOTHING_TO_SAY[kind]
    for name, value in want.items():
        found = float(getattr(scales, name)(measure(tensor, LARGEST)))
        np.testing.assert_allclose(found, value, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        (torch.zeros(4, 3), math.nan),
        (torch.full((4, 3), math.nan), math.nan),
        (torch.full((4, 3), math.inf), math.nan),
        (torch.ones(4, 3), 1.0),
        (torch.ones(1, 3), 1.0),
        (torch.eye(3), 3.0),
    ],
)
def test_the_effective_rank_is_missing_rather_than_invented(rows: Tensor, want: float) -> None:
    found = float(ranks.effective_rank(spectrum(rows, nn.Linear(3, 3))))
    np.testing.assert_allclose(found, want, rtol=1e-4)


@pytest.mark.parametrize("rows", [torch.ones(4, 3), torch.ones(1, 3), torch.zeros(0, 3)])
def test_what_does_not_vary_takes_part_in_no_direction(rows: Tensor) -> None:
    assert math.isnan(float(ranks.participation_ratio(spectrum(rows, nn.Linear(3, 3)))))


@pytest.mark.parametrize(
    ("weight", "norm", "rank"),
    [
        (torch.zeros(2, 3), 0.0, math.nan),
        (torch.tensor([3.0, 4.0]), 5.0, 1.0),
        (torch.tensor(2.0), 2.0, 1.0),
        (torch.full((2, 2), math.nan), math.nan, math.nan),
        (torch.eye(3).half(), 1.0, 3.0),
        (torch.eye(4).reshape(4, 2, 2), 1.0, 4.0),
    ],
)
def test_a_weight_of_any_kind_is_a_matrix(weight: Tensor, norm: float, rank: float) -> None:
    found: Any = matrix(weight)
    np.testing.assert_allclose(float(weight_spectra.spectral_norm(found)), norm, rtol=1e-6)
    np.testing.assert_allclose(float(weight_spectra.weight_stable_rank(found)), rank, rtol=1e-6)


def test_several_weights_are_one_block_diagonal_matrix() -> None:
    one, two = normal(1, 3, 4), normal(2, 2, 5)
    block = torch.block_diag(one, two).double().numpy()
    found = matrix(one).merge(matrix(two))
    stretch = np.linalg.norm(block, 2)
    assert float(weight_spectra.spectral_norm(found)) == pytest.approx(stretch, rel=1e-6)
    want = np.linalg.norm(block) ** 2 / stretch**2
    assert float(weight_spectra.weight_stable_rank(found)) == pytest.approx(want, rel=1e-6)
