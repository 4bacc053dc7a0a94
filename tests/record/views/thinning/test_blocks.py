"""Groups of rows, reduced as numpy's `reduceat` would, in a tenth of its time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.record.views.thinning.blocks import _by_groups

lengths = st.lists(st.sampled_from([1, 2, 2, 2, 3, 5]), min_size=1, max_size=30)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.fmax])
@settings(max_examples=30)
@given(lengths=lengths, n_columns=st.integers(0, 4), seed=st.integers(0, 99))
def test_groups_of_any_lengths_are_reduced_as_by_reduceat(
    ufunc: np.ufunc, lengths: list[int], n_columns: int, seed: int
) -> None:
    rows = np.random.default_rng(seed).normal(size=(sum(lengths), n_columns))
    rows[rows > 1.5] = np.nan
    starts = np.cumsum([0, *lengths[:-1]])
    found, expected = _by_groups(ufunc, rows, starts), ufunc.reduceat(rows, starts)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@given(lengths=lengths, seed=st.integers(0, 99))
def test_flags_are_counted_and_single_numbers_reduced_in_the_kind_that_is_asked_for(
    lengths: list[int], seed: int
) -> None:
    flags = np.random.default_rng(seed).random((sum(lengths), 3)) < 0.5
    starts = np.cumsum([0, *lengths[:-1]])
    found = _by_groups(np.add, flags, starts, dtype=np.int64)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.add.reduceat(flags, starts, dtype=np.int64))
    steps = np.arange(sum(lengths))
    np.testing.assert_array_equal(
        _by_groups(np.maximum, steps, starts), np.maximum.reduceat(steps, starts)
    )
