"""What leaves a panel has its charts: a loss and an accuracy, each on a value axis of its kind."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from notebook_probe import open_run
from notebook_probe.alerts.alert import Alert
from notebook_probe.explorer.charts import ChosenChart
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.value_scale import LineChart, line_charts
from notebook_probe.explorer.save.code import code
from notebook_probe.explorer.save.export import export, look_of, picture
from notebook_probe.figures import overview
from notebook_probe.figures.style import BAD, BRAND, WARNING, colour
from notebook_probe.record.format.ranges import charts_of
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import Event, ModuleRow, Variable
from notebook_probe.record.views.thinning.average import Average, capped
from notebook_probe.record.write.writer import RecordWriter
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

ROOT = "(root)"
LOSS, ACCURACY, SIGNED = (ROOT, "loss"), (ROOT, "accuracy"), (ROOT, "drift")
STEPS = np.arange(60)
EPOCH_STARTS = (0, 10, 40)
FALLING = np.exp(-STEPS / 20).astype(np.float32)
BOTH = PanelSelection(log_heat=True).with_series(LOSS).with_series(ACCURACY)


def severity(step: int, kind: str) -> Event:
    alert = Alert("mine", step, "it is high", (ROOT,), severity=kind)  # type: ignore[arg-type]
    return Event(step, START_MS, "alert", alert.said, alert.detail)


@pytest.fixture
def logged() -> FakeSource:
    stream = FakeStream("logged", [ROOT], ["loss", "accuracy", "drift"], logged=True)
    stream.append(STEPS, loss=FALLING[:, None], accuracy=1 - FALLING[:, None], drift=-1.0)
    source = FakeSource(stream, modules=(ROOT,))
    marks = [severity(10, "warning"), severity(20, "severe"), severity(30, "remark")]
    source.events = (*marks, Event(40, START_MS, "set", "lr=1"))
    return source


def test_charts_are_numbered_by_what_their_axes_can_share() -> None:
    stream = FakeStream("s", ["a"], ["loss"])
    stream.variables = (
        Variable("loss", long_name=LOGGED_BY),
        Variable("accuracy", long_name=LOGGED_BY),
        Variable("wait", "s"),
        Variable("memory", "bytes"),
    )
    names = ["accuracy", "loss", "wait", "memory", "not recorded"]
    found = charts_of([stream], [("a", name) for name in names])
    assert [*found.values()] == [0, 1, 2, 2, 1]


def test_the_frame_and_the_files_have_the_same_charts(logged: FakeSource) -> None:
    for selection in (BOTH, replace(BOTH, log_y=True), BOTH.with_series(SIGNED)):
        message, _ = Lines().frame(logged, selection, 400)
        rows = message["series"]
        drawn = [
            LineChart(
                tuple((one["module"], one["quantity"]) for one in rows if one["chart"] == number),
                next(one["log_y"] for one in rows if one["chart"] == number),
            )
            for number in sorted({one["chart"] for one in rows})
        ]
        assert line_charts(logged, selection) == drawn
    assert [one.log_y for one in line_charts(logged, BOTH)] == [True, False]
    assert [one.log_y for one in line_charts(logged, BOTH.with_series(SIGNED))] == [False, False]


def pictured(source: FakeSource, **look: object) -> list[Axes]:
    """The axes of the lines in a picture of both series."""
    selection = replace(BOTH, smooth=0.0, **look)  # type: ignore[arg-type]
    charts = [(one.series, look_of(one, selection)) for one in line_charts(source, selection)]
    figure = overview(source, "loss", BOTH.series, charts=charts)
    return [axes for axes in figure.axes if axes.lines]


def test_a_picture_has_an_axis_for_each_kind_and_limits_for_the_upper_one(
    logged: FakeSource,
) -> None:
    upper, lower = pictured(logged, y_limits=(0.25, 4.0))
    assert (upper.get_yscale(), lower.get_yscale()) == ("log", "linear")
    assert upper.get_ylim() == (0.25, 4.0)
    assert lower.get_ylim() != (0.25, 4.0)
    assert upper.get_position().y0 > lower.get_position().y1
    assert upper.get_xlim() == lower.get_xlim()


def test_alerts_are_triangles_in_the_colours_of_the_panel(logged: FakeSource) -> None:
    _, lower = pictured(logged)
    marks = {
        to_hex(line.get_color()): (line.get_marker(), np.asarray(line.get_xdata()).tolist())
        for line in lower.lines
        if line.get_marker() in ("^", "|")
    }
    assert marks == {WARNING: ("^", [10]), BAD: ("^", [20]), BRAND: ("|", [40])}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "charts.zarr"
    rows = (ModuleRow(ROOT, "Net", 3, 3, -1),)
    with RecordWriter(path, title="charts", modules=rows) as writer:
        stream = writer.stream("every_1")
        names = [Variable(name) for name in ("loss", "accuracy")]
        stream.extend([ROOT], names)
        for step in STEPS:
            row = np.array([[FALLING[step]], [1 - FALLING[step]]], np.float32)
            stream.record(int(step), START_MS + int(step), row)
        for number, start in enumerate(EPOCH_STARTS):
            told = json.dumps({"epoch": number})
            writer.event(start, "epoch", "", told)
    return path


SHOW = """
import json
print(json.dumps([[axes.get_yscale(), axes.get_ylim(), axes.lines[-1].get_ydata().tolist()]
                  for axes in charts[:, 0]]))
