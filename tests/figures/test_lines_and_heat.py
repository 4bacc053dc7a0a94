"""Static pictures: the right numbers on the right axes, in the panel's colours."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from notebook_probe.errors import UnknownNameError
from notebook_probe.figures import LineOptions, heat, lines, overview
from notebook_probe.figures.overlay import OverlaidSeries
from notebook_probe.figures.style import LOST_COLOUR, OKABE_ITO, colour, encoded
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.source import Event
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

A, B = ("a", "norm"), ("b", "norm")
DARK: Any = {f"{part}.facecolor": "black" for part in ("axes", "figure", "savefig")}


@pytest.fixture
def gappy_source() -> FakeSource:
    values = np.exp(np.random.default_rng(0).normal(size=(30, 2))).astype(np.float32)
    values[:5, 1] = np.nan
    values[20, 0] = MEASURED_NAN
    stream = FakeStream("every_1", ["a", "b"], ["norm"])
    stream.append(range(30), norm=values)
    source = FakeSource(stream)
    source.events = (Event(12, START_MS + 1200, "attach", "b"),)
    return source


def curve(axes: Axes, series: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the line in the colour of a series that was drawn last."""
    found = [line for line in axes.lines if to_hex(line.get_color()) == to_hex(colour(series))]
    longest = max(reversed(found), key=lambda line: len(np.atleast_1d(line.get_xdata())))
    return np.asarray(longest.get_xdata()), np.asarray(longest.get_ydata())


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def values_of(source: FakeSource, module: int) -> np.ndarray:
    return np.asarray(source.streams["every_1"].values("norm")[:, module])


def test_lines_show_every_finite_value_and_mark_the_others(gappy_source: FakeSource) -> None:
    axes = lines(gappy_source, [A, B]).axes[0]
    values = values_of(gappy_source, 0)
    finite = np.isfinite(values)
    x, y = curve(axes, 0)
    np.testing.assert_array_equal(x, np.flatnonzero(finite))
    np.testing.assert_allclose(y, values[finite])
    np.testing.assert_array_equal(curve(axes, 1)[0], np.arange(5, 30))
    marks = [line for line in axes.lines if line.get_color() == LOST_COLOUR]
    assert np.concatenate([line.get_xdata() for line in marks]).tolist() == [20]
    assert axes.get_yscale() == "log"


def test_a_number_of_the_whole_model_is_drawn_by_its_empty_name() -> None:
    for root in ("", "(root)"):
        stream = FakeStream("every_1", ["(root)"], ["loss"])
        stream.append(range(3), loss=np.array([[3.0], [2.0], [1.0]], dtype=np.float32))
        x, y = curve(lines(FakeSource(stream), [(root, "loss")]).axes[0], 0)
        assert (x.tolist(), y.tolist()) == ([0, 1, 2], [3, 2, 1])
        below = overview(FakeSource(stream), "loss", [(root, "loss")]).axes[-1]
        assert curve(below, 0)[1].tolist() == [3, 2, 1]


@pytest.mark.parametrize("series", ["loss", ("", "loss")])
def test_series_that_are_not_pairs_are_refused_with_an_example(
    gappy_source: FakeSource, series: Any
) -> None:
    with pytest.raises(TypeError, match=r"a list of \(module, quantity\) is expected, such as"):
        lines(gappy_source, series)


def test_a_record_that_is_not_opened_is_refused() -> None:
    drawn: Any
    for drawn in (lambda it: lines(it, [A]), lambda it: heat(it, "norm")):
        with pytest.raises(TypeError, match=r"such as nbp\.open_run\('runs/first\.zarr'\)"):
            drawn("runs/first.zarr")


def test_an_empty_map_names_its_window_and_not_the_quantity_as_close(
    gappy_source: FakeSource,
) -> None:
    with pytest.raises(UnknownNameError, match=r"'norm' is recorded from step 100 to 200$"):
        heat(gappy_source, "norm", window=(100, 200))


