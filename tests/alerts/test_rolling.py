"""Medians and means against numpy's, on any table."""

from __future__ import annotations

import math
from statistics import median as exact_median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from notebook_probe.alerts import mean_before, median, over_median
from notebook_probe.alerts.rolling import LEAST, Doubles, highest_before, of_most, within_most
from tests.alerts.made import LAW

NUMBERS = st.one_of(
    st.integers(0, 40).map(float), st.just(math.nan), st.floats(0, 1e30), st.just(math.inf)
)
TABLES = arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=NUMBERS)


@LAW
@given(TABLES)
def test_the_median_leaves_nan_out(table: Doubles) -> None:
    for column, found in zip(table.T, median(table, axis=0), strict=True):
        known = [value for value in column if not math.isnan(value)]
        assert found == exact_median(known) if known else math.isnan(found)


@LAW
@given(TABLES, st.integers(10, 20), st.sampled_from([1.5, 4.0]))
def test_what_exceeds_the_rolling_median_is_found_as_one_by_one(
    table: Doubles, window: int, times: float
) -> None:
    found = over_median(table, window, times)
    for (row, module), value in np.ndenumerate(table):
        before = table[max(0, row - window) : row, module]
        before = before[~np.isnan(before)]
        usual = exact_median(before) if len(before) >= LEAST else 0.0
        exceeds = math.isfinite(value) and usual > 0 and value / usual > times
        if exceeds:
            assert found[row, module] == value / usual
        else:
            assert math.isnan(found[row, module])


@LAW
@given(TABLES, st.integers(1, 15))
def test_the_rolling_mean_begins_with_a_whole_window(table: Doubles, window: int) -> None:
    found = mean_before(table, window)
    assert found.shape == table.shape
    for (row, module), mean in np.ndenumerate(found):
        seen = table[max(0, row - window + 1) : row + 1, module]
        known = seen[np.isfinite(seen)]
        if row < window - 1 or len(known) < min(LEAST, window):
            assert math.isnan(mean)
        else:
            assert mean == pytest.approx(np.mean(known), rel=1e-9, abs=np.nanmax(known) * 1e-9)


@LAW
@given(TABLES, st.integers(0, 50))
def test_the_highest_before_is_that_of_the_rows_before(table: Doubles, window: int) -> None:
    found = highest_before(table, window)
    for (row, module), highest in np.ndenumerate(found):
        before = table[max(0, row - window) : row, module]
        known = before[~np.isnan(before)]
        assert highest == known.max() if len(known) else math.isnan(highest)


@LAW
@given(TABLES)
def test_two_of_three_reach_what_most_have(table: Doubles) -> None:
    for row, found in zip(table, of_most(table), strict=True):
        known = np.sort(row[np.isfinite(row)])
        if not len(known) or np.isinf(row).any():
            continue
        assert known[0] <= found * (1 + 1e-9)
        assert found <= known[-1] * (1 + 1e-9)
        assert np.count_nonzero(known * (1 + 1e-9) >= found) * 3 >= 2 * (len(known) - 1)


@LAW
@given(TABLES)
def test_two_of_three_do_not_exceed_what_is_within_most(table: Doubles) -> None:
    for row, found in zip(table, within_most(table), strict=True):
        known = np.sort(row[np.isfinite(row)])
        if not len(known) or np.isinf(row).any():
            continue
        assert known[0] * (1 - 1e-9) <= found <= known[-1] * (1 + 1e-9)
        assert np.count_nonzero(known <= found * (1 + 1e-9)) * 3 >= 2 * (len(known) - 1)


def test_nothing_is_made_of_nothing() -> None:
    empty = np.empty((0, 2))
    assert of_most(empty).shape == of_most(np.empty((0, 0))).shape == (0,)
    assert highest_before(empty, 3).shape == (0, 2)
    assert over_median(empty, 5, 2.0).shape == mean_before(empty, 5).shape == (0, 2)
    assert np.isnan(median(np.empty((3, 0)), axis=1)).all()
