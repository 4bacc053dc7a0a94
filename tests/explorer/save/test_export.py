"""Files out of a panel hold what the panel shows, and its code makes the same view."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.save import files
from notebook_probe.explorer.save.code import code
from notebook_probe.explorer.save.export import export, picture
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.source import ModuleRow, Variable
from notebook_probe.record.views.thinning.heat_grid import HeatGrid
from notebook_probe.record.write.writer import RecordWriter
from tests.explorer.fakes import START_MS, FakeSource, FakeStream

VALUES = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, np.inf], [7.0, 8.0]], np.float32)


@pytest.fixture
def two_streams() -> FakeSource:
    one = FakeStream("every_1", ["a", "b"], ["norm", "mean"])
    one.append(range(4), norm=VALUES, mean=VALUES + 10)
    other = FakeStream("every_2", ["c"], ["norm"])
    other.append([0, 2], norm=9.0)
    return FakeSource(one, other)


def exported(kind: str, source: FakeSource, selection: PanelSelection) -> bytes:
    message, buffers = export(kind, source, selection)  # type: ignore[arg-type]
    assert "error" not in message, message.get("error")
    [buffer] = buffers
    return bytes(buffer)


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_csv_has_a_row_for_every_measured_value_on_the_screen(two_streams: FakeSource) -> None:
    rows = table(
        exported("csv", two_streams, PanelSelection(home="norm").with_series(("a", "mean")))
    )
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        values.setdefault((row["module"], row["quantity"]), []).append(float(row["value"]))
    assert values == {
        ("a", "mean"): [11.0, 15.0, 17.0],
        ("a", "norm"): [1.0, 5.0, 7.0],
        ("b", "norm"): [2.0, 4.0, np.inf, 8.0],
        ("c", "norm"): [9.0, 9.0],
    }
    last = [row for row in rows if (row["module"], row["quantity"]) == ("a", "norm")][-1]
    assert last["step"] == "3"
    assert datetime.fromisoformat(last["time"]).timestamp() * 1000 == START_MS + 300


@pytest.mark.slow
def test_the_rows_of_a_picture_stand_as_in_the_panel() -> None:
    stream = FakeStream("every_1", ["a", "c", "a[0]"], ["norm"])
    stream.append(range(3), norm=[[1.0, 2.0, 3.0]] * 3)
    source, selection = FakeSource(stream), PanelSelection(home="norm")
    grid = HeatGrid("norm", 700)
    grid.read_new(source)
    panel = picture("svg", source, selection, grid.grid(["a", "a[0]", "c"]))
    assert drawing_of(picture("svg", source, selection)) == drawing_of(panel)
    other = picture("svg", source, selection, grid.grid(["a", "c", "a[0]"]))
    assert drawing_of(picture("svg", source, selection)) != drawing_of(other)


def drawing_of(svg: bytes) -> str:
    """Without the date and without the ids, which are drawn anew."""
    text = svg.decode().partition("</metadata>")[2]
    return re.sub(r'(id=|href=|url\()"?#?[\w-]+"?', "", text)


def test_csv_is_that_of_the_window(two_streams: FakeSource) -> None:
    rows = table(exported("csv", two_streams, PanelSelection(home="mean", window=(1.5, 2.0))))
    assert {row["step"] for row in rows} == {"2"}


def test_names_with_commas_survive_csv() -> None:
    stream = FakeStream("s", ['a,"b"'], ["norm"])
    stream.append([0], norm=1.0)
    [row] = table(exported("csv", FakeSource(stream), PanelSelection(home="norm")))
    assert row["module"] == 'a,"b"'


def test_netcdf_is_opened_by_xarray_with_the_same_numbers(two_streams: FakeSource) -> None:
    selection = PanelSelection(home="norm").with_series(("a", "mean"))
    content = exported("netcdf", two_streams, selection)
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as data:
        assert data.module.values.tolist() == ["a", "b", "c"]
        assert data.step.values.tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(data.norm.sel(module="a"), VALUES[:, 0])
        np.testing.assert_array_equal(data.norm.sel(module="c"), [9, np.nan, 9, np.nan])
        np.testing.assert_array_equal(data["mean"].sel(module="a"), VALUES[:, 0] + 10)
        assert np.isnan(data["mean"].sel(module="b")).all(), "not on the screen"
        assert data.time.values[1] == np.datetime64(START_MS + 100, "ms")
        assert data.norm.attrs["units"] == "1"


def test_steps_beyond_32_bits_survive_netcdf() -> None:
    stream = FakeStream("s", ["a"], ["norm"])
    stream.append([2**33, 2**33 + 1], norm=1.0)
    content = exported("netcdf", FakeSource(stream), PanelSelection(home="norm"))
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as data:
        assert data.step.values.tolist() == [2**33, 2**33 + 1]


@pytest.mark.parametrize("kind", ["csv", "netcdf"])
def test_nothing_to_export_is_said_in_words(kind: str) -> None:
    message, buffers = export(kind, FakeSource(), PanelSelection())  # type: ignore[arg-type]
    assert message["error"] == "nothing is recorded in this view yet"
    assert buffers == []


def test_too_much_for_a_download_is_said_in_words(
    two_streams: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_VALUES", 5)
    message, _ = export("csv", two_streams, PanelSelection(home="norm"))
    assert message["error"].startswith("10 values are more than a download takes (5); zoom in")


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml"), ("code", b"")]
)
def test_pictures_and_code_come_from_the_same_selection(
    kind: str, start: bytes, two_streams: FakeSource
) -> None:
    selection = PanelSelection(home="norm").with_series(("a", "mean"))
    message, buffers = export(kind, two_streams, selection)  # type: ignore[arg-type]
    assert message["filename"] == {"png": "fake.png", "svg": "fake.svg", "code": "fake.py"}[kind]
    if kind == "code":
        assert message["text"] == code("nowhere", replace(selection, log_heat=True, log_y=True))
    else:
        assert bytes(buffers[0]).startswith(start)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first.zarr"
    rows = (ModuleRow("(root)", "Net", 3, 0, -1), ModuleRow("fc1", "Linear", 3, 3, 0))
    with RecordWriter(path, title="first", modules=rows) as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc1"], [Variable("grad_norm"), Variable("output_mean")])
        for step in range(20):
            row = np.array([[step + 1.0], [-1.0]], np.float32)
            row[0, 0] = MEASURED_NAN if step == 7 else row[0, 0]
            stream.record(step, START_MS + step, row)
    return path


@pytest.mark.slow
def test_the_code_runs_as_it_is(record: Path) -> None:
    selections = [
        PanelSelection(home="grad_norm").with_series(("fc1", "grad_norm")),
        PanelSelection(home="output_mean", window=(2.5, 12.0), log_heat=False, x_axis="time"),
        PanelSelection(log_x=True, log_y=False).with_series(("fc1", "output_mean")),
        PanelSelection(),
    ]
    texts = [code(str(record), selection) for selection in selections]
    script = "\n".join(["import matplotlib", "matplotlib.use('agg')", *texts])
    run = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
