"""Options that cannot be: one error with what was given and what is allowed, from each picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from notebook_probe.compare import group, parting
from notebook_probe.compare import ratio as read_ratio
from notebook_probe.figures import LineOptions, heat, lines, overview, ratio, vectors
from tests.compare.made import Made, made

NAN = float("nan")


@pytest.fixture
def run() -> Made:
    return made("run", {"a": np.arange(1.0, 9.0), "b": np.arange(1.0, 9.0)})


@pytest.mark.parametrize(
    "window", [(10, 2), (3,), (1, 2, 3), 3, "ab", ("a", "b"), (NAN, 3), (None, 5), (True, False)]
)
@pytest.mark.parametrize(
    "draw",
    [
        lambda run, window: lines(run, [("a", "norm")], window=window),
        lambda run, window: heat(run, "norm", window=window),
        lambda run, window: overview(run, "norm", window=window),
        lambda run, window: vectors(run, "norm", window=window),
        lambda run, window: ratio(run, run, "norm", window=window),
        lambda run, window: read_ratio(run, run, "norm", window=window),
    ],
)
def test_a_window_that_does_not_ascend_is_refused(
    run: Made, draw: Callable[..., object], window: Any
) -> None:
    with pytest.raises(
        ValueError, match=r"^window=.*; allowed: None or \(first, last\), two steps"
    ):
        draw(run, window)


@pytest.mark.parametrize("draw", [heat, overview])
@pytest.mark.parametrize("cells", ["min", None, 3])
def test_other_values_of_cells_are_refused(
    run: Made, draw: Callable[..., object], cells: Any
) -> None:
    with pytest.raises(ValueError, match=rf"cells={cells!r}; allowed: 'max', 'mean'"):
        draw(run, "norm", cells=cells)


@pytest.mark.parametrize("smooth", [2, -0.1, 1.0, NAN, "0.9", True])
def test_a_weight_that_averages_nothing_is_refused(run: Made, smooth: Any) -> None:
    allowed = f"smooth={smooth!r}; allowed: a number from 0 up to but not including 1"
    with pytest.raises(ValueError, match=allowed):
        LineOptions(smooth=smooth)
    with pytest.raises(ValueError, match=allowed):
        group([run], "a", "norm", smooth=smooth)


@pytest.mark.parametrize("limits", [(3, 1), (1, 1), (1, NAN), 3, (1,)])
def test_limits_that_do_not_ascend_are_refused(limits: Any) -> None:
    with pytest.raises(ValueError, match=r"y_limits=.*; allowed: None or \(low, high\)"):
        LineOptions(y_limits=limits)
    with pytest.raises(ValueError, match="x_axis='steps'; allowed: 'step', 'time', 'epoch'"):
        LineOptions(x_axis="steps")  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, -3, 2.5])
def test_a_map_or_a_curve_without_a_place_is_refused(run: Made, n: Any) -> None:
    with pytest.raises(ValueError, match=f"n_columns={n}; allowed: a whole number from 1"):
        read_ratio(run, run, "norm", n_columns=n)
    with pytest.raises(ValueError, match=f"n_points={n}; allowed: a whole number from 1"):
        group([run], "a", "norm", n_points=n)


def test_numbers_of_a_divergence_that_are_none_are_refused(run: Made) -> None:
    with pytest.raises(ValueError, match="factor='2'; a number above 1 is expected"):
        parting(run, run, "norm", factor="2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rows='3'; allowed: a whole number from 1"):
        parting(run, run, "norm", rows="3")  # type: ignore[arg-type]
