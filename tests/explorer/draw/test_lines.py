"""Line frames, decoded as the browser does it and compared with the rows themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.explorer.draw import average_lines, long_lines
from notebook_probe.explorer.draw.lines import Lines, points_per_series
from notebook_probe.explorer.draw.pixel_points import PixelAxis
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, measured
from notebook_probe.record.format.source import Event, Source
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.views.thinning import zoom
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

A, B = ("a", "norm"), ("b", "norm")
Points = tuple[np.ndarray, np.ndarray]


def source_of(values: Any, steps: Any = None, ms_per_step: int = 100) -> FakeSource:
    values = np.atleast_2d(np.asarray(values, np.float32).T).T
    stream = FakeStream("every_1", ["a", "b"][: values.shape[1]], ["norm"], ms_per_step)
    stream.append(range(len(values)) if steps is None else steps, norm=values)
    return FakeSource(stream)


def drawn(
    view: Lines, source: Source, selection: PanelSelection, width: int = 700
) -> tuple[dict[str, Any], list[Points]]:
    """The message, and absolute x and y of each series."""
    message, lines, _ = drawn_whole(view, source, selection, width)
    return message, lines


def drawn_whole(
    view: Lines, source: Source, selection: PanelSelection, width: int = 700
) -> tuple[dict[str, Any], list[Points], list[Points]]:
    """The message, and absolute x and y of each series and of its average."""
    message, buffers = view.frame(source, selection, width)
    numbers = np.frombuffer(buffers[0], "<f4")
    lines: list[Points] = []
    averages: list[Points] = []
    end = 0
    for one in message["series"]:
        assert one["offset"] == end
        for n, found in ((one["n"], lines), (one["n_average"], averages)):
            x, y = numbers[end : end + n], numbers[end + n : end + 2 * n]
            found.append((x + np.float64(message["x0"]), y))
            end += 2 * n
    assert end == len(numbers)
    return dict(message), lines, averages


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


def test_alerts_are_no_events_of_the_frame() -> None:
    source = FakeSource(FakeStream("s", ["a"], ["norm"]))
    source.events = (Event(5, 0, "alert", "a: dead"), Event(6, 0, "attach", "norm"))
    message, _ = Lines().frame(source, PanelSelection(), 100)
    assert [kind for _, kind, _ in message["events"]] == ["attach"]


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
    points = line.points(None, PixelAxis(lambda steps: steps.astype(np.float64), False), 2000)
    np.testing.assert_array_equal(points.x, kept)
    np.testing.assert_array_equal(points.y, values[kept])


def test_many_series_share_the_frame() -> None:
    assert points_per_series(100, 700) * 100 <= 14_000
    assert points_per_series(1, 200) == 400


@pytest.fixture
def long_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[OpenedRecord, np.ndarray]:
    """A record that counts as long, and its one series."""
    monkeypatch.setattr(long_lines, "FAR_ROWS", 1000)
    monkeypatch.setattr(zoom, "RAW_ROWS", 1000)
    values = np.random.default_rng(2).normal(size=30_000).astype(np.float32)
    values[[3, 7777, 15_000, 29_000]] = [50.0, -60.0, 70.0, np.inf]
    with RecordWriter(tmp_path / "a.zarr", title="long", modules=[]) as writer:
        stream = writer.stream("every_1")
        stream.extend(["a"], [Variable("norm")])
        for step, value in enumerate(values):
            stream.record(step, START_MS + 100 * step, np.array([[value]]))
    return open_record(tmp_path / "a.zarr"), values


@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("window", [None, (5_000.0, 20_000.0)])
def test_a_long_record_is_drawn_without_reading_its_series(
    long_record: tuple[OpenedRecord, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    log_x: bool,
    window: tuple[float, float] | None,
) -> None:
    record, values = long_record
    read: list[int] = []
    whole = StoredStream.values

    def counted(self: StoredStream, *args: Any) -> np.ndarray:
        found = whole(self, *args)
        read.append(found.size)
        return found

    monkeypatch.setattr(StoredStream, "values", counted)
    selection = replace(PanelSelection(log_x=log_x, smooth=0.0).with_series(A), window=window)
    message, [(x, y)] = drawn(Lines(), record, selection, width=100)
    first, last = (0, 29_999) if window is None else (4_999, 20_001)
    inside = values[first : last + 1]
    finite = inside[np.isfinite(inside)]
    assert (np.nanmin(y), np.nanmax(y)) == (finite.min(), finite.max())
    assert (x[0], x[-1], y[0], y[-1]) == (first, last, inside[0], inside[-1])
    head = message["series"][0]
    assert (head["first_step"], head["last_step"], head["n_rows"]) == (first, last, len(inside))
    assert head["n_nonfinite"] == (last >= 29_000)
    assert head["last_value"] == pytest.approx(float(inside[-1]))
    assert len(x) <= 250
    assert sum(read) < len(inside) / 2


def finished(view: Lines, source: Source, selection: PanelSelection) -> Points:
    """The average of the one series, when all of it has been taken."""
    message: dict[str, Any] = {"averaged": 0.0}
    while message["averaged"] < 1:
        message, _, [average] = drawn_whole(view, source, selection)
    return average


@pytest.mark.parametrize("weight", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("log_y", [False, True])
def test_a_long_record_is_averaged_at_every_step_and_a_zoom_does_not_begin_anew(
    long_record: tuple[OpenedRecord, np.ndarray], weight: float, log_y: bool
) -> None:
    record, values = long_record
    kept = np.flatnonzero(np.isfinite(values) & ((values > 0) | (not log_y)))
    total = mass = 0.0
    expected = np.full(len(values), np.nan)
    for place in kept:
        value = float(values[place])
        total = weight * total + (math.log(value) if log_y else value)
        mass = weight * mass + 1
        expected[place] = math.exp(total / mass) if log_y else total / mass
    view, selection = Lines(), PanelSelection(smooth=weight, log_y=log_y).with_series(A)
    x, y = finished(view, record, selection)
    assert len(x) <= 1402 + 100
    np.testing.assert_allclose(y, expected[x.astype(int)], rtol=1e-5)
    assert (np.nanmin(y), np.nanmax(y)) == pytest.approx((np.nanmin(expected), np.nanmax(expected)))
    x, y = finished(view, record, replace(selection, window=(20_000.0, 20_100.0)))
    assert {*range(20_000, 20_101)} & {*kept} <= {*x.astype(int)}
    np.testing.assert_allclose(y, expected[x.astype(int)], rtol=1e-5)


def test_an_average_comes_after_the_answer_to_a_click_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(average_lines, "AT_ONCE", 1000)
    monkeypatch.setattr(average_lines, "PER_FRAME", 3000)
    source, view = source_of(np.ones((10_000, 2))), Lines()
    selection = PanelSelection(smooth=0.9).with_series(A)
    shares = [drawn(view, source, selection)[0]["averaged"] for _ in range(5)]
    assert shares == pytest.approx([0.1, 0.4, 0.7, 1.0, 1.0])
    message, _ = drawn(view, source, replace(selection, smooth=0.99))
    assert (message["smooth"], message["averaged"]) == (0.99, pytest.approx(0.1))
    message, _ = drawn(view, source, replace(selection, smooth=0.0))
    assert (message["averaged"], message["series"][0]["n_average"]) == (1.0, 0)


def test_an_average_begins_when_its_series_does_and_ends_with_it() -> None:
    source = source_of(np.ones((100, 2)))
    view, selection = Lines(), PanelSelection(smooth=0.9, log_y=False).with_series(("c", "norm"), A)
    _, _, [none, some] = drawn_whole(view, source, selection)
    assert (len(none[0]), len(some[0])) == (0, 100)
    late = FakeStream("late", ["c"], ["norm"])
    late.append(range(50, 150), norm=3.0)
    source.given.append(late)
    _, _, [(x, y), _] = drawn_whole(view, source, selection)
    np.testing.assert_array_equal(x, np.arange(50, 150))
    np.testing.assert_allclose(y, 3.0)


def test_averages_are_drawn_over_time_too_whatever_the_schedule() -> None:
    one, other = FakeStream("every_1", ["a"], ["norm"]), FakeStream("every_10", ["a"], ["norm"])
    one.append(range(20), norm=1.0)
    other.append(range(30, 60, 10), norm=3.0)
    selection = PanelSelection(smooth=0.5, log_y=False, x_axis="time").with_series(A)
    _, [(x, _)], [(at, y)] = drawn_whole(Lines(), FakeSource(one, other), selection)
    np.testing.assert_array_equal(at, x)
    np.testing.assert_allclose(at, np.array([*range(20), 30, 40, 50]) / 10, rtol=1e-6)
    np.testing.assert_allclose(y[-3:], [2.0, 2.5, 2.75], rtol=1e-5)


def test_a_long_record_over_time_and_close_up(
    long_record: tuple[OpenedRecord, np.ndarray],
) -> None:
    record, values = long_record
    close = replace(PanelSelection().with_series(A), window=(100.0, 120.0))
    _, [(x, y)] = drawn(Lines(), record, close)
    np.testing.assert_array_equal(x, np.arange(99, 122))
    np.testing.assert_array_equal(y, values[99:122])
    _, [(x, _)] = drawn(Lines(), record, replace(close, x_axis="time"))
    np.testing.assert_allclose(x, np.arange(99, 122) / 10, atol=1e-4)


def test_an_average_is_of_a_tenth_of_the_recorded_values_at_most_however_few_are_drawn() -> None:
    steps = np.arange(40)
    source, values = source_of(np.ones(40)), 1.0 + steps % 2
    source.given[0] = FakeStream("every_1", ["a"], ["norm"])
    source.given[0].append(steps, norm=values[:, None])
    chosen = PanelSelection(smooth=0.99, log_y=False).with_series(A)
    message, _, [(_, y)] = drawn_whole(Lines(), source, chosen)
    [head] = message["series"]
    assert 1 - 10 / 36 <= head["weight"] <= 1 - 10 / 40
    total = mass = 0.0
    for value in values:
        total, mass = head["weight"] * total + value, head["weight"] * mass + 1
    assert y[-1] == pytest.approx(total / mass)
    close = replace(chosen, window=(30.0, 35.0))
    assert drawn(Lines(), source, close)[0]["series"][0]["weight"] == head["weight"]
    few = source_of(np.ones(9))
    assert drawn(Lines(), few, chosen)[0]["series"][0]["n_average"] == 0


def test_an_average_of_a_series_that_grows_is_seldom_begun_anew() -> None:
    weights = [drawn_weight(n) for n in range(10, 120)]
    assert weights == sorted(weights)
    assert weights[-1] == 0.9
    assert len(set(weights)) < 30
    assert all(weight <= 1 - 10 / n for n, weight in zip(range(10, 120), weights, strict=True))


def drawn_weight(n: int) -> float:
    chosen = PanelSelection(smooth=0.9).with_series(A)
    return float(drawn(Lines(), source_of(np.ones(n)), chosen)[0]["series"][0]["weight"])


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


def test_a_share_beside_a_size_stands_on_its_logarithmic_axis_and_keeps_a_linear_average() -> None:
    stream = FakeStream("every_1", ["a"], ["norm", "dead_fraction"])
    dead = np.where(np.arange(200) < 100, 0.0, 0.5)[:, None]
    stream.append(range(200), norm=10.0, dead_fraction=dead)
    both = PanelSelection(smooth=0.9).with_series(A, ("a", "dead_fraction"))
    message, _, [_, (x, y)] = drawn_whole(Lines(), FakeSource(stream), both)
    assert message["log_y"] is True
    assert np.isfinite(y).all()
    assert y[x < 100].max() == 0
    assert 0.4 < y[-1] < 0.5
