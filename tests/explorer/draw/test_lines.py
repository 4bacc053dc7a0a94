"""Line frames, decoded as the browser does it and compared with the rows themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.explorer.draw import long_lines
from notebook_probe.explorer.draw.lines import Lines, points_per_series
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.source import Event, Source
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.views.thinning import zoom
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

A, B = ("a", "norm"), ("b", "norm")


def source_of(values: Any, steps: Any = None, ms_per_step: int = 100) -> FakeSource:
    values = np.atleast_2d(np.asarray(values, np.float32).T).T
    stream = FakeStream("every_1", ["a", "b"][: values.shape[1]], ["norm"], ms_per_step)
    stream.append(range(len(values)) if steps is None else steps, norm=values)
    return FakeSource(stream)


def drawn(
    view: Lines, source: Source, selection: PanelSelection, width: int = 700
) -> tuple[dict[str, Any], list[tuple[np.ndarray, np.ndarray]]]:
    """The message, and absolute x and y of each series."""
    message, buffers = view.frame(source, selection, width)
    numbers = np.frombuffer(buffers[0], "<f4")
    lines = [
        (
            numbers[one["offset"] : one["offset"] + one["n"]] + np.float64(message["x0"]),
            numbers[one["offset"] + one["n"] : one["offset"] + 2 * one["n"]],
        )
        for one in message["series"]
    ]
    assert sum(2 * one["n"] for one in message["series"]) == len(numbers)
    return dict(message), lines


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


def test_a_frame_reads_new_rows_only() -> None:
    source, view = source_of(np.ones((1000, 2))), Lines()
    [stream] = source.streams.values()
    assert isinstance(stream, FakeStream)
    selection = PanelSelection().with_series(A)
    for _ in range(5):
        view.frame(source, selection, 700)
    assert stream.n_values_read == 1000
    stream.append(range(1000, 1010), norm=1.0)
    view.frame(source, selection.with_series(B), 700)
    assert stream.n_values_read == 1000 + 10 + 1010


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
    selection = replace(PanelSelection(log_x=log_x).with_series(A), window=window)
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