def test_series_without_a_positive_value_are_drawn_on_a_linear_axis() -> None:
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(3), norm=np.array([[-1.0], [0.0], [-5.0]], dtype=np.float32))
    axes = lines(FakeSource(stream), [A]).axes[0]
    assert axes.get_yscale() == "linear"
    assert curve(axes, 0)[1].tolist() == [-1, 0, -5]


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_the_axis_of_a_single_point_is_a_step_wide(value: float) -> None:
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(1), norm=np.array([[value]], dtype=np.float32))
    assert lines(FakeSource(stream), [A]).axes[0].get_xlim() == (0, 1)


@pytest.mark.parametrize("draw", [heat, overview])
def test_a_file_is_on_white_in_a_dark_style_unless_it_is_to_be_transparent(
    draw: Any, gappy_source: FakeSource, tmp_path: Path
) -> None:
    with matplotlib.rc_context(DARK):
        drawn = draw(gappy_source, "norm")
        drawn.savefig(tmp_path / "on_white.png")
        drawn.savefig(tmp_path / "clear.png", transparent=True)
    white, clear = (imread(tmp_path / f"{name}.png") for name in ("on_white", "clear"))
    assert white[0, 0].tolist() == [1, 1, 1, 1]
    assert clear[0, 0, 3] == 0


def test_layers_of_a_deep_network_have_different_names_in_a_map_and_beside_lines() -> None:
    names = [f"encoder.layer.{i}.attention.self.query_projection" for i in range(12)]
    stream = FakeStream("s", names, ["norm"])
    stream.append(range(3), norm=1.0)
    source = FakeSource(stream, modules=names)
    rows = [label.get_text() for label in heat(source, "norm").axes[0].get_yticklabels()]
    assert rows == [f"e.l.{i}.a.s.query_projection" for i in range(12)]
    drawn = texts(lines(source, [(name, "norm") for name in names]))
    assert len({text for text in drawn if "·" in text}) == 12


def test_lines_are_labelled_directly_in_their_colour(gappy_source: FakeSource) -> None:
    figure = lines(gappy_source, [A, B], colours={A: 4, B: 2})
    labels = {text.get_text(): text for text in figure.findobj(Text)}
    assert to_hex(labels["a · norm"].get_color()) == to_hex(colour(4))
    assert to_hex(labels["b · norm"].get_color()) == to_hex(colour(2))
    assert figure.axes[0].get_legend() is None


def test_many_labels_do_not_touch(gappy_source: FakeSource) -> None:
    names = [f"m{place}" for place in range(8)]
    stream = FakeStream("s", names, ["norm"])
    stream.append(range(3), norm=1.0)
    figure = lines(FakeSource(stream, modules=names), [(name, "norm") for name in names])
    encoded(figure, "png")
    boxes = [t.get_window_extent() for t in figure.findobj(Text) if "·" in t.get_text()]
    boxes.sort(key=lambda box: box.y0)
    assert len(boxes) == 8
    assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))


def test_smoothing_is_the_debiased_average_of_the_plotted_scale(gappy_source: FakeSource) -> None:
    axes = lines(gappy_source, [B], look=LineOptions(smooth=0.5)).axes[0]
    logs = np.log10(values_of(gappy_source, 1)[5:].astype(np.float64))
    weights = [0.5 ** np.arange(k + 1)[::-1] for k in range(len(logs))]
    expected = [10 ** np.average(logs[: k + 1], weights=w) for k, w in enumerate(weights)]
    np.testing.assert_allclose(curve(axes, 0)[1], expected)


@pytest.mark.parametrize("weight", [0.9, 0.999])
def test_a_picture_shows_the_average_of_every_value_in_a_window_as_in_the_whole(
    weight: float,
) -> None:
    values = np.random.default_rng(1).random((100_000, 1)).astype(np.float32)
    values[30_000:30_003] = 100.0
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(100_000), norm=values)
    total = mass = 0.0
    expected = []
    for value in values[:, 0].tolist():
        total, mass = weight * total + value, weight * mass + 1
        expected.append(total / mass)
    look = LineOptions(smooth=weight, log_y=False)
    for window in (None, (30_100.0, 30_300.0)):
        x, y = averaged(lines(FakeSource(stream), [A], window=window, look=look).axes[0])
        np.testing.assert_allclose(y, np.array(expected)[x.astype(int)], rtol=1e-5)
        inside = expected if window is None else expected[30_100:30_301]
        assert (y.min(), y.max()) == pytest.approx((min(inside), max(inside)))
        assert (x[0], x[-1]) == (window or (0, 99_999))


