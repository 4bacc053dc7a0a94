"""Lines of long records: drawn and averaged without reading all of their series."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notebook_probe.explorer.draw.lines import long_lines
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.format.source import Source
from notebook_probe.record.read.stored import StoredStream
from notebook_probe.record.views.thinning import zoom
from tests.explorer.draw.lines.decoded import A, Points, drawn, drawn_whole
from tests.explorer.fakes import START_MS


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
