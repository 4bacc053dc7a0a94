"""Parallel coordinates: each run at the right height of each axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from notebook_probe.errors import UnknownNameError
from notebook_probe.figures import parallel
from notebook_probe.figures.parallel.axis import NOWHERE, axis_of
from notebook_probe.figures.parallel.picture import NO_VALUE
from notebook_probe.figures.style import encoded
from notebook_probe.opened import Lineage

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9)


def drawn(figure: Figure) -> LineCollection:
    return next(one for one in figure.axes[0].collections if isinstance(one, LineCollection))


@given(
    st.lists(st.none() | numbers | st.just(math.nan) | st.just(math.inf), min_size=1, max_size=20)
)
def test_numbers_keep_their_order_and_the_rest_stands_below(values: list[Any]) -> None:
    heights = axis_of(values).heights
    known = [i for i, one in enumerate(values) if one is not None and math.isfinite(one)]
    assert all(heights[i] == NOWHERE for i in range(len(values)) if i not in known)
    assert all(-1e-9 <= heights[i] <= 1 + 1e-9 for i in known)
    by_value = sorted(known, key=lambda i: float(values[i]))
    steps = np.diff(heights[by_value])
    assert (steps >= -1e-9).all()


@given(st.lists(st.none() | st.text(max_size=3) | st.booleans(), min_size=1, max_size=30))
def test_runs_of_a_category_stand_together_and_apart_from_others(values: list[Any]) -> None:
    heights = axis_of(values).heights
    for value in {*values} - {None}:
        mine = [h for h, one in zip(heights, values, strict=True) if one is value or one == value]
        others = [
            h for h, one in zip(heights, values, strict=True) if one is not None and one != value
        ]
        assert all(0 <= h <= 1 for h in mine)
        assert all(h < min(mine) or h > max(mine) for h in others)


def test_a_column_of_more_than_a_decade_is_logarithmic() -> None:
    wide = axis_of([1e-4, 1e-2, 1.0])
    assert wide.is_log
    assert wide.heights.tolist() == pytest.approx([0, 0.5, 1])
    assert [text for _, text in wide.ticks] == ["0.0001", "0.01", "1"]
    assert not axis_of([0.0, 1e9]).is_log, "0 has no logarithm"
    assert not axis_of([1, 2, 4, 8]).is_log
    assert axis_of([True, False]).ticks == ((0.25, "false"), (0.75, "true"))
    huge = axis_of([-1e308, 0.0, 1e308])
    assert huge.heights.tolist() == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("n", [1, 3, 40, 200])
def test_every_run_is_a_line_and_what_is_best_lies_above(n: int) -> None:
    rng = np.random.default_rng(0)
    accuracy = [float(one) for one in rng.uniform(size=n)]
    columns = {
        "config.lr": [1e-3] * n,
        "eval.accuracy": [None, *accuracy[1:]] if n > 1 else accuracy,
    }
    figure = parallel(columns, "eval.accuracy")
    segments = drawn(figure).get_segments()
    assert len(segments) == n
    last = [float(one[-1][1]) for one in segments]
    assert last == sorted(last)
    if n > 1:
        assert last[0] == NOWHERE
        assert to_hex(drawn(figure).get_colors()[0]) == NO_VALUE  # type: ignore[arg-type]
    assert encoded(figure, "png")


def test_any_text_is_drawn_as_it_is() -> None:
    figure = parallel({"a.$x^{": ["$\\frac", "<b>", None], "b": [[1], {"x": 2}, "é"]}, "b")
    assert encoded(figure, "svg")
    texts = [one.get_text() for one in figure.axes[0].texts]
    assert "$\\frac" in texts
    assert "$x^{" in texts
    assert len(figure.axes) == 1, "categories need no bar"


def test_fewer_than_two_columns_are_no_picture() -> None:
    with pytest.raises(ValueError, match="at least two columns"):
        parallel({"a": [1, 2]})
    with pytest.raises(ValueError, match="there are no runs to draw"):
        parallel({"a": [], "b": []})
    with pytest.raises(ValueError, match=r"\{'a': 2, 'b': 1\}; one per run is expected"):
        parallel({"a": [1, 2], "b": [3]})
    with pytest.raises(UnknownNameError, match="colour='lr' is no column; known: 'a', 'b'"):
        parallel({"a": [1], "b": [2]}, "lr")


RUNS = [
    {
        "name": "a",
        "state": "x",
        "config.lr": 0.1,
        "config.o": "SGD",
        "loss.last": 2.0,
        "eval.acc": 0.5,
    },
    {"name": "b", "state": "y", "config.lr": 0.2, "config.o": "Adam", "loss.last": 1.0},
]


def headings(figure: Figure) -> list[str]:
    return [one.get_text() for one in figure.axes[0].texts if one.get_fontweight() == "bold"]


def test_a_table_draws_what_differs_and_what_came_of_it() -> None:
    table = Lineage.of(RUNS)
    assert headings(table.picture()) == ["lr", "o", "last", "acc"]
    assert headings(table.picture(["config.*"], colour="loss.last")) == ["lr", "o", "last"]
    assert headings(table.sort("config.lr").picture("config.*")) == ["lr", "o"]
    with pytest.raises(UnknownNameError, match=r"config\.lr"):
        table.picture(["config.lrr"])
    with pytest.raises(UnknownNameError):
        table.picture(colour="nothing")
    with pytest.raises(ValueError, match="this table has no runs"):
        Lineage.of([]).picture()
    with pytest.raises(ValueError, match=r"shows loss.last; at least two .* of loss.last$"):
        Lineage.of([{"name": "a", "loss.last": 1.0}, {"name": "b", "loss.last": 2.0}]).picture()