def averaged(axes: Axes) -> tuple[np.ndarray, np.ndarray]:
    """x and y of the average of the first series, which is thicker than the series."""
    own = [line for line in axes.lines if to_hex(line.get_color()) == to_hex(colour(0))]
    thickest = max(own, key=lambda line: line.get_linewidth())
    return np.asarray(thickest.get_xdata()), np.asarray(thickest.get_ydata())


def test_a_long_series_keeps_its_extremes(gappy_source: FakeSource) -> None:
    values = np.random.default_rng(1).random((50_000, 1)) + 1
    values[[17, 33_333], 0] = [0.5, 9.0]
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(50_000), norm=values)
    x, y = curve(lines(FakeSource(stream), [A]).axes[0], 0)
    assert len(x) <= 1400
    assert (y.min(), y.max()) == (0.5, 9.0)


def test_time_and_window_choose_the_same_rows(gappy_source: FakeSource) -> None:
    look = LineOptions(x_axis="time", log_y=False)
    x, _ = curve(lines(gappy_source, [B], window=(10, 14), look=look).axes[0], 0)
    np.testing.assert_allclose(x, np.arange(10, 15) / 10)


def test_lines_over_epochs_have_their_events_there_and_say_so() -> None:
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(40), norm=np.ones((40, 1)))
    source = FakeSource(stream)
    look = LineOptions(x_axis="epoch", log_y=False, smooth=0.5)
    with pytest.raises(UnknownNameError, match="epochs are not recorded in fake"):
        lines(source, [A], look=look)
    epochs = {0: 0, 20: 1}
    source.events = tuple(
        Event(step, 0, "epoch", "", json.dumps({"epoch": number}))
        for step, number in epochs.items()
    )
    for figure in (lines(source, [A], look=look), overview(source, "", [A], look=look)):
        (axes,) = [one for one in figure.axes if one.lines]
        x, _ = curve(axes, 0)
        np.testing.assert_allclose(x, np.arange(40) / 20)
        (marks,) = [one for one in axes.lines if one.get_marker() == "|"]
        assert np.asarray(marks.get_xdata()).tolist() == [0.0, 1.0]
        assert "epoch" in [one.get_text() for one in axes.texts]


def test_lines_of_other_runs_are_in_the_chart_of_their_series_whatever_its_color(
    gappy_source: FakeSource,
) -> None:
    other = OverlaidSeries(series=A, x=np.arange(3.0), y=np.ones(3), name="other", colour=4)
    charts = [([one], LineOptions()) for one in (A, B)]
    figure = overview(gappy_source, "", [A, B], charts=charts, colours={A: 4, B: 4}, beside=[other])
    shown = [axes for axes in figure.axes if axes.lines]
    lengths = [[len(np.asarray(line.get_xdata())) for line in axes.lines] for axes in shown]
    assert [3 in one for one in lengths] == [True, False]


@pytest.mark.parametrize("draw", [heat, overview])
def test_a_cell_of_several_steps_shows_the_largest_or_the_mean(draw: Any) -> None:
    values = np.ones((7000, 1), np.float32)
    values[3333] = 91.0
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(7000), norm=values)
    source = FakeSource(stream)

    def top(**cells: Any) -> tuple[float, float]:
        image = draw(source, "norm", **cells).axes[0].images[0]
        n_steps = 7000 / image.get_array().shape[1]
        mean = (91 + n_steps - 1) / n_steps
        return float(image.get_array().max()), mean

    largest, _ = top()
    assert largest == top(cells="max")[0] == 91.0
    assert top(cells="mean")[0] == pytest.approx(top()[1], rel=0.2)


