"""One image of a series: as numbers with a bar, or in its own colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from notebook_probe.figures import image, vector


def series(values: Any) -> xr.DataArray:
    table = np.asarray(values, np.float32)
    return xr.DataArray(
        table,
        dims=("step", *(f"dim_{place}" for place in range(table.ndim - 1))),
        coords={"step": 10 * np.arange(len(table)), "module": "fc"},
        name="what",
    )


def shown(figure: Figure) -> Any:
    return figure.axes[0].images[0].get_array()


TABLES = series(np.arange(18).reshape(3, 2, 3))


def test_a_table_of_numbers_is_drawn_at_its_step_with_a_bar() -> None:
    figure = image(TABLES, step=10)
    assert shown(figure).tolist() == [[6, 7, 8], [9, 10, 11]]
    assert figure.axes[0].images[0].origin == "upper", "the first row is on top"
    assert figure.axes[0].get_title(loc="left") == "what at fc, step 10"
    assert len(figure.axes) == 2


def test_the_last_step_is_drawn_by_default_and_by_the_panels_line() -> None:
    for figure in (image(TABLES), vector(TABLES)):
        assert shown(figure).tolist() == [[12, 13, 14], [15, 16, 17]]


@pytest.mark.parametrize("whole", [1.0, 255.0])
def test_colours_are_shown_as_they_are(whole: float) -> None:
    colours = np.array([[[0, 0.5, 1], [1, 0, 0]]])
    figure = image(series([colours * whole]))
    np.testing.assert_allclose(shown(figure), colours, rtol=1e-6)
    assert len(figure.axes) == 1, "no bar"
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_what_is_no_number_is_left_out_or_black() -> None:
    assert shown(image(series([[[1, np.nan], [2, 3]]]))).mask.tolist() == [[0, 1], [0, 0]]
    assert shown(image(series([[[[np.nan, 1, 1]]]]))).tolist() == [[[0, 1, 1]]]


@pytest.mark.parametrize(
    ("given", "step", "why"),
    [
        (series(np.ones((2, 3))), None, "a series of images is expected"),
        (series(np.ones((2, 3, 3, 5))), None, "a series of images is expected"),
        (TABLES, 5, "what has no image at step 5; there are 0 to 20"),
        (TABLES[:0], None, "what has no image at step -1"),
        (series(np.full((1, 2, 2), np.nan)), None, "nothing finite is recorded of what at step 0"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(
    given: xr.DataArray, step: int | None, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        image(given, step)
