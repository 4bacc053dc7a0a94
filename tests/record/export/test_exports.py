"""Getting out: tidy tables, netCDF and .npy hold exactly what was recorded, live and opened."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import MissingExtraError, RecordWriteError, UnknownNameError
from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.export import frames, netcdf
from notebook_probe.record.export.safe_names import SafeNames, safe_name
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.store.destination import new_file
from notebook_probe.record.write.recorded_source import RecordedSource
from tests.record.build import BINS, COUNTS, GRAD, LAW, WEIGHT, fill, new_writer, vectors

T0 = 1_700_000_000_000
AWKWARD = "../é/[0] con\n"


def begin_record(writer: RecordWriter) -> None:
    """Numbers of every step and of every second, with a NaN and gaps; histograms; odd names."""
    dense = writer.stream("every_1", "every(1)")
    dense.extend(["conv1", "fc"], [GRAD])
    fill(dense, range(6))
    values = np.array([[NOT_MEASURED, MEASURED_NAN]], np.float32)
    assert dense.record(6, T0 + 6, values)
    sparse = writer.stream("every_2", "every(2)")
    sparse.extend([AWKWARD, ""], [WEIGHT])
    fill(sparse, range(0, 6, 2))
    hist = writer.stream("every_3", "every(3)", axis=BINS)
    hist.extend(["fc", AWKWARD], [COUNTS])
    for step in (0, 3):
        rows = vectors(hist, step)
        rows[0, 1] = NOT_MEASURED if step else rows[0, 1]
        assert hist.record(step, T0 + step, rows)
    writer.event(2, "attach", "fc <counts>")


def expected() -> list[tuple[int, str, str, float | str, float | str]]:
    """(step, module, quantity, bin, value) of everything, from the rows' own law."""
    nan = "nan"  # equal to itself
    rows: list[tuple[int, str, str, float | str, float | str]] = [
        (step, module, "grad_norm", nan, 100.0 * place + step)
        for step in range(6)
        for place, module in enumerate(["conv1", "fc"])
    ]
    rows.append((6, "fc", "grad_norm", nan, nan))
    rows += [
        (step, module, "weight_norm", nan, 100.0 * place + step)
        for step in (0, 2, 4)
        for place, module in enumerate([AWKWARD, "(root)"])
    ]
    rows += [
        (step, module, "counts", bin_, 100.0 * place + i / 1024 + step)
        for step, modules in ((0, ["fc", AWKWARD]), (3, ["fc"]))
        for place, module in enumerate(modules)
        for i, bin_ in enumerate(BINS.coords["bin"])
    ]
    return sorted(rows, key=repr)


def told(table: pd.DataFrame) -> list[tuple[int, str, str, float | str, float | str]]:
    along = table["bin"] if "bin" in table else [float("nan")] * len(table)
    columns = (table["step"], table["module"], table["quantity"], along, table["value"])
    rows = [(int(s), str(m), str(q), _number(b), _number(v)) for s, m, q, b, v in zip(*columns)]  # noqa: B905
    return sorted(rows, key=repr)


def _number(value: float) -> float | str:
    return "nan" if np.isnan(value) else float(value)


def test_a_dataframe_has_a_row_per_measurement(source: RecordedSource | OpenedRecord) -> None:
    table = source.to_dataframe()
    assert list(table) == ["step", "time", "module", "quantity", "value", "bin"]
    assert told(table) == expected()
    assert table["step"].is_monotonic_increasing
    assert table["step"].dtype == np.int64
    assert table["value"].dtype == np.float32
    assert (table["time"] == pd.to_datetime(T0 + table["step"], unit="ms")).all()
    assert (table["module"].dtype, table["quantity"].dtype) == ("category", "category")


def test_numbers_alone_have_five_columns(source: RecordedSource | OpenedRecord) -> None:
    table = source.to_dataframe(["grad_norm", "weight_norm"])
    assert list(table) == ["step", "time", "module", "quantity", "value"]
    assert len(table) == 13 + 6


def test_the_size_of_the_window_changes_nothing(
    source: RecordedSource | OpenedRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = source.to_dataframe()
    monkeypatch.setattr(frames, "WINDOW_VALUES", 1)
    parts = list(source.iter_dataframes())
    assert len(parts) == 7
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"quantity": "counts"}, lambda row: row[2] == "counts"),
        ({"module": "fc"}, lambda row: row[1] == "fc"),
        ({"module": ["conv1", ""]}, lambda row: row[1] in ("conv1", "(root)")),
        ({"quantity": "*_norm", "start": 2, "stop": 4},
         lambda row: row[2] != "counts" and 2 <= row[0] < 4),
        ({"module": "*[0]*"}, lambda row: row[1] == AWKWARD),
        ({"start": 100}, lambda row: False),
    ],
)  # fmt: skip
def test_a_selection_is_the_rows_it_names(
    source: RecordedSource | OpenedRecord, given: dict[str, object], kept: object
) -> None:
    assert callable(kept)
    table = source.to_dataframe(**given)  # type: ignore[arg-type]
    assert told(table) == [row for row in expected() if kept(row)]


