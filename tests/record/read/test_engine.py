"""A record opened by xarray alone: joined by our engine, group by group by its own."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import notebook_probe as nbp
from notebook_probe.record import RecordWriter, Variable
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.record.read.engine import RecordEngine

ENGINE: type[RecordEngine] = RecordEngine
MODULES = [ModuleRow("", "Net", 3, 0, -1), ModuleRow("fc", "Linear", 3, 3, 0)]


def recorded(folder: Path, n_steps: int = 6) -> Path:
    with RecordWriter(folder, title="first", modules=MODULES) as writer:
        for n, name in ((1, "norm"), (2, "mean")):
            stream = writer.stream(f"every_{n}", f"every({n})")
            stream.extend(["fc"], [Variable(name, attrs={"aliases": f"Other{name}"})])
            for step in range(0, n_steps, n):
                stream.record(step, 0, np.array([[step / 2]], np.float32))
    return folder


@pytest.mark.parametrize("as_text", [True, False])
def test_it_is_the_data_of_an_opened_run(tmp_path: Path, as_text: bool) -> None:
    place = recorded(tmp_path / "run.zarr")
    found = xr.open_dataset(str(place) if as_text else place, engine=ENGINE)
    wanted = nbp.open_run(place).data
    assert found.identical(wanted)
    assert found["Othermean"].sel(module="fc").values[::2].tolist() == [0.0, 1.0, 2.0]


def test_it_is_read_in_pieces_dropped_from_and_chunked_as_any(tmp_path: Path) -> None:
    place = recorded(tmp_path / "run.zarr")
    dropped = xr.open_dataset(place, engine=ENGINE, drop_variables="mean")
    assert [*dropped.data_vars] == ["norm"]
    with pytest.warns(UserWarning, match="separate the stored chunks along dimension"):
        chunked = xr.open_dataset(place, engine=ENGINE, chunks={"step": 2})
    assert chunked.chunks["step"] == (2, 2, 2)
    assert chunked.load().identical(nbp.open_run(place).data.load())


def test_a_job_has_its_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        recorded(tmp_path / f"rank_0000{rank}")
    found = xr.open_dataset(tmp_path, engine=ENGINE)
    assert found.sizes["rank"] == 2
    assert found.identical(nbp.open_run(tmp_path).data)


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nbp.RecordFormatError, match="no record at"):
        xr.open_dataset(tmp_path, engine=ENGINE)


def test_the_package_announces_it_under_its_own_name() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["xarray.backends"]["notebook_probe"].partition(":")
    assert getattr(import_module(module), name) is RecordEngine


def test_plain_xarray_is_told_where_things_are(tmp_path: Path) -> None:
    place = recorded(tmp_path / "run.zarr")
    comment = xr.open_zarr(place, chunks=None).attrs["comment"]
    assert "group='scalars/every_1'" in comment
    assert "engine='notebook_probe'" in comment
    with xr.open_datatree(place, engine="zarr") as tree:
        assert tree.attrs["comment"] == comment
        assert tree["scalars/every_2"]["mean"].shape == (3, 1)
