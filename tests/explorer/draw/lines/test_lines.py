"""Line frames, decoded as the browser does it and compared with the rows themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from notebook_probe.explorer.draw.lines import long_lines
from notebook_probe.explorer.draw.lines.lines import Lines, points_per_series
from notebook_probe.explorer.draw.lines.pixel_points import PixelAxis
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.missing import MEASURED_NAN, measured
from notebook_probe.record.format.source import Event
from tests.explorer.draw.lines.decoded import A, B, drawn, source_of
from tests.explorer.fakes import START_MS, FakeSource, FakeStream


def test_a_short_series_arrives_whole() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    message, lines = drawn(Lines(), source_of(values), PanelSelection().with_series(A, B))
    for place, (x, y) in enumerate(lines):
        np.testing.assert_array_equal(x, np.arange(50))
        np.testing.assert_array_equal(y, values[:, place].astype(np.float32))
    head = message["series"][1]
    assert (head["module"], head["quantity"], head["colour"]) == ("b", "norm", 1)
    assert (head["n"], head["n_rows"]) == (50, 50)
    assert head["last_value"] == pytest.approx(values[-1, 1], rel=1e-6)


@pytest.mark.parametrize("log_x", [False, True])
def test_a_long_series_keeps_its_spikes_and_its_ends(log_x: bool) -> None:
    values = np.random.default_rng(1).normal(size=20_000)
    values[[3, 7777, 15_000]] = [50.0, -60.0, 70.0]
    selection = PanelSelection(log_x=log_x).with_series(A)
    message, [(x, y)] = drawn(Lines(), source_of(values), selection)
    assert message["series"][0]["n_rows"] == 20_000
    assert message["series"][0]["n"] <= 1402
    np.testing.assert_array_equal(y, values.astype(np.float32)[x.astype(int)])
    assert np.all(np.diff(x) > 0)
    assert {0, 3, 7777, 15_000, 19_999} <= set(x.astype(int))


def test_a_logarithmic_axis_gets_its_points_where_it_is_wide() -> None:
    source = source_of(np.random.default_rng(2).normal(size=100_000))
    _, [(x, _)] = drawn(Lines(), source, PanelSelection(log_x=True).with_series(A))
    _, [(linear, _)] = drawn(Lines(), source, PanelSelection().with_series(A))
    assert np.sum(x < 1000) > 300 > 50 > np.sum(linear < 1000)


def test_every_pixel_shows_the_range_of_its_rows() -> None:
    values = np.random.default_rng(3).normal(size=70_000).cumsum()
    _, [(x, y)] = drawn(Lines(), source_of(values), PanelSelection().with_series(A))
    for start in range(0, 70_000, 1000):  # ten pixels: blocks do not end where pixels do
        inside = y[(x >= start - 200) & (x < start + 1200)]
        assert inside.max() >= values[start : start + 1000].max() - 1e-2
        assert inside.min() <= values[start : start + 1000].min() + 1e-2


def test_a_window_brings_its_own_rows_and_one_more_on_either_side() -> None:
    values = np.arange(100_000.0)
    selection = PanelSelection(window=(50_000.0, 50_010.0)).with_series(A)
    message, [(x, y)] = drawn(Lines(), source_of(values), selection)
    np.testing.assert_array_equal(x, np.arange(49_999, 50_012))
    np.testing.assert_array_equal(y, np.arange(49_999, 50_012))
    assert message["x0"] == 49_999


def test_large_steps_stay_exact() -> None:
    steps = 10**9 + np.arange(100)
    _, [(x, _)] = drawn(Lines(), source_of(np.ones(100), steps), PanelSelection().with_series(A))
    np.testing.assert_array_equal(x, steps)


def test_values_that_are_not_finite_break_the_line_and_are_marked() -> None:
    values = np.ones(5000, np.float32)
    values[100], values[200] = MEASURED_NAN, np.inf
    values[300] = np.nan  # not measured: no row at all
    message, [(x, y)] = drawn(Lines(), source_of(values), PanelSelection().with_series(A))
    head = message["series"][0]
    assert np.isnan(y[np.isin(x, [100, 200])]).all()
    assert 300 not in x
    assert (head["n_rows"], head["n_nonfinite"]) == (4999, 2)
    np.testing.assert_array_equal(np.array(head["marks"]) + message["x0"], [100, 200])


def test_a_series_that_diverged_for_good_stays_small() -> None:
    values = np.full(50_000, MEASURED_NAN, np.float32)
    message, _ = drawn(Lines(), source_of(values), PanelSelection().with_series(A))
    head = message["series"][0]
    assert head["n_nonfinite"] == 50_000
    assert len(head["marks"]) <= 100
    assert head["n"] < 300
    assert head["last_value"] is None


def test_a_series_moved_to_another_schedule_is_one_line() -> None:
    one, other = FakeStream("every_1", ["a"], ["norm"]), FakeStream("every_10", ["a"], ["norm"])
    one.append(range(20), norm=np.arange(20.0)[:, None])
    other.append(range(30, 60, 10), norm=np.array([[30.0], [40.0], [50.0]]))
    _, [(x, y)] = drawn(Lines(), FakeSource(one, other), PanelSelection().with_series(A))
    np.testing.assert_array_equal(x, [*range(20), 30, 40, 50])
    np.testing.assert_array_equal(x, y)


def test_time_counts_in_seconds_from_the_first_row() -> None:
    source = source_of(np.ones(100), ms_per_step=250)
    source.events = (Event(40, START_MS + 10_000, "attach", "norm"),)
    selection = PanelSelection(x_axis="time", window=(20.0, 60.0)).with_series(A)
    message, [(x, _)] = drawn(Lines(), source, selection)
    np.testing.assert_allclose(x, np.arange(19, 62) * 0.25)
    assert message["events"][0][0] + message["x0"] == 10.0


def test_alerts_and_output_are_no_events_of_the_frame() -> None:
    source = FakeSource(FakeStream("s", ["a"], ["norm"]))
    alert, printed = Event(5, 0, "alert", "a: dead"), Event(5, 0, "output", "epoch 1")
    source.events = (alert, printed, Event(6, 0, "attach", "norm"))
    message, _ = Lines().frame(source, PanelSelection(), 100)
    assert [kind for _, kind, _ in message["events"]] == ["attach"]


def test_hundreds_of_epochs_and_checkpoints_do_not_hide_what_a_user_changed() -> None:
    source = FakeSource(FakeStream("s", ["a"], ["norm"]))
    periodic = [Event(step, 0, kind, "") for step in range(900) for kind in ("epoch", "checkpoint")]
    change = Event(40, 0, "set", "lr: 0.001 to 0.3")
    source.events = (*periodic[:80], change, *periodic[80:])
    message, _ = Lines().frame(source, PanelSelection(), 100)
    kinds = Counter(kind for _, kind, _ in message["events"])
    assert kinds == {"epoch": 200, "checkpoint": 200, "set": 1}
    steps = [x for x, kind, _ in message["events"] if kind == "epoch"]
    assert (min(steps), max(steps)) == (0, 899)
    assert steps == sorted(steps)


def test_only_the_events_of_the_window_are_told() -> None:
    source = source_of(np.ones(100))
    source.events = tuple(Event(step, 0, "attach", str(step)) for step in (5, 50, 95))
    message, _ = drawn(Lines(), source, PanelSelection(window=(40.0, 60.0)).with_series(A))
    [(x, kind, text)] = message["events"]
    assert (x + message["x0"], kind, text) == (50, "attach", "50")


def test_a_series_nobody_recorded_is_an_empty_one() -> None:
    message, [(x, _)] = drawn(
        Lines(), source_of(np.ones(3)), PanelSelection().with_series(("z", "norm"))
    )
    assert message["series"][0]["n"] == len(x) == 0


@pytest.mark.parametrize(("smooth", "times"), [(0.0, 1), (0.9, 2)])
def test_a_frame_reads_new_rows_only_for_the_lines_and_for_their_averages(
    smooth: float, times: int
) -> None:
    source, view = source_of(np.ones((1000, 2))), Lines()
    [stream] = source.streams.values()
    assert isinstance(stream, FakeStream)
    selection = PanelSelection(smooth=smooth).with_series(A)
    for _ in range(5):
        view.frame(source, selection, 700)
    assert stream.n_values_read == times * 1000
    stream.append(range(1000, 1010), norm=1.0)
    view.frame(source, selection.with_series(B), 700)
    assert stream.n_values_read == times * (1000 + 10 + 1010)


def test_a_line_reads_each_row_once_and_leaves_out_what_was_not_measured() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=1000).astype(np.float32)
    values[rng.integers(0, 1000, 200)] = np.nan
    values[rng.integers(0, 1000, 50)] = MEASURED_NAN
    stream = FakeStream("s", ["a", "b"], ["q"])
    line = long_lines.line_of(stream, "a", "q")
    for start in range(0, 1000, 10):
        stream.append(range(start, start + 10), q=values[start : start + 10, None])
        line.read_new(stream)
        line.read_new(stream)
    assert stream.n_values_read == 1000
    kept = np.flatnonzero(measured(values))
    points = line.points(
        stream, None, PixelAxis(lambda steps: steps.astype(np.float64), False), 2000
    )
    np.testing.assert_array_equal(points.x, kept)
    np.testing.assert_array_equal(points.y, values[kept])


def test_many_series_share_the_frame() -> None:
    assert points_per_series(100, 700) * 100 <= 14_000
    assert points_per_series(1, 200) == 400


@pytest.mark.parametrize(
    ("quantity", "values", "log"),
    [
        ("norm", [1.0, 100.0], True),
        ("norm", [0.0, 100.0], True),
        ("mean", [-1.0, 100.0], False),
        ("dead_fraction", [0.1, 0.5], False),
        ("grad_cosine", [0.1, 0.5], False),
    ],
)
def test_what_is_drawn_says_whether_its_axis_is_logarithmic(
    quantity: str, values: list[float], log: bool
) -> None:
    stream = FakeStream("every_1", ["a"], [quantity])
    stream.append(range(2), **{quantity: np.array(values)[:, None]})
    selection = PanelSelection().with_series(("a", quantity))
    assert drawn(Lines(), FakeSource(stream), selection)[0]["log_y"] is log
    chosen = replace(selection, log_y=not log)
    assert drawn(Lines(), FakeSource(stream), chosen)[0]["log_y"] is not log