def test_a_name_nobody_recorded_lists_the_close_ones(
    source: RecordedSource | OpenedRecord, tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError, match="close: 'grad_norm'"):
        source.to_dataframe("grad_nrom")
    with pytest.raises(UnknownNameError, match="no module"):
        source.to_netcdf(tmp_path / "a.nc", module="layer*")
    with pytest.raises(UnknownNameError, match="no quantity"):
        source.to_npy(tmp_path / "npy", "grad_norms")
    assert not (tmp_path / "a.nc").exists()
    assert not (tmp_path / "npy").exists()


def test_netcdf_opens_as_the_tree(source: RecordedSource | OpenedRecord, tmp_path: Path) -> None:
    path = source.to_netcdf(tmp_path / "run.nc")
    with xr.open_datatree(path, engine="h5netcdf") as read:
        assert read.attrs["title"] == "run"
        assert read["events"]["text"].to_numpy().tolist() == ["fc <counts>"]
        assert read["modules"]["class"].to_numpy().tolist()[:2] == ["Net", "Conv2d"]
        tree = source.to_xarray("tree")
        for name in ("every_1", "every_2", "hist/every_3"):
            node, own = read[name].load().to_dataset(), tree[name].load().to_dataset()
            node["module"] = node["module"].astype(object)
            xr.testing.assert_equal(node, own)
            for quantity in own.data_vars:
                assert node[quantity].attrs == own[quantity].attrs


def test_netcdf_keeps_which_nan_was_measured(
    source: RecordedSource | OpenedRecord, tmp_path: Path
) -> None:
    path = source.to_netcdf(tmp_path / "run.nc", quantity="grad_norm", start=6)
    with xr.open_dataset(path, group="every_1", engine="h5netcdf", mask_and_scale=False) as read:
        bits = read["grad_norm"].values.view(np.uint32).tolist()
    assert bits == [[0x7FC00000, 0x7FC00001]]


