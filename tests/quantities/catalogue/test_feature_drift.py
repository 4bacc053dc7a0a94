"""Outputs for a fixed batch against what they were, in float64 numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.quantities.catalogue.feature_drift import CkaToReference, FeatureDrift

Array = npt.NDArray[np.float64]


def compared(kind: Any, *outputs: Array) -> float:
    window = kind()
    window.reset()
    for output in outputs:
        window.update(torch.tensor(output))
    return float(window.compute())


def made(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def cka(x: Array, y: Array) -> float:
    """In the space of features, as Kornblith et al. write it."""
    x, y = (one.reshape(len(one), -1) for one in (x, y))
    x, y = x - x.mean(0), y - y.mean(0)
    norm = np.linalg.norm
    return float(norm(y.T @ x) ** 2 / (norm(x.T @ x) * norm(y.T @ y)))


@pytest.mark.parametrize("shape", [(9, 4), (5, 12), (6, 3, 4, 4), (7,)])
def test_both_are_as_numpy_has_them(shape: tuple[int, ...]) -> None:
    first, now = made(0, *shape), made(1, *shape)
    drift = float(np.sqrt(np.mean((now - first) ** 2)))
    assert compared(FeatureDrift, first, now) == pytest.approx(drift)
    assert compared(CkaToReference, first, now) == pytest.approx(cka(first, now))


def test_the_reference_is_the_first_and_not_the_last() -> None:
    first, between, now = (made(seed, 8, 3) for seed in range(3))
    assert compared(CkaToReference, first, between, now) == pytest.approx(cka(first, now))


@given(st.integers(0, 50), st.floats(0.01, 100))
def test_cka_sees_neither_rotation_nor_scale_nor_shift(seed: int, scale: float) -> None:
    first = made(seed, 10, 4)
    turn, _ = np.linalg.qr(made(seed + 1, 4, 4))
    assert compared(CkaToReference, first, scale * first @ turn + 3) == pytest.approx(1.0)


@given(st.integers(0, 50))
def test_cka_lies_between_0_and_1(seed: int) -> None:
    found = compared(CkaToReference, made(seed, 6, 3), made(seed + 100, 6, 3))
    assert 0 <= found <= 1 + 1e-9


def test_nothing_has_drifted_from_itself() -> None:
    first = made(0, 5, 3)
    assert compared(FeatureDrift, first, first) == 0.0
    assert compared(CkaToReference, first, first) == pytest.approx(1.0)


@pytest.mark.parametrize("outputs", [made(0, 1, 3), np.ones((4, 3)), np.full((4, 3), np.nan)])
def test_a_single_row_equal_rows_and_nan_have_no_cka(outputs: Array) -> None:
    assert np.isnan(compared(CkaToReference, outputs, outputs))


def test_another_shape_is_a_new_reference() -> None:
    assert compared(FeatureDrift, made(0, 5, 3), made(1, 6, 3)) == 0.0
