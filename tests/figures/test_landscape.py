"""Pictures of landscapes: what is drawn where, in which colours, whatever the losses are."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import matplotlib.image as mpimg
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from notebook_probe.figures import landscape
from notebook_probe.figures.landscape.levels import ContourLevels
from notebook_probe.figures.landscape.surface import _between

KINDS = ("contour", "surface")


def dataset(scale: float = 1.0, n: int = 5, path: bool = True) -> xr.Dataset:
    x, y = np.linspace(-1, 2, 12), np.linspace(-2, 1, 9)
    loss = 0.1 + scale * (x**2 + y[:, None] ** 2)
    found = xr.Dataset({"loss": (("y", "x"), loss)}, {"x": x, "y": y})
    found.attrs = {"network": "MLP", "unit": "epoch", "origin": n, "loss_at_origin": 0.1}
    if path:
        ways = np.linspace(1.5, 0, n), np.linspace(-1.5, 0, n) ** 3
        found = found.assign_coords(number=np.arange(1, n + 1))
        found["path_x"], found["path_y"] = (("number", way) for way in ways)
        found.attrs["shares"] = [0.9, 0.05]
    return found


def numbers(figure: Figure) -> list[str]:
    """Of the path, not of the lines."""
    return [one.get_text() for one in figure.axes[0].texts if isinstance(one, Annotation)]


def is_drawn(figure: Figure) -> bool:
    return figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dark", [False, True])
def test_either_kind_is_drawn_on_light_and_on_dark_pages(kind: Any, dark: bool) -> None:
    figure = landscape(dataset(), kind, dark)
    assert is_drawn(figure)
    pixels = mpimg.imread(BytesIO(figure._repr_png_()))  # type: ignore[attr-defined]
    assert to_hex(pixels[0, 0]) == ("#111418" if dark else "#ffffff")
    assert figure.texts[0].get_text() == "loss of MLP on its way, epochs 1 to 5; 0.1 at the star"


def test_the_path_has_its_numbers_and_the_axes_their_shares() -> None:
    figure = landscape(dataset())
    axes = figure.axes[0]
    assert numbers(figure) == ["1", "2", "3", "4", "5"]
    assert axes.get_xlabel() == "first direction of the path, 90 %"
    assert axes.get_ylabel() == "second direction of the path, 5 %"
    star = axes.lines[-1]
    assert (star.get_marker(), np.asarray(star.get_xydata()).tolist()) == ("*", [[0.0, 0.0]])


def test_of_long_paths_some_points_are_numbered_the_last_among_them() -> None:
    found = numbers(landscape(dataset(n=40)))
    assert len(found) <= 13
    assert (found[0], found[-1]) == ("1", "40")


def test_a_random_plane_has_no_path() -> None:
    figure = landscape(dataset(path=False))
    assert figure.axes[0].get_xlabel() == "first random direction"
    assert figure.texts[0].get_text() == "loss of MLP after epoch 5; 0.1 at the star"


@pytest.mark.parametrize(("scale", "is_log"), [(0.1, False), (1e4, True), (1e30, True)])
def test_levels_are_of_equal_ratios_where_losses_span_decades(scale: float, is_log: bool) -> None:
    losses = dataset(scale).loss.values
    levels = ContourLevels.of(losses)
    assert isinstance(levels.norm, LogNorm) == is_log
    assert (levels.filled[0], levels.filled[-1]) == (losses.min(), losses.max())
    steps = np.diff(np.log(levels.filled) if is_log else levels.filled)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
    assert 2 <= len(levels.lines) <= 40
    assert is_drawn(landscape(dataset(scale)))


def test_negative_losses_are_drawn_by_differences() -> None:
    assert not ContourLevels.of(np.array([[-1.0, 100.0]])).is_log


@pytest.mark.parametrize("shift", [0.0, 1.38, 5432.1, -70.0])
def test_losses_that_hardly_differ_have_ticks_and_lines_that_tell_them_apart(shift: float) -> None:
    found = dataset(scale=0.002)
    figure = landscape(found.assign(loss=found.loss + shift))
    assert is_drawn(figure)
    axes, bar = figure.axes
    box = bar.get_tightbbox()
    assert box is not None
    assert box.x1 <= figure.bbox.x1  # the longest number is whole
    ends, ticks = bar.get_ylim(), bar.get_yticks()
    shown = [
        text for at, text in zip(ticks, bar.get_yticklabels(), strict=True) if within(at, ends)
    ]
    for texts in (shown, axes.texts):
        told = [one.get_text() for one in texts if not isinstance(one, Annotation)]
        values = [float(one.replace("\N{THIN SPACE}", "")) for one in told]
        assert len(values) > 2
        low, high = float(found.loss.min()) + shift, float(found.loss.max()) + shift
        assert all(
            low - 1e-9 <= value <= high + 1e-9 for value in values
        )  # rounded to no other one
        if texts is shown:
            assert len({*told}) == len(told)


def within(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_leaves_a_hole(kind: Any, bad: float) -> None:
    found = dataset(1e4)
    found.loss[:3, :4] = bad
    figure = landscape(found, kind)
    assert is_drawn(figure)
    if kind == "contour":
        infinite = figure.axes[0].collections[0].get_array()
        assert int((~np.ma.getmaskarray(np.ma.asarray(infinite))).sum()) == (
            0 if np.isnan(bad) else 12
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_flat_landscape_is_drawn(kind: Any) -> None:
    found = dataset()
    found.loss[:] = 2.0
    assert is_drawn(landscape(found, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at_origin", [np.nan, np.inf, 1e-300])
def test_the_loss_at_the_star_may_be_anything(kind: Any, at_origin: float) -> None:
    found = dataset(1e4)
    found.attrs["loss_at_origin"] = at_origin
    assert is_drawn(landscape(found, kind))


def test_between_the_points_of_a_grid_values_are_bilinear() -> None:
    x, y = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0])
    at_x, at_y = np.meshgrid([0.0, 0.5, 2.5, 3.0], [0.0, 0.7, 2.0])
    values = 2 * x + 3 * y[:, None] + x * y[:, None]
    want = 2 * at_x + 3 * at_y + at_x * at_y
    np.testing.assert_allclose(_between(x, y, values, at_x, at_y), want)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (xr.Dataset({"loss": ("x", [1.0])}), r"what nbp.landscape returns is expected"),
        (xr.Dataset(), r"what nbp.landscape returns is expected"),
        (dataset() * np.nan, "no loss of this landscape is finite"),
    ],
)
def test_what_cannot_be_drawn_is_said(given: xr.Dataset, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        landscape(given)
    with pytest.raises(ValueError, match=r"kind='contuor'.*close: 'contour'"):
        landscape(dataset(), "contuor")  # type: ignore[arg-type]