@pytest.mark.slow
def test_netcdf_in_small_slabs_is_the_same(
    source: RecordedSource | OpenedRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = source.to_netcdf(tmp_path / "whole.nc")
    monkeypatch.setattr(netcdf, "SLAB_VALUES", 1)
    parts = source.to_netcdf(tmp_path / "parts.nc")
    with xr.open_datatree(whole) as one, xr.open_datatree(parts) as other:
        xr.testing.assert_identical(one, other)


def test_attributes_without_a_netcdf_type_are_written_as_json(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        odd = {"_FillValue": "x", "CLASS": "y", "a/b": "z\0"}
        stream.extend(["fc"], [Variable("q", attrs=odd)])
        fill(stream, range(2))
    root = json.loads((tmp_path / "a.zarr/zarr.json").read_text())
    root["attributes"] |= {"config": {"lr": [1, None]}, "flag": True}
    (tmp_path / "a.zarr/zarr.json").write_text(json.dumps(root))
    path = open_record(tmp_path / "a.zarr").to_netcdf(tmp_path / "a.nc")
    with xr.open_datatree(path) as read:
        assert json.loads(read.attrs["config"]) == {"lr": [1, None]}
        assert read.attrs["flag"] == "true"
        attrs = read["every_1"]["q"].attrs
        assert (attrs["_FillValue_"], attrs["CLASS_"], attrs["a_b"]) == ("x", "y", "z\\0")


def test_nothing_is_overwritten_unasked_and_nothing_half_written_stays(
    source: RecordedSource | OpenedRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nc").write_text("mine")
    (tmp_path / "npy").mkdir()
    (tmp_path / "npy" / "mine").touch()
    with pytest.raises(RecordWriteError, match=r"a\.nc exists already; overwrite=True"):
        source.to_netcdf(tmp_path / "a.nc")
    with pytest.raises(RecordWriteError, match="npy is not empty"):
        source.to_npy(tmp_path / "npy")
    monkeypatch.setattr(netcdf, "_write_group", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        source.to_netcdf(tmp_path / "a.nc", overwrite=True)
    assert (tmp_path / "a.nc").read_text() == "mine"
    assert not list(tmp_path.glob(".*.partial"))
    monkeypatch.undo()
    source.to_netcdf(tmp_path / "a.nc", overwrite=True)
    with xr.open_datatree(tmp_path / "a.nc") as read:
        assert "every_1" in read.children


def test_a_missing_library_is_named_with_its_extra(
    source: RecordedSource | OpenedRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(library: str) -> None:
        raise builtins.ImportError(library)

    monkeypatch.setattr("notebook_probe.record.store.destination.import_module", none)
    with pytest.raises(MissingExtraError, match=r"needs h5netcdf: pip install .*\[netcdf\]"):
        source.to_netcdf(tmp_path / "a.nc")
    assert not list(tmp_path.glob("*.nc*"))


def test_npy_files_hold_each_modules_vectors(
    source: RecordedSource | OpenedRecord, tmp_path: Path
) -> None:
    folder = tmp_path / "npy"
    paths = source.to_npy(folder)
    index = json.loads((folder / "index.json").read_text())
    assert [folder / one["file"] for one in index["arrays"]] == paths
    assert index["coords"]["bin"] == list(BINS.coords["bin"])
    for path, one in zip(paths, index["arrays"], strict=True):
        assert path.resolve().is_relative_to(folder.resolve())
        values, steps = np.load(path), np.load(path.with_suffix(".step.npy"))
        series = source.series(one["module"], "counts")
        assert one["dims"] == list(series.dims)
        np.testing.assert_array_equal(values, series)
        np.testing.assert_array_equal(steps, series.step)
        assert one["shape"] == list(values.shape)
    assert {one["module"] for one in index["arrays"]} == {"fc", AWKWARD}


def test_numbers_are_written_as_npy_when_named(
    source: RecordedSource | OpenedRecord, tmp_path: Path
) -> None:
    (path,) = source.to_npy(tmp_path / "npy", "grad_norm", "fc", stop=6)
    assert np.load(path).tolist() == [100 + step for step in range(6)]
    assert np.load(path.with_suffix(".step.npy")).tolist() == list(range(6))


def test_an_empty_record_is_exported_empty(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.event(0, "attach", "nothing yet")
    record = open_record(tmp_path / "a.zarr")
    assert record.to_dataframe().empty
    assert record.to_npy(tmp_path / "npy") == []
    with xr.open_datatree(record.to_netcdf(tmp_path / "a.nc")) as read:
        assert set(read.children) == {"modules", "events"}


@LAW
@given(st.lists(st.text(max_size=300), unique=True, max_size=20))
def test_file_names_are_plain_and_stay_apart(names: list[str]) -> None:
    files = SafeNames()
    made = [files.name(name) for name in names]
    assert len({name.casefold() for name in made}) == len(names)
    for name in made:
        assert name.isascii()
        assert 0 < len(name) < 200
        assert not name.startswith(".")
        assert not set(name) & set('/\\:*?"<>|\0 \n')


def test_device_names_of_windows_are_no_file_names() -> None:
    assert [safe_name(name) for name in ("con", "NUL.x", "com1", "common")] == [
        "%63on", "%4EUL.x", "%63om1", "common",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "stop", "allowed"),
    [
        (-3, None, "start=-3; allowed: a whole number from 0"),
        (2.5, None, "start=2.5; allowed: a whole number from 0"),
        ("2", None, "start='2'; allowed: a whole number from 0"),
        (5, 2, "stop=2; allowed: a whole number from 5"),
        (0, -1, "stop=-1; allowed: a whole number from 0"),
    ],
)
def test_steps_that_cannot_be_are_refused(
    source: RecordedSource, tmp_path: Path, start: Any, stop: Any, allowed: str
) -> None:
    exports: list[Callable[..., object]] = [
        source.to_dataframe,
        partial(source.to_npy, tmp_path / "npy"),
        partial(source.to_netcdf, tmp_path / "run.nc"),
    ]
    for export in exports:
        with pytest.raises(ValueError, match=allowed):
            export(start=start, stop=stop)
    assert not [*tmp_path.glob("npy"), *tmp_path.glob("run.nc*")]


@pytest.mark.parametrize(("start", "stop"), [(5, 2), ("a", None), (None, float("nan"))])
def test_ends_of_a_thinned_series_that_do_not_ascend_are_refused(
    source: RecordedSource, start: Any, stop: Any
) -> None:
    with pytest.raises(ValueError, match="allowed: numbers with start up to stop, or None"):
        source.thinned("fc", "grad_norm", start, stop)


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where the folder would be")
    with (
        pytest.raises(RecordWriteError, match="cannot write"),
        new_file(tmp_path / "file" / "run.csv", overwrite=False),
    ):
        pass