"""

SHOW_COLORS = """
import json
from matplotlib.colors import to_hex
print(json.dumps([[(to_hex(line.get_color()), line.get_linestyle()) for line in axes.lines]
                  for axes in charts[:, 0]]))
"""

SHOW_X = """
import json
print(json.dumps([[axes.lines[-1].get_xdata().tolist(), charts[-1, 0].get_xlabel()]
                  for axes in charts[:, 0]]))
"""


@pytest.mark.slow
def test_the_code_draws_the_average_and_the_limits_of_the_panel(record: Path) -> None:
    selection = replace(BOTH, smooth=0.95, y_limits=(0.01, 2.0))
    charts = [
        LineChart((LOSS,), True, selection.chart(0)),
        LineChart((ACCURACY,), False, selection.chart(1)),
    ]
    text = code(str(record), selection, charts)
    (log, limits, loss), (linear, _, accuracy) = shown_by(text)
    assert (log, linear, limits) == ("log", "linear", [0.01, 2.0])
    weight = capped(0.95, len(STEPS))
    told = Average(weight, log=True).follow(FALLING[:, None])[:, 0]
    np.testing.assert_allclose(loss, told, rtol=1e-6)
    told = Average(weight).follow(1 - FALLING[:, None])[:, 0]
    np.testing.assert_allclose(accuracy, told, rtol=1e-6)


ARRANGED = replace(
    BOTH,
    charts=(
        ChosenChart((ACCURACY,), log_y=False, y_limits=(0.25, 0.75), smooth=0.0),
        ChosenChart((LOSS,), log_y=False, smooth=0.5),
    ),
)


def test_a_picture_draws_each_arranged_chart_with_its_own_settings(logged: FakeSource) -> None:
    charts = [(one.series, look_of(one, ARRANGED)) for one in line_charts(logged, ARRANGED)]
    figure = overview(logged, "loss", ARRANGED.series, charts=charts)
    upper, lower = (axes for axes in figure.axes if axes.lines)
    assert upper.get_ylim() == (0.25, 0.75)
    assert lower.get_yscale() == "linear"
    told = Average(0.5).follow(FALLING[:, None])[:, 0]
    np.testing.assert_allclose(np.asarray(lower.lines[1].get_ydata()), told, rtol=1e-5)


def spiked(source: FakeSource) -> None:
    """A loss of 4e6 at one step, which is far beyond all others."""
    source.streams["logged"]._values["loss"][7] = 4e6  # type: ignore[attr-defined]


def test_a_picture_leaves_an_outlier_out_and_says_so(logged: FakeSource) -> None:
    linear = replace(BOTH, log_y=False, smooth=0.0)
    spiked(logged)
    charts = [(one.series, look_of(one, linear)) for one in line_charts(logged, linear)]
    figure = overview(logged, "loss", BOTH.series, charts=charts)
    upper, lower = (axes for axes in figure.axes if axes.lines)
    assert upper.get_ylim()[1] < 2
    assert upper.get_title("right").startswith("1 value beyond the scale, to 4")
    assert lower.get_title("right") == ""
    shown = replace(linear, outliers=True)
    charts = [(one.series, look_of(one, shown)) for one in line_charts(logged, shown)]
    upper = next(a for a in overview(logged, "loss", BOTH.series, charts=charts).axes if a.lines)
    assert upper.get_ylim()[1] > 4e6
    assert upper.get_title("right") == ""


@pytest.mark.slow
def test_the_code_draws_each_arranged_chart_with_its_own_settings(record: Path) -> None:
    (_, limits, accuracy), (scale, _, loss) = shown_by(
        code(str(record), ARRANGED, line_charts(open_run(record), ARRANGED))
    )
    assert (limits, scale) == ([0.25, 0.75], "linear")
    np.testing.assert_allclose(accuracy, 1 - FALLING, rtol=1e-6)
    np.testing.assert_allclose(loss, Average(0.5).follow(FALLING[:, None])[:, 0], rtol=1e-6)


@pytest.mark.slow
def test_the_code_of_several_runs_has_a_picture_for_each_chart(
    record: Path, tmp_path: Path
) -> None:
    selection = replace(ARRANGED, others=(str(record),), chosen_colors=((*LOSS, 4),))
    text = code(str(record), selection, line_charts(open_run(record), selection))
    assert "colors={('(root)', 'loss'): 4}," in text
    run = [sys.executable, "-W", "error", "-c", f"import matplotlib\nmatplotlib.use('agg')\n{text}"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["lines-2.png", "lines.png"]


@pytest.mark.slow
def test_the_code_draws_over_epochs_what_the_panel_draws(record: Path) -> None:
    source = open_run(record)
    for smooth in (0.0, 0.5):
        selection = replace(ARRANGED, x_axis="epoch", smooth=smooth)
        frame, [numbers] = Lines().frame(source, selection, 4000)
        head = frame["series"][0]
        drawn = np.frombuffer(numbers, "<f4")[head["offset"] :][: head["n"]] + frame["x0"]
        text = code(str(record), selection, line_charts(source, selection))
        for x, label in shown_by(text, SHOW_X):
            np.testing.assert_allclose(x, drawn, atol=1e-5)
            assert label == "epoch"


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [0.0, 0.5])
def test_the_code_has_the_chosen_colors_and_their_dashes(record: Path, smooth: float) -> None:
    selection = replace(BOTH, smooth=smooth, chosen_colors=((*ACCURACY, 8), ("gone", "loss", 3)))
    charts = [
        LineChart((LOSS,), True, selection.chart(0)),
        LineChart((ACCURACY,), False, selection.chart(1)),
    ]
    text = code(str(record), selection, charts)
    assert "gone" not in text
    plain, colored = shown_by(text, SHOW_COLORS)
    assert {shade for shade, _ in plain} == {"#1f77b4"}, "matplotlib's own"
    assert {shade for shade, _ in colored} == {to_hex(colour(8))}
    assert [kind for _, kind in colored] == ["-", "--"][not smooth :]


def test_a_picture_has_the_chosen_colors(logged: FakeSource) -> None:
    chosen = replace(BOTH, chosen_colors=((*ACCURACY, 4), (*LOSS, 4)))
    content = picture("svg", logged, chosen).decode()
    assert content.count(to_hex(colour(4))) > content.count(to_hex(colour(0)))
    assert to_hex(colour(4)) not in picture("svg", logged, BOTH).decode()


def test_a_file_of_a_run_without_epochs_is_over_steps_as_the_panel_is(logged: FakeSource) -> None:
    selection = replace(BOTH, x_axis="epoch")
    message, _ = export("code", logged, selection)
    assert message["text"] == export("code", logged, BOTH)[0]["text"]
    assert "error" not in export("png", logged, selection)[0]


def shown_by(text: str, show: str = SHOW) -> Any:
    """What the code draws, axes by axes: scale, limits, last line."""
    script = "\n".join(["import matplotlib", "matplotlib.use('agg')", text, show])
    run = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
