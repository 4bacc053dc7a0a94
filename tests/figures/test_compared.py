"""Pictures of several runs: the right numbers at the right places, and who is who."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text

from notebook_probe.compare import group, parting
from notebook_probe.compare import ratio as ratio_of
from notebook_probe.errors import UnknownNameError
from notebook_probe.figures import LineOptions, compared, ratio
from notebook_probe.figures.style import RUN_DASHES, colour, encoded, lighter
from tests.compare.made import Made, made

LOSS = ("", "loss")
PLAIN = LineOptions(log_y=False)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def curve(
    axes: Axes, shade: tuple[float, float, float], nth: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    lines = [
        line
        for line in axes.lines
        if to_hex(line.get_color()) == to_hex(shade) and line.get_linewidth() == 1.6
    ]
    return np.asarray(lines[nth].get_xdata()), np.asarray(lines[nth].get_ydata())


@pytest.fixture
def runs() -> list[Made]:
    losses = [4.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.5, 1.0], [2.0, 1.0]
    return [
        made(
            name, {"m": np.ones(len(one))}, logged={"loss": one}, seconds=2.0 * np.arange(len(one))
        )
        for name, one in zip(("digits-cnn", "digits-cnn-8", "digits-cnn-5"), losses, strict=True)
    ]


def test_a_chosen_color_is_that_of_this_run_and_of_the_others(runs: list[Made]) -> None:
    figure = compared(runs[0], runs[1:], [LOSS], colors={LOSS: 4})
    shades = {to_hex(line.get_color()) for line in figure.axes[0].lines}
    assert to_hex(colour(4)) in shades
    assert to_hex(colour(0)) not in shades


def test_this_run_is_solid_and_others_are_lighter_and_dashed(runs: list[Made]) -> None:
    figure = compared(runs[0], runs[1:], [LOSS], look=PLAIN)
    axes = figure.axes[0]
    assert [one.tolist() for one in curve(axes, colour(0))] == [[0, 1, 2, 3], [4, 3, 2, 1]]
    assert curve(axes, lighter(colour(0)))[1].tolist() == [5, 4, 3, 2, 1.5, 1]
    assert curve(axes, lighter(colour(0)), 1)[1].tolist() == [2, 1]
    assert {"loss", "digits-cnn-8 1", "digits-cnn-5 1", "step"} <= set(texts(figure))
    assert len({*map(str, RUN_DASHES)}) == 4
    assert encoded(figure, "png")


def test_a_line_that_ends_early_is_led_to_its_label(runs: list[Made]) -> None:
    axes = compared(runs[0], runs[1:], [LOSS], look=PLAIN).axes[0]
    leads = [line for line in axes.lines if line.get_gid() == "lead"]
    assert [np.asarray(line.get_xdata()).tolist() for line in leads] == [[3, 5], [1, 5]]


@pytest.mark.parametrize(
    ("by", "title", "x"),
    [
        ("time", "seconds since the first row", [0, 2, 4, 6, 8, 10]),
        ("loss", "step; others where their loss is as small", [0, 1, 2, 3]),
    ],
)
def test_others_stand_where_the_axis_puts_them(
    runs: list[Made], by: str, title: str, x: list[float]
) -> None:
    figure = compared(runs[0], runs[1], [LOSS], by=by, look=PLAIN)
    assert curve(figure.axes[0], lighter(colour(0)))[0].tolist() == x
    assert title in texts(figure)


@pytest.mark.parametrize(
    ("by", "title", "x"),
    [
        ("step", "epoch", [0, 0.5, 1, 1.5]),
        ("time", "epoch; others aligned by time", [0, 0.5, 1, 1.5]),
        ("loss", "epoch; others where their loss is as small", [0, 0.5, 1, 1.5]),
    ],
)
def test_runs_are_drawn_over_the_epochs_of_this_run(
    runs: list[Made], by: str, title: str, x: list[float]
) -> None:
    losses, seconds = [4.0, 3.0, 2.0, 1.0], 2.0 * np.arange(4)
    this = made("this", logged={"loss": losses}, seconds=seconds, epochs={0: 0, 2: 1})
    figure = compared(this, runs[1], [LOSS], by=by, x_axis="epoch", look=PLAIN)
    [axes] = figure.axes
    assert curve(axes, colour(0))[0].tolist() == x
    others = curve(axes, lighter(colour(0)))[0]
    assert others[np.searchsorted(others, [0, 0.5, 1, 1.5])].tolist() == x
    assert title in texts(figure)
    grouped = compared(this, runs[1:], [LOSS], by=by, x_axis="epoch", grouped=True, look=PLAIN)
    places = curve(grouped.axes[0], lighter(colour(0)))[0]
    assert 0 <= places[0] < places[-1] <= 2.5


def test_a_window_cuts_all_runs_at_steps_of_this_one(runs: list[Made]) -> None:
    for grouped in (False, True):
        figure = compared(
            runs[0], runs[1:], [LOSS], by="time", window=(1, 2), grouped=grouped, look=PLAIN
        )
        assert curve(figure.axes[0], colour(0))[0].tolist() == [2, 4]
        others = curve(figure.axes[0], lighter(colour(0)))[0]
        assert (others[0], others[-1]) == pytest.approx((2, 4), abs=0.02)


def test_an_axis_that_does_not_exist_is_refused(runs: list[Made]) -> None:
    with pytest.raises(ValueError, match="x_axis='epochs'; allowed: 'step', 'time', 'epoch'"):
        compared(runs[0], runs[1:], [LOSS], x_axis="epochs")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"window=\(2, 1\); allowed"):
        compared(runs[0], runs[1:], [LOSS], window=(2, 1))


def test_a_group_is_its_mean_in_a_band_with_how_many_they_are(runs: list[Made]) -> None:
    figure = compared(runs[0], runs[1:], [LOSS], grouped=True, look=PLAIN)
    axes = figure.axes[0]
    x, y = curve(axes, lighter(colour(0)))
    band = group(runs[1:], "", "loss")
    np.testing.assert_allclose(y, np.interp(x, band.x, band.mean))
    (filled,) = axes.collections
    low, high = filled.get_datalim(axes.transData).intervaly
    np.testing.assert_allclose([low, high], [1, 5])
    assert "mean of 2 runs 1" in texts(figure)


def test_what_another_run_lacks_is_said_and_the_rest_drawn(runs: list[Made]) -> None:
    lacks = made("digits-cnn-4", {"x": [1.0]})
    for grouped in (False, True):
        figure = compared(runs[0], [lacks, runs[1]], [LOSS, ("m", "norm")], grouped=grouped)
        said = texts(figure)
        assert "loss of (root) is not recorded in digits-cnn-4" in said
        assert "norm of m is not recorded in digits-cnn-4" in said
        assert len(curve(figure.axes[0], lighter(colour(0)))[0]) > 1
    alone = compared(runs[0], lacks, [LOSS], by="time")
    assert "loss of (root) is not recorded in digits-cnn-4" in texts(alone)


def test_what_this_run_lacks_is_an_error(runs: list[Made]) -> None:
    with pytest.raises(UnknownNameError, match="samples are not recorded in digits-cnn"):
        compared(runs[0], runs[1:], [LOSS], by="samples")
    with pytest.raises(UnknownNameError, match="no quantity 'los' is recorded"):
        compared(runs[0], runs[1:], [("", "los")])


def test_a_smoothed_line_stands_on_its_values_and_what_is_lost_is_marked() -> None:
    loss = np.r_[np.exp(np.sin(np.arange(300))), np.nan]
    run, other = made("a", logged={"loss": loss}), made("b", logged={"loss": loss})
    axes = compared(run, other, [LOSS], look=LineOptions(smooth=0.9)).axes[0]
    drawn = [line for line in axes.lines if to_hex(line.get_color()) == to_hex(colour(0))]
    assert np.ptp(np.asarray(drawn[1].get_ydata())) < np.ptp(np.asarray(drawn[0].get_ydata()))
    assert np.ptp(curve(axes, lighter(colour(0)))[1]) < 1.5
    marks = [line for line in axes.lines if line.get_marker() == "x"]
    assert [np.asarray(line.get_xdata()).tolist() for line in marks] == [[300]]


@pytest.fixture
def pair() -> list[Made]:
    values = {name: np.exp(np.sin(np.arange(90) + i)) for i, name in enumerate("abc")}
    later = {**values, "b": np.where(np.arange(90) < 40, 1, 5) * values["b"]}
    return [made("digits-cnn", later), made("digits-cnn-8", values)]


def test_cells_are_the_ratio_in_decades_and_a_flag_stands_where_they_part(pair: list[Made]) -> None:
    figure = ratio(pair[0], pair[1], "norm")
    axes = figure.axes[0]
    wanted = ratio_of(pair[0], pair[1], "norm")
    assert wanted is not None
    image = next(one for one in axes.images if isinstance(one, AxesImage))
    np.testing.assert_array_equal(np.asarray(image.get_array()), wanted.apart)
    assert image.get_clim() == (-1.0, 1.0)
    flags = [line for line in axes.lines if line.get_gid() == "flag"]
    assert [np.asarray(line.get_data()).tolist() for line in flags] == [[[40, 40], [1, 2]]]
    said = texts(figure)
    assert "norm: digits-cnn ÷ digits-cnn-8" in said
    assert parting(pair[0], pair[1], "norm").text in said
    encoded(figure, "png")
    assert {"×10", "×3", "same", "÷3", "÷10"} <= set(texts(figure))


def test_a_flag_outside_the_window_is_not_drawn(pair: list[Made]) -> None:
    axes = ratio(pair[0], pair[1], "norm", window=(60, 80)).axes[0]
    assert [line for line in axes.lines if line.get_gid() == "flag"] == []
    assert axes.get_xlim()[0] >= 32


def test_of_signed_values_the_title_says_that_they_are_differences() -> None:
    wave = np.sin(np.arange(60.0))
    figure = ratio(made("a", {"m": wave}), [made("b", {"m": wave})] * 2, "norm", by="step")
    assert "norm: a − the mean of 2 runs, in spreads" in texts(figure)
    assert "They stay within 2 spreads or what 2 runs differ by at m" in texts(figure)


def test_seeds_that_lack_the_axis_are_named_below() -> None:
    has = [made(f"seed {i}", {"m": np.ones(20)}, config={"batch": 8}) for i in range(2)]
    lacks = made("digits-cnn-5", {"m": np.ones(20)})
    said = texts(ratio(has[0], [has[1], lacks], "norm", by="samples"))
    assert "norm: seed 0 ÷ seed 1" in said
    assert "They stay within ×2 at m, by samples" in said
    assert any(text.startswith("samples are not recorded in digits-cnn-5") for text in said)


def test_what_is_not_recorded_cannot_be_drawn(pair: list[Made]) -> None:
    with pytest.raises(UnknownNameError, match="no quantity 'nrom' is recorded; close: 'norm'"):
        ratio(pair[0], pair[1], "nrom")
    alone = made("alone", logged={"loss": [1.0]})
    with pytest.raises(UnknownNameError, match="no value of 'norm' is recorded in alone"):
        ratio(alone, pair[1], "norm")


def test_runs_of_one_name_are_labelled_by_their_locations(runs: list[Made]) -> None:
    for place, run in enumerate(runs):
        run.name, run.location = "MLP", f"runs/{place}.zarr"
    labels = texts(compared(runs[0], runs[1:], [LOSS], look=PLAIN))
    assert {"1 1", "2 1"} <= {text.replace("runs/", "").replace(".zarr", "") for text in labels}


def test_another_run_without_a_finite_value_is_named_below(runs: list[Made]) -> None:
    lost = made("lost", {"m": np.ones(2)}, logged={"loss": [np.nan, np.inf]})
    labels = texts(compared(runs[0], [runs[1], lost], [LOSS], look=PLAIN))
    assert "lost has no value of loss that can be drawn" in labels
