"""Pictures of series of vectors: their axes say what they are, and nothing makes them raise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from notebook_probe.figures import vector
from notebook_probe.figures.style import number
from notebook_probe.quantities.catalogue.histograms import LINEAR_BINS, histogram
from notebook_probe.quantities.catalogue.log_histograms import BINS


def series(values: Any, along: str = "index", **coords: Any) -> xr.DataArray:
    table = np.asarray(values, float)
    along_it = {along: np.arange(table.shape[1]), **coords}
    return xr.DataArray(
        table,
        dims=("step", along),
        coords={
            "step": 10 * np.arange(len(table)),
            "module": "fc",
            **{name: (along, np.asarray(one)) for name, one in along_it.items()},
        },
        name="what",
    )


def shown(figure: Figure, layer: int = 0) -> Any:
    """The numbers that are drawn, a row per element from the lowest on."""
    return figure.axes[0].images[layer].get_array()


def labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def test_elements_are_rows_and_steps_are_columns() -> None:
    figure = vector(series([[1, 2, 3], [4, 5, 6]]))
    assert shown(figure).tolist() == [[1, 4], [2, 5], [3, 6]]
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "what at fc"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "index")
    assert labels(axes.xaxis) == ["0", "10"]
    assert labels(axes.yaxis) == ["0", "1", "2"]


def test_a_histogram_shows_the_bins_that_are_used_by_their_numbers_and_counts_by_magnitude() -> (
    None
):
    counts = np.zeros((3, 64))
    counts[:, 50:56] = [1, 10, 10_000, 200, 0, 3]
    counts[1, 50] = 0
    figure = vector(series(counts, "bin", **BINS.coords))
    assert shown(figure).shape == (5, 3), "a bin that is always empty is left out"
    assert shown(figure).mask[0].tolist() == [False, True, False], "an empty one is white"
    assert isinstance(figure.axes[0].images[0].norm, LogNorm)
    assert labels(figure.axes[0].yaxis)[0] == f"{BINS.coords['bin'][50]:.3g}"


def test_numbers_that_are_none_at_all_make_a_column_of_their_own() -> None:
    counts = np.zeros((2, 64))
    counts[:, 63] = 512
    figure = vector(series(counts, "bin", **BINS.coords))
    assert shown(figure).tolist() == [[512, 512]]
    assert labels(figure.axes[0].yaxis) == ["inf"]


def of_a_bell(deviations: Sequence[float], n: int = 400_000) -> xr.DataArray:
    """Histograms of normal numbers, as they are recorded, read back as series are."""
    found = [histogram(normal(n) * one) for one in deviations]
    coords = {name: at[:-1] for name, at in LINEAR_BINS.coords.items()}
    table = series([one.counts.tolist() for one in found], "linear_bin", **coords)
    return table.assign_coords(linear_bin_width=("step", [float(one.width) for one in found]))


def normal(n: int) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(0))


def test_a_bell_is_one_hump_of_its_true_density_while_bins_grow_and_shrink() -> None:
    deviations = [0.1, 0.4, 1.7, 0.4]
    table = of_a_bell(deviations)
    assert len(set(table.linear_bin_width.values.tolist())) == 3
    figure = vector(table)
    (drawn,) = (figure.axes[0].images[0],)
    _, _, low, high = drawn.get_extent()
    height = (high - low) / len(shown(figure))
    middles = low + height * (np.arange(len(shown(figure))) + 0.5)
    for column, deviation in enumerate(deviations):
        density = shown(figure)[:, column].filled(0)
        assert density.sum() * height == pytest.approx(1)
        true = np.exp(-((middles / deviation) ** 2) / 2) / deviation / math.sqrt(2 * math.pi)
        near = 0.25 if deviation == 0.1 else 0.05  # bins of another step are wider than its own
        assert np.abs(density - true).max() < near * true.max()
        smooth = density[true > 0.02 * true.max()]
        turns = np.diff(np.sign(np.diff(smooth)[np.abs(np.diff(smooth)) > 0.03 * true.max()]))
        assert np.count_nonzero(turns) <= 1, "up, then down"
    assert labels(figure.axes[0].xaxis) == ["0", "10", "20", "30"]
    assert figure.axes[0].get_ylabel() == "value"


def test_bins_of_one_width_are_drawn_as_they_are() -> None:
    table = of_a_bell([1.0], n=1000)
    counts, width = table.values[0, :64], float(table.linear_bin_width[0])
    used = np.flatnonzero(counts)
    want = counts[used[0] : used[-1] + 1] / 1000 / width
    assert shown(vector(table))[:, 0].filled(0).tolist() == pytest.approx(want.tolist())


def test_steps_without_a_size_or_a_finite_number_harm_no_others() -> None:
    table = of_a_bell([1.0, 0.0, math.nan], n=1000)
    figure = vector(table)
    assert shown(figure).mask[:, 2].all()
    assert shown(figure)[:, 1].count() == 1, "zeros are in one row"
    assert figure.axes[0].get_title(loc="left") == (
        f"what at fc: share per unit; {number(1000)} not finite"
    )
    with pytest.raises(ValueError, match="nothing finite is recorded of what"):
        vector(table[2:])


def test_infinities_have_a_colour_of_their_own() -> None:
    figure = vector(series([[1, np.inf, 2]]))
    assert shown(figure).mask[:, 0].tolist() == [False, True, False]
    assert shown(figure, 1).mask[:, 0].tolist() == [True, False, True]


def test_a_plane_is_drawn_at_its_last_step_with_both_its_axes() -> None:
    x, y = [-1.0, -1, 0, 0, 1, 1], [0.0, 1] * 3
    plane = series([[9] * 6, [0, 1, 2, 3, 4, 5]], "plane", plane_x=x, plane_y=y)
    figure = vector(plane)
    assert shown(figure).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert figure.axes[0].get_title(loc="left") == "what at fc, step 10"
    assert figure.axes[0].images[0].get_extent() == pytest.approx((-1.5, 1.5, -0.5, 1.5))


def test_a_notebook_shows_it_whether_or_not_pyplot_has_been_imported() -> None:
    png = vector(series([[1, 2, 3]]))._repr_png_()  # type: ignore[attr-defined]
    assert png.startswith(b"\x89PNG")


def test_a_long_run_is_drawn_at_some_of_its_steps() -> None:
    assert shown(vector(series(np.ones((5000, 2))))).shape == (2, 1250)


def test_what_is_no_vector_or_has_no_number_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="a series of vectors is expected"):
        vector(series([[1]]).isel(index=0))
    with pytest.raises(ValueError, match="nothing finite is recorded of what"):
        vector(series([[np.nan, np.inf]]))


@pytest.mark.slow
@settings(max_examples=5, deadline=None)  # a picture takes a tenth of a second
@given(
    arrays(
        np.float32, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(width=32)
    )
)
def test_any_numbers_can_be_drawn(values: Any) -> None:
    if np.isfinite(values).any():
        vector(series(values)).draw_without_rendering()
