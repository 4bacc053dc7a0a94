"""Thinning for pictures, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.views.thinning.blocks import BlockThinner
from notebook_probe.record.views.thinning.minmax import minmax, minmax_rows
from tests.record.build import LAW

anything = st.one_of(st.integers(-5, 5).map(float), st.floats(width=32))
WIDTHS = [quarters / 4 * 2.0**k for k in range(-10, 30) for quarters in (4, 5, 6, 7)]


def width_of(span: float, n_buckets: int) -> float:
    """The least of the widths that buckets have which needs no more than so many of them."""
    return next(width for width in WIDTHS if width * n_buckets >= span)


@pytest.mark.slow
@given(
    y=st.lists(anything, max_size=200),
    gaps=st.lists(st.integers(1, 1000), min_size=200, max_size=200),
    n_out=st.integers(4, 40),
)
@LAW
def test_thinning_keeps_both_ends_and_the_extrema_of_each_bucket(
    y: list[float], gaps: list[int], n_out: int
) -> None:
    x = np.cumsum(gaps[: len(y)]).astype(float)
    values = np.array(y, float)
    thinned = minmax(x, values, n_out)
    finite = np.isfinite(values)
    assert thinned.nonfinite.tolist() == x[~finite].tolist()
    x, values = x[finite], values[finite]
    assert len(thinned.x) <= max(n_out, 0)
    given_points = set(zip(x, values, strict=True))
    points = list(zip(thinned.x, thinned.y, strict=True))
    assert given_points.issuperset(points)
    assert (np.diff(thinned.x) > 0).all()
    if len(x) <= n_out:
        assert len(points) == len(x)
        return
    assert points[0] == (x[0], values[0])
    assert points[-1] == (x[-1], values[-1])
    n_buckets = (n_out - 2) // 2
    edges = x[0] + width_of(x[-1] - x[0], n_buckets) * np.arange(1, n_buckets)
    bucket = np.searchsorted(edges, x, side="right")
    for number in np.unique(bucket):
        inside = values[bucket == number]
        kept = {point for point in points if point[0] in x[bucket == number]}
        assert {inside.min(), inside.max()} <= {value for _, value in kept}


def test_one_spike_in_a_million_is_kept() -> None:
    y = np.sin(np.arange(1_000_000) / 1e5)
    y[123_456] = 1e6
    y[500_000] = np.inf
    thinned = minmax(np.arange(1_000_000), y, 1000)
    assert thinned.y.max() == 1e6
    assert thinned.nonfinite.tolist() == [500_000]


@pytest.mark.parametrize("log", [False, True])
def test_the_rows_that_are_left_are_the_extremes_the_ends_and_all_that_is_not_finite(
    log: bool,
) -> None:
    y = np.random.default_rng(0).normal(size=5000)
    y[[3, 70, 4990]] = 50.0, -50.0, np.nan
    rows = minmax_rows(y, 100, log=log)
    assert {0, 3, 70, 4990, 4999} <= set(rows.tolist())
    assert (np.diff(rows) > 0).all()
    assert len(rows) <= 101
    early = int((rows < 500).sum())
    assert early > 50 if log else early < 20


def test_a_series_of_few_values_keeps_every_row() -> None:
    assert minmax_rows([1.0, np.inf, 2.0], 4).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_out", [-1, 0, 3])
def test_thinning_to_fewer_than_four_points_is_refused(n_out: int) -> None:
    with pytest.raises(ValueError, match=f"n_out={n_out}; at least 4"):
        minmax([0], [0], n_out)


def test_thinning_needs_one_x_per_y() -> None:
    with pytest.raises(ValueError, match=r"x \(2,\) and y \(3,\)"):
        minmax([0, 1], [0, 1, 2], 4)


cells = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32).map(np.float32),
    st.sampled_from([NOT_MEASURED, MEASURED_NAN, np.float32(np.inf), np.float32(-np.inf)]),
)


@pytest.mark.slow
@given(data=st.data(), max_blocks=st.integers(1, 6), widths=st.lists(st.integers(1, 3), max_size=6))
@LAW
def test_blocks_equal_a_reduction_of_everything_at_once(
    data: st.DataObject, max_blocks: int, widths: list[int]
) -> None:
    thinner = BlockThinner(max_blocks)
    all_steps: list[int] = []
    all_rows: list[list[np.float32]] = []
    for width in sorted(widths):
        gaps = data.draw(st.lists(st.integers(1, 9), max_size=12))
        steps = (all_steps[-1] if all_steps else -1) + np.cumsum(gaps, dtype=np.int64)
        rows = [[data.draw(cells) for _ in range(width)] for _ in gaps]
        thinner.feed(steps, np.array(rows, np.float32).reshape(len(gaps), width))
        all_steps += steps.tolist()
        all_rows += [row + [NOT_MEASURED] * (3 - width) for row in rows]
    blocks = thinner.blocks()
    numbers = sorted({step // blocks.size for step in all_steps})
    assert blocks.first_steps.tolist() == [number * blocks.size for number in numbers]
    assert len(numbers) <= 2 * max_blocks
    if blocks.size > 1:  # no coarser than it must be
        assert len({step // (blocks.size // 2) for step in all_steps}) > 2 * max_blocks
    table = np.array(all_rows, np.float32).reshape(len(all_rows), 3)
    for place, number in enumerate(numbers):
        inside = table[[step // blocks.size == number for step in all_steps]]
        for column in range(blocks.mean.shape[1]):
            cell = inside[:, column]
            finite = cell[np.isfinite(cell)].astype(float)
            lost = (~np.isfinite(cell)) & (cell.view(np.uint32) != NOT_MEASURED.view(np.uint32))
            assert blocks.n_finite[place, column] == len(finite)
            assert blocks.n_nonfinite[place, column] == lost.sum()
            mean = finite.mean() if len(finite) else np.nan
            scale = np.abs(finite).max(initial=0)
            assert np.isclose(blocks.mean[place, column], mean, atol=1e-6 * scale, equal_nan=True)
            maximum = finite.max() if len(finite) else np.nan
            assert np.array_equal(
                blocks.maximum[place, column], np.float32(maximum), equal_nan=True
            )


def test_a_long_run_fed_at_once_or_in_parts_gives_the_same_blocks() -> None:
    rng = np.random.default_rng(0)
    steps, values = np.arange(50_000), rng.normal(size=(50_000, 3)).astype(np.float32)
    whole, parts = BlockThinner(100), BlockThinner(100)
    whole.feed(steps, values)
    for first in range(0, 50_000, 777):
        parts.feed(steps[first : first + 777], values[first : first + 777])
    assert whole.blocks().size == parts.blocks().size == 256
    assert np.allclose(whole.blocks().mean, parts.blocks().mean, atol=1e-6)
    assert np.array_equal(whole.blocks().maximum, parts.blocks().maximum)


def test_blocks_need_a_size() -> None:
    with pytest.raises(ValueError, match="max_blocks=0; at least 1"):
        BlockThinner(0)
