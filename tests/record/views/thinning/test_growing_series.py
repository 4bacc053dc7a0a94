"""A column grows with what it is given, and its extremes are those of all rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.views.growing import Growing
from notebook_probe.record.views.thinning.growing_series import GrowingSeries

VALUES = st.floats(-1e6, 1e6, width=32) | st.sampled_from([np.nan, np.inf, -np.inf, MEASURED_NAN])


def column_of(values: list[float], cuts: list[int]) -> GrowingSeries:
    """Fed in pieces."""
    column, array = GrowingSeries(), np.array(values, np.float32)
    edges = sorted({0, len(values), *(cut % (len(values) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        column.append(np.arange(start, stop), array[start:stop])
    return column


@given(st.lists(VALUES, max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_a_column_holds_every_row_whatever_the_pieces(values: list[float], cuts: list[int]) -> None:
    column = column_of(values, cuts)
    array = np.array(values, np.float32)
    np.testing.assert_array_equal(column.values, array)
    np.testing.assert_array_equal(column.steps, np.arange(len(values)))
    np.testing.assert_array_equal(column.nonfinite, np.flatnonzero(~np.isfinite(array)))


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=700),
    st.lists(st.integers(0, 700), max_size=5),
    st.integers(0, 700),
    st.integers(0, 700),
    st.integers(1, 40),
)
def test_the_extremes_of_any_range_are_among_the_few_rows_picked(
    values: list[float], cuts: list[int], one: int, other: int, wanted: int
) -> None:
    column = column_of(values, cuts)
    first, stop = sorted((one % (len(values) + 1), other % (len(values) + 1)))
    rows = column.extremes(first, stop, wanted)
    picked = column.values[rows]
    assert np.all(np.diff(rows) >= 0)
    assert len(rows) >= min(wanted, stop - first)
    assert len(rows) <= 8 * wanted + 60
    if stop > first:
        assert first <= rows.min() <= rows.max() < stop
        assert picked.max() == column.values[first:stop].max()
        assert picked.min() == column.values[first:stop].min()


def test_an_extreme_is_found_between_values_that_are_not_finite() -> None:
    values = np.full(4096, np.inf, np.float32)
    values[[1000, 3000]] = [5.0, -7.0]
    column = column_of(values.tolist(), [])
    picked = column.values[column.extremes(0, 4096, 4)]
    assert {5.0, -7.0} <= set(picked.tolist())


def test_a_growing_array_keeps_what_was_appended() -> None:
    growing = Growing(np.int64)
    for start in range(0, 1000, 7):
        growing.append(np.arange(start, start + 7))
    np.testing.assert_array_equal(growing.values, np.arange(1001))
