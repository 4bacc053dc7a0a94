"""Getting out vectors of every module's own length, and arrays such as images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from notebook_probe.record import OpenedRecord, RecordWriter, Variable
from notebook_probe.record.export import netcdf
from notebook_probe.record.write.recorded_source import RecordedSource
from tests.record.build import GRAD, fill

NORMS, IMAGE = Variable("channel_norm"), Variable("image", "1", "first input")
LENGTHS = {"a/b": 2, "fc": 3}


def begin_record(writer: RecordWriter) -> None:
    stream = writer.stream("every_1")
    stream.extend(["fc"], [GRAD])
    fill(stream, range(4))
    ragged = writer.ragged("every_2")
    ragged.extend([NORMS])
    for step in (0, 2):
        vectors = {("channel_norm", m): np.arange(n) + step for m, n in LENGTHS.items()}
        if step:
            del vectors["channel_norm", "a/b"]
        assert ragged.record(step, step, vectors)
    images = writer.arrays(IMAGE, "a/b", (2, 2))
    for step in (1, 3):
        assert images.record(step, step, np.eye(2) * step)


def test_a_dataframe_has_their_elements(source: RecordedSource | OpenedRecord) -> None:
    table = source.to_dataframe("channel_norm")
    assert list(table) == ["step", "time", "module", "quantity", "value", "index_in_module"]
    told = [(row.step, row.module, row.index_in_module, row.value) for row in table.itertuples()]
    assert told == [
        *((0, module, i, i) for module, n in LENGTHS.items() for i in range(n)),
        *((2, "fc", i, i + 2) for i in range(3)),
    ]


def test_one_module_is_selected_in_every_kind(source: RecordedSource | OpenedRecord) -> None:
    table = source.to_dataframe(module="fc", start=2)
    assert table.groupby(["step", "quantity"], observed=True).size().to_dict() == {
        (2, "grad_norm"): 1, (2, "channel_norm"): 3, (3, "grad_norm"): 1,
    }  # fmt: skip
    assert table["index_in_module"].isna().sum() == 2


def test_npy_files_are_the_series(source: RecordedSource | OpenedRecord, tmp_path: Path) -> None:
    paths = source.to_npy(tmp_path / "npy")
    index = json.loads((tmp_path / "npy/index.json").read_text())["arrays"]
    named = {(one["quantity"], one["module"]) for one in index}
    assert named == {("channel_norm", "a/b"), ("channel_norm", "fc"), ("image", "a/b")}
    for path, one in zip(paths, index, strict=True):
        series = source.series(one["module"], one["quantity"])
        np.testing.assert_array_equal(np.load(path), series)
        np.testing.assert_array_equal(np.load(path.with_suffix(".step.npy")), series.step)
    (image,) = source.to_npy(tmp_path / "image", "image", start=2)
    assert image == tmp_path / "image/image/a%2Fb.npy"
    assert np.load(image).tolist() == [[[3, 0], [0, 3]]]


@pytest.mark.slow
def test_netcdf_has_groups_of_them(
    source: RecordedSource | OpenedRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netcdf, "SLAB_VALUES", 1)
    path = source.to_netcdf(tmp_path / "a.nc", module="a/b")
    with xr.open_datatree(path) as read:
        elements = read["vectors/every_2"]
        assert elements["channel_norm"].dims == ("step", "element")
        assert elements["module_of_element"].to_numpy().tolist() == ["a/b"] * 2
        assert elements["index_in_module"].to_numpy().tolist() == [0, 1]
        assert elements["channel_norm"].to_numpy()[0].tolist() == [0, 1]
        images = read["blobs/image/a%2Fb"]
        assert images.attrs["module"] == "a/b"
        assert images["image"].to_numpy()[1].tolist() == [[3, 0], [0, 3]]
        assert images["step"].to_numpy().tolist() == [1, 3]