@pytest.mark.parametrize("level", [1.38, 5432.2])
def test_numbers_are_told_apart_where_there_is_room_for_them(level: float) -> None:
    stream = FakeStream("every_1", ["a"], ["norm"])
    stream.append(range(30), norm=[[level + 0.002 * np.sin(step / 5)] for step in range(30)])
    figure = overview(FakeSource(stream, modules=["a"]), "norm", [("a", "norm")])
    assert encoded(figure, "png")
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
    told = [one.get_text() for one in figure.axes[1].get_yticklabels()]
    assert (len({*told}) == len(told)) == (level < 2)


def test_a_picture_counts_the_steps_that_are_completed(gappy_source: FakeSource) -> None:
    assert "norm   step 30" in texts(overview(gappy_source, "norm"))


def test_heat_has_a_row_per_module_and_tells_the_three_kinds_of_cells(
    gappy_source: FakeSource,
) -> None:
    figure = heat(gappy_source, "norm")
    axes, bar = figure.axes
    cells, lost = (image.get_array() for image in axes.images)
    assert cells is not None
    assert lost is not None
    assert cells.shape == (2, 30)
    np.testing.assert_allclose(cells[0, :20], values_of(gappy_source, 0)[:20])
    assert np.ma.getmaskarray(cells)[1, :5].all()
    assert (~np.ma.getmaskarray(lost)).nonzero()[0].tolist() == [0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert isinstance(axes.images[0].norm, LogNorm)
    assert {"not measured", "NaN or infinite"} <= set(texts(figure))
    assert any(patch.get_hatch() for patch in axes.patches)
    assert bar.get_yscale() == "log"


@pytest.mark.parametrize("values", [-1.0, 0.0, 2.0])
@pytest.mark.parametrize("log", [True, False])
def test_a_heat_map_of_one_value_can_be_drawn(values: float, log: bool) -> None:
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append([0], norm=values)
    assert encoded(heat(FakeSource(stream), "norm", log=log), "png")


def test_of_thousands_of_rows_only_those_with_a_name_have_a_tick() -> None:
    names = [f"layer{k}" for k in range(3000)]
    stream = FakeStream("every_1", names, ["norm"])
    stream.append(range(4), norm=1.0)
    axes = heat(FakeSource(stream, modules=names), "norm").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == names[::75]
    assert axes.get_yticks().tolist() == [row + 0.5 for row in range(0, 3000, 75)]


def test_a_wrong_name_lists_the_close_ones(gappy_source: FakeSource) -> None:
    with pytest.raises(UnknownNameError, match="close: 'norm'"):
        heat(gappy_source, "nrom")
    with pytest.raises(UnknownNameError, match="close: 'norm'"):
        lines(gappy_source, [("a", "nrom")])


def test_the_overview_has_both_on_one_axis(gappy_source: FakeSource) -> None:
    figure = overview(gappy_source, "norm", [A])
    top, _, bottom = figure.axes
    assert top.get_xlim() == bottom.get_xlim() == (0, 30)
    assert top.get_position().x0 == bottom.get_position().x0
    assert top.get_position().width == bottom.get_position().width
    assert {"fake", "a · norm"} <= set(texts(figure))


@pytest.mark.parametrize("n_modules", [1, 60, 300])
@pytest.mark.parametrize("series", [[], [A, B]])
def test_everything_stays_inside_the_picture(n_modules: int, series: Any) -> None:
    names = ["a", "b", *(f"encoder.layers.{k}.attention.out_proj" for k in range(n_modules))]
    stream = FakeStream("s", names, ["norm"])
    stream.append(range(40), norm=np.random.default_rng(0).random((40, len(names))))
    figure = overview(FakeSource(stream, modules=names), "norm", series)
    width, height = figure.get_size_inches()
    drawn = figure.get_tightbbox()
    assert height <= 8
    assert -0.01 <= drawn.x0 <= drawn.x1 <= width + 0.01
    assert -0.01 <= drawn.y0 <= drawn.y1 <= height + 0.01


def test_nothing_recorded_makes_an_empty_picture_not_an_error() -> None:
    assert encoded(overview(FakeSource(), "norm"), "png")


def test_the_colours_are_those_of_the_panel() -> None:
    script = (files("notebook_probe.explorer") / "js" / "plots" / "colour.js").read_text()
    found = re.search(r"OKABE_ITO = \[(.*?)\]", script)
    assert found is not None
    assert tuple(re.findall(r"#\w{6}", found[1])) == OKABE_ITO
    assert LOST_COLOUR in script


def test_every_colour_stands_out_from_white() -> None:
    for index in range(len(OKABE_ITO)):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in to_rgb(colour(index))
        ]
        luminance = np.dot(linear, [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) >= 3.0


@pytest.mark.parametrize(
    ("quantity", "values", "log", "colours", "limits"),
    [
        ("norm", [0.5, 40.0], True, ["#440154", "#fde725"], (0.5, 40.0)),
        ("dead_fraction", [0.25, 0.5], False, ["#ffffff", "#063a63"], (0.0, 0.5)),
        ("mean", [-2.0, 1.0], False, ["#063a63", "#7d3200"], (-2.0, 2.0)),
    ],
)
def test_colours_say_whether_it_is_a_size_a_share_or_of_both_signs(
    quantity: str, values: list[float], log: bool, colours: list[str], limits: tuple[float, float]
) -> None:
    stream = FakeStream("s", ["a", "b"], [quantity])
    stream.append(range(4), **{quantity: values})
    image: Any = heat(FakeSource(stream), quantity).axes[0].images[0]
    assert isinstance(image.norm, LogNorm) is log
    assert (image.norm.vmin, image.norm.vmax) == pytest.approx(limits)
    assert [to_hex(image.cmap(place)) for place in (0.0, 1.0)] == colours


def test_a_divergence_does_not_stretch_the_colours_and_the_bar_points_beyond_them() -> None:
    values = np.geomspace(1e-2, 1e-1, 300)
    values[290:] = np.geomspace(1e3, 1e16, 10)
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append(range(300), norm=values[:, None])
    figure = heat(FakeSource(stream), "norm")
    image: Any = figure.axes[0].images[0]
    bar: Any = figure.axes[1]
    assert image.norm.vmin == pytest.approx(1e-2)
    assert 1e-1 < image.norm.vmax < 1e3
    calm = image.to_rgba(image.get_array())[0, :290, 1]
    assert np.ptp(calm) > 0.2, "what was before it is told apart"
    assert bar._colorbar.extend == "max"


def cells_of(axes: Axes) -> Any:
    """Drawn values, NaN where there is none."""
    return np.ma.filled(np.ma.asarray(axes.images[0].get_array()), np.nan)


def test_a_value_stands_in_a_picture_until_the_next_one_and_up_to_the_last_step() -> None:
    """Steps 0, 16 and 2,000 of 2,050 are measured, in columns of 4 steps; the last has 2."""
    stream = FakeStream("every_1", ["a", "b"], ["norm", "loss"])
    values = np.full((2050, 2), np.nan)
    values[[0, 16, 2000]] = [[1, 10], [2, 20], [3, 30]]
    stream.append(range(2050), norm=values, loss=1.0)
    source = FakeSource(stream, modules=("a", "b"))
    axes = heat(source, "norm").axes[0]
    assert axes.get_xlim() == (0, 2050)
    assert [*axes.images[0].get_extent()] == [0, 2052, 2, 0]
    cells = cells_of(axes)
    starts = 4 * np.arange(cells.shape[1])
    stands = np.select([starts < 16, starts < 2000], [1, 2], 3)
    np.testing.assert_array_equal(cells, [stands, 10 * stands])
    source.events = (Event(1000, START_MS, "detach", "norm at b, every(1)"),)
    cells = cells_of(heat(source, "norm").axes[0])
    np.testing.assert_array_equal(np.isnan(cells[1]), (starts >= 1000) & (starts < 2000))
    assert not np.isnan(cells[0]).any()
