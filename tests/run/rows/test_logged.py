"""Scalars that a loop logs: under any name, and as many as it likes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import notebook_probe as nbp
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.views.thinning import zoom
from notebook_probe.run.rows.logged import HANDFUL
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
HOSTILE = [
    "train/loss",
    "../../x",
    "/etc/passwd",
    "50 %",
    "a.b",
    "%2e",
    "~",
    "C:\\x",
    "é \u2603",
    "*",
]
HOSTILE += ["value", "name", "(root)", "Loss", "loss", "logged", "zarr.json", "late.1", "x" * 200]
N_STEPS = 6


def value(place: int, step: int) -> float:
    return 1000.0 * place + step


def logged(watch: Watch, names: list[str], n_steps: int = N_STEPS) -> nbp.Run:
    """A run that has logged all of ``names`` at every step."""
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(n_steps):
        train_step(model, optimizer, batch(step))
        run.log({name: value(place, step) for place, name in enumerate(names)})
    return run


def check(source: nbp.Run | nbp.OpenedRun, names: list[str]) -> None:
    data, table = source.data, source.to_dataframe(module="(root)")
    for place, name in enumerate(names):
        expected = [value(place, step) for step in range(N_STEPS)]
        series = source.series("", name)
        assert series.values.tolist() == expected, name
        assert series.attrs["long_name"] == "logged by the training loop"
        assert data[name].sel(module="(root)").values.tolist() == expected, name
        assert source.thinned("", name).y.tolist() == expected, name
        assert table.value[table.quantity == name].tolist() == expected, name
    assert {one.name for one in source.streams["logged"].variables} <= {*names}


@pytest.mark.slow
def test_a_name_may_be_anything_and_is_read_back_by_that_name_in_every_door(
    watch: Watch, tmp_path: Path
) -> None:
    run = logged(watch, HOSTILE)
    check(run, HOSTILE)
    run.close()
    opened = nbp.open_run(run.location)
    assert not opened.problems
    check(opened, HOSTILE)
    check(nbp.open_run(opened.pack(tmp_path / "run.zarr.zip")), HOSTILE)
    arrays = opened.to_npy(tmp_path / "npy", HOSTILE)
    assert all(path.is_relative_to(tmp_path / "npy") for path in arrays)
    told = json.loads((tmp_path / "npy/index.json").read_text())["arrays"]
    assert sorted(one["quantity"] for one in told) == sorted(HOSTILE)
    netcdf = xr.open_datatree(opened.to_netcdf(tmp_path / "run.nc", "train/*"), engine="h5netcdf")
    assert netcdf["names/logged"].value.sel(name="train/loss").values.tolist() == [*range(N_STEPS)]
    names = {str(path.relative_to(run.location)) for path in Path(run.location).rglob("*")}
    assert not [name for name in names if "passwd" in name or "x.b" in name or "%" in name]


def test_plain_xarray_reads_a_few_as_variables_and_many_by_their_names(watch: Watch) -> None:
    names = [f"scalar_{number}" for number in range(HANDFUL + 20)]
    run = logged(watch, ["train/loss", *names])
    run.close()
    few = xr.open_zarr(run.location, group="scalars/every_1", chunks=None)
    assert {*few.data_vars} == {*names[:HANDFUL]}
    assert few.scalar_3.sel(module="(root)").values.tolist() == [
        value(4, i) for i in range(N_STEPS)
    ]
    many = xr.open_zarr(run.location, group="names/logged", chunks=None)
    assert many.name.values.tolist() == ["train/loss", *names[HANDFUL:]]
    assert many.value.sel(name="train/loss").values.tolist() == [*range(N_STEPS)]
    assert many.value.dims == ("step", "name")


def test_a_thousand_names_cost_few_files_and_a_small_root(watch: Watch) -> None:
    names = [f"group/{number}" for number in range(1000)]
    run = logged(watch, names[:100])
    run.flush()
    root = Path(run.location) / "zarr.json"
    before = root.stat().st_size
    run.log(dict.fromkeys(names[100:], 1.0))
    run.close()
    assert root.stat().st_size - before < 500 * 900
    files = [path for path in Path(run.location).rglob("*") if path.is_file()]
    assert len(files) < 150  # 63 chunks of 16 names each
    assert nbp.open_run(run.location).data["group/999"].sel(module="(root)").notnull().sum() == 1


@pytest.mark.slow
def test_a_name_keeps_its_place_when_the_run_goes_on(watch: Watch, tmp_path: Path) -> None:
    first, second = [f"a{i}" for i in range(HANDFUL + 2)], [f"b{i}" for i in range(3)]
    model, store = made(mlp), tmp_path / "run.zarr"
    optimizer = sgd(model)
    for names in (first, [*reversed(first), *second]):
        run = watch(model, probes=None, store=store)
        train_step(model, optimizer, batch(0))
        run.log(dict.fromkeys(names, 1.0))
        run.close()
    few = xr.open_zarr(store, group="scalars/every_1", chunks=None)
    many = xr.open_zarr(store, group="names/logged", chunks=None)
    assert {*few.data_vars} == {*first[:HANDFUL]}
    assert {*many.name.values} == {*first[HANDFUL:], *second}
    opened = nbp.open_run(store)
    assert [len(opened.series("", name)) for name in (*first, *second)] == [2] * len(first) + [
        1
    ] * 3


def test_on_a_branch_the_history_of_a_name_is_that_of_both(watch: Watch, tmp_path: Path) -> None:
    model, store = made(mlp), tmp_path / "run.zarr"
    optimizer = sgd(model)
    for branch, number in ((False, 1.0), (True, 2.0)):
        run = watch(model, probes=None, store=store, step=2 if branch else None, branch=branch)
        for step in range(4):
            train_step(model, optimizer, batch(step))
            run.log({"train/loss": number})
        run.close()
    opened = nbp.open_run(store)
    assert opened.series("", "train/loss").values.tolist() == [1, 1, 2, 2, 2, 2]
    assert nbp.open_run(store, branch=1).series("", "train/loss").values.tolist() == [1] * 4


def test_a_scalar_of_any_name_is_written_into_passed_steps(watch: Watch) -> None:
    run = logged(watch, ["train/loss"])
    run.backfill("", "train/loss", [2], [-2.0])
    run.backfill("", "test/loss", [1, 4], [10.0, 40.0])
    with run.at_step(3):
        run.log({"train/loss": -3.0})
    run.close()
    for source in (run, nbp.open_run(run.location)):
        assert source.series("", "train/loss").values.tolist() == [0, 1, -2, -3, 4, 5]
        assert source.series("", "test/loss").values.tolist() == [10, 40]
    with pytest.raises(nbp.QuantityError, match="a/b"):
        nbp.open_run(run.location).backfill("0", "a/b", [0], [1.0])


def test_numbers_of_every_kind_keep_their_values_beside_others(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    given: dict[str, Any] = {
        "f/64": np.float64(0.5),
        "i": 3,
        "t/0": torch.tensor(2.5),
        "nan/": float("nan"),
    }
    given |= {"inf/": 1e300, "-0/": -0.0}
    run.log(given, loss=1.0)
    run.close()
    opened = nbp.open_run(run.location)
    for name, number in given.items():
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(opened.series("", name), [np.float32(number)])
    assert opened.series("", "loss").item() == 1.0


def test_the_pyramid_of_scalars_by_name_is_drawn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoom, "RAW_ROWS", 0)
    values = np.random.default_rng(0).normal(size=(5000, 20)).astype(np.float32)
    with RecordWriter(tmp_path, title="names", modules=[]) as writer:
        stream = writer.named()
        stream.extend([f"n/{place}" for place in range(20)])
        for step, row in enumerate(values):
            stream.record(step, 0, row[None])
    opened = open_record(tmp_path)
    assert opened.streams["logged"].levels[64].has("n/7", "")
    thinned = opened.thinned("", "n/7", n_points=100)
    assert len(thinned.x) <= 100
    assert {values[:, 7].min(), values[:, 7].max()} <= {*thinned.y.astype(np.float32)}
    level = xr.open_zarr(tmp_path, group="pyramid/logged/by64", chunks=None)
    blocks = values[: 5000 // 64 * 64].reshape(-1, 64, 20)
    np.testing.assert_array_equal(level.value_max.values, blocks.max(axis=1))
    assert level.name.values.tolist() == [f"n/{place}" for place in range(20)]


def test_scalars_of_states_are_all_streams_whether_arrays_of_their_own_or_columns(
    watch: Watch,
) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    run.log({"val/loss": 3.0}, phase="eval", val_loss=2.0)
    found = {one.name for stream in run.streams.values() for one in stream.variables}
    assert {"val/loss", "val_loss"} <= found
