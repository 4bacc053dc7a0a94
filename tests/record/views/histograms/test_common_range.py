"""Histograms of several steps on one range, against bins that are overlapped one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.record.views.histograms.common_range import n_common_bins, on_common_range

Step = tuple[list[int], float, float]


def overlapped(steps: list[Step]) -> tuple[list[float], list[list[float]]]:
    """Edges and counts: each old bin beside each new one, in plain floats."""
    ends = [(low - 0.5, high + 0.5) if low == high else (low, high) for _, low, high in steps]
    n = max(sum(counts) for counts, _, _ in steps)
    k = 2 if n <= 5 else 3 if n <= 10 else n // 10 + 1 if n <= 280 else 30
    least, greatest = min(low for low, _ in ends), max(high for _, high in ends)
    edges = [least + i * (greatest - least) / k for i in range(k + 1)]
    table = []
    for (counts, _, _), (low, high) in zip(steps, ends, strict=True):
        wide = (high - low) / len(counts)
        row = [0.0] * k
        for i, count in enumerate(counts):
            a, b = low + i * wide, low + (i + 1) * wide
            for j in range(k):
                inside = max(0.0, min(b, edges[j + 1]) - max(a, edges[j]))
                row[j] += count * inside / wide
        table.append(row)
    return edges, table


steps = st.lists(
    st.tuples(
        st.lists(st.integers(0, 50), min_size=1, max_size=90).filter(any),
        st.floats(-100, 100),
        st.floats(0, 50),
    ).map(lambda one: (one[0], one[1], one[1] + (one[2] if one[2] > 1e-3 else 0.0))),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@given(steps)
def test_each_bin_is_split_by_what_it_overlaps_and_totals_are_kept(given: list[Step]) -> None:
    widest = max(len(counts) for counts, _, _ in given)
    table = np.full((len(given), widest), np.nan)
    for row, (counts, _, _) in zip(table, given, strict=True):
        row[: len(counts)] = counts
    found = on_common_range(table, [low for _, low, _ in given], [high for _, _, high in given])
    edges, expected = overlapped(given)
    np.testing.assert_allclose(found.edges, edges, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.counts, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.counts.sum(axis=1), np.nansum(table, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "bins"), [(0, 0), (1, 2), (5, 2), (6, 3), (10, 3), (11, 2), (280, 29), (281, 30)]
)
def test_there_are_as_many_bins_as_the_rule_says(n: int, bins: int) -> None:
    assert n_common_bins(n) == bins


def test_a_step_without_a_finite_element_is_a_gap() -> None:
    found = on_common_range([[2.0, 2.0], [np.nan, np.nan]], [0.0, np.nan], [1.0, np.nan])
    assert np.isnan(found.counts[1]).all()
    assert found.counts[0].sum() == 4


def test_nothing_finite_anywhere_is_an_error() -> None:
    with pytest.raises(ValueError, match="no step has a finite element"):
        on_common_range([[np.nan]], [np.nan], [np.nan])
