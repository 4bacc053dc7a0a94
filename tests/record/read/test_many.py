"""Many runs as one dask dataset, and the ranks of a job as one dimension."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import notebook_probe as nbp
from notebook_probe.axis import Axis
from notebook_probe.errors import (
    MissingExtraError,
    RecordFormatError,
    RecordWarning,
    RecordWriteError,
    UnknownNameError,
)
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.missing import measured
from tests.record.build import BINS, COUNTS, GRAD, WEIGHT, fill, vectors


def record(folder: Path, title: str, modules: Iterable[str], steps: range) -> Path:
    """Norms at these modules and steps, weights and histograms at every second of the steps."""
    with RecordWriter(folder, title=title, modules=[], flush_s=3600) as writer:
        dense = writer.stream("every_1")
        dense.extend([*modules], [GRAD])
        fill(dense, steps)
        sparse = writer.stream("every_2")
        sparse.extend([*modules], [WEIGHT])
        fill(sparse, steps[::2])
        hist = writer.stream("every_2", axis=BINS)
        hist.extend([*modules][:1], [COUNTS])
        for step in steps[::2]:
            assert hist.record(step, step, vectors(hist, step))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    record(tmp_path / "a.zarr", "first", ["fc", "conv"], range(6))
    record(tmp_path / "b.zarr", "second", ["conv", "head"], range(4, 9))
    return tmp_path


def test_runs_are_a_dimension_and_stay_unread(runs: Path) -> None:
    study = nbp.open_runs(f"{runs}/*.zarr")
    assert study["grad_norm"].dims == ("run", "module", "step")
    assert study["counts"].dims == ("run", "module", "step", "bin")
    assert all(study[name].chunks for name in study.data_vars)
    assert study["title"].values.tolist() == ["first", "second"]
    ids = [nbp.open_run(runs / name).attrs["run_id"] for name in ("a.zarr", "b.zarr")]
    assert study["run_id"].values.tolist() == ids
    assert study["module"].values.tolist() == ["fc", "conv", "head"]
    assert study["step"].values.tolist() == list(range(9))


def test_every_cell_is_that_of_its_run_or_nan(runs: Path) -> None:
    study = nbp.open_runs(f"{runs}/*.zarr").drop_vars(["title", "run_id"]).load()
    for place in study["run"].values.tolist():
        own = nbp.open_run(place).data.load().drop_vars("time")
        wanted = own.reindex(module=study["module"], step=study["step"])
        got = study.sel(run=place, drop=True)
        xr.testing.assert_equal(type(wanted)(got.data_vars, got.coords), wanted.drop_attrs())


def test_a_selection_reads_like_the_whole(runs: Path) -> None:
    study = nbp.open_runs([runs / "a.zarr", runs / "b.zarr"])
    whole = study["counts"].load()
    part = nbp.open_runs([runs / "a.zarr", runs / "b.zarr"])["counts"]
    key = {"module": [2, 0], "step": slice(8, 1, -3), "bin": 1, "run": [1, 0]}
    xr.testing.assert_equal(part.isel(key).load(), whole.isel(key))


def test_a_dataset_of_runs_can_be_sent_to_another_process(runs: Path) -> None:
    study = nbp.open_runs(f"{runs}/*.zarr")
    xr.testing.assert_identical(pickle.loads(pickle.dumps(study)).load(), study.load())


def test_of_the_runs_that_are_selected_the_first_is_explored_beside_the_others(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        nbp.OpenedRun, "explore", lambda run, others, grouped: asked.append((run.location, others))
    )
    record(runs / "c.zarr", "third", ["fc"], range(2))
    study = nbp.open_runs(f"{runs}/*.zarr")
    study.explore()
    study.sel(module="fc").isel(run=[2, 0]).explore()
    study.isel(run=1).explore()
    a, b, c = (str(runs / f"{name}.zarr") for name in "abc")
    assert asked == [(a, [b, c]), (c, [a]), (b, [])]


def test_what_is_no_record_is_left_out_by_name(runs: Path) -> None:
    (runs / "c.zarr").mkdir()
    with pytest.warns(RecordWarning, match=r"left out: no record at .*c\.zarr"):
        assert nbp.open_runs(f"{runs}/*.zarr").sizes["run"] == 2
    with pytest.raises(RecordFormatError, match="no record matches"):
        nbp.open_runs(f"{runs}/*.none")


def test_vectors_along_other_bins_are_left_out_by_name(runs: Path) -> None:
    other = Axis("bin", {**BINS.coords, "bin": (0.0, 1.0, 2.0)}, group="hist")
    with RecordWriter(runs / "c.zarr", title="other", modules=[]) as writer:
        hist = writer.stream("every_2", axis=other)
        hist.extend(["fc"], [COUNTS])
        assert hist.record(0, 0, vectors(hist, 0))
    with pytest.warns(RecordWarning, match=r"left out: counts of .*c\.zarr"):
        study = nbp.open_runs(f"{runs}/*.zarr")
    assert study["counts"].isel(run=2).isnull().all()
    assert study["counts"].isel(run=0).notnull().any()


def test_without_dask_the_extra_is_named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(library: str) -> None:
        raise ImportError(library)

    monkeypatch.setattr("notebook_probe.record.store.destination.import_module", none)
    with pytest.raises(MissingExtraError, match=r"open_runs needs dask.*\[analysis\]"):
        nbp.open_runs(f"{runs}/*.zarr")


BOUNDED = """
import resource, sys
import notebook_probe as nbp, zarr

zarr.config.set({"threading.max_workers": 1})
study = nbp.open_runs(sys.argv[1])["grad_norm"]
study.isel(run=0, step=slice(100)).mean().compute(num_workers=1)  # starts every thread
status = open("/proc/self/status").read()
used = int(status.split("VmData:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + 64_000_000,) * 2)
assert study.nbytes > 2 * 64_000_000
print(study.mean(["run", "step"]).compute(num_workers=1).values.tolist())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="bounds the memory as Linux does")
def test_more_than_fits_into_memory_is_reduced_piece_by_piece(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "0.zarr", title="long", modules=[], flush_s=3600) as writer:
        stream = writer.stream("every_1")
        stream.extend([f"m{i}" for i in range(48)], [GRAD])
        row = np.arange(48, dtype=np.float32)[None]
        for step in range(70_000):
            assert stream.record(step, step, row)
    for copy in range(1, 12):
        shutil.copytree(tmp_path / "0.zarr", tmp_path / f"{copy}.zarr")
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, f"{tmp_path}/*.zarr"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == list(range(48))


# ---------------------------------------------------------------- ranks


@pytest.fixture
def job(tmp_path: Path) -> Path:
    record(tmp_path / "job/rank_00000", "job", ["fc", "conv"], range(6))
    record(tmp_path / "job/rank_00003", "job", ["fc"], range(2, 8))
    (tmp_path / "job/rank_4").mkdir()
    return tmp_path / "job"


def test_ranks_are_a_dimension(job: Path) -> None:
    run = nbp.open_run(job)
    assert isinstance(run, nbp.OpenedJob)
    assert (run.name, run.finished, list(run.ranks)) == ("job", True, [0, 3])
    data = run.data
    assert data["grad_norm"].dims == ("rank", "module", "step")
    assert data["rank"].values.tolist() == [0, 3]
    for rank, own in run.ranks.items():
        wanted = own.data.load().drop_vars("time")
        wanted = wanted.reindex(module=data["module"], step=data["step"]).drop_attrs()
        xr.testing.assert_equal(data.sel(rank=rank, drop=True).load(), wanted)


def test_a_series_of_a_job_has_every_rank(job: Path) -> None:
    run = nbp.open_run(job)
    series = run.series("fc", "weight_norm")
    assert series.dims == ("rank", "step")
    assert series["step"].values.tolist() == [0, 2, 4, 6]
    there = measured(series.to_numpy())
    assert there.tolist() == [[True, True, True, False], [False, True, True, True]]
    assert run.series("fc", "counts").dims == ("rank", "step", "bin")
    with pytest.raises(UnknownNameError, match="no module 'head'"):
        run.series("head", "grad_norm")
    with pytest.raises(UnknownNameError, match="no quantity 'loss'"):
        run.series("fc", "loss")


def test_the_ranks_of_a_job_are_runs_beside_others(job: Path, tmp_path: Path) -> None:
    alone = record(tmp_path / "alone.zarr", "alone", ["fc"], range(3))
    study = nbp.open_runs([job, alone])
    ranks = [str(job / "rank_00000"), str(job / "rank_00003")]
    assert study.run.values.tolist() == [*ranks, str(alone)]
    of_job = nbp.open_run(job).data.grad_norm.sel(module="fc", rank=3).dropna("step")
    here = study.grad_norm.sel(module="fc", run=ranks[1]).dropna("step")
    np.testing.assert_array_equal(here, of_job)


def test_cube_and_tree_of_a_job(job: Path) -> None:
    run = nbp.open_run(job)
    cube = run.to_xarray("cube")
    assert cube.dims == ("rank", "module", "quantity", "step")
    got = cube.sel(rank=3, module="fc", quantity="grad_norm", step=[2, 7]).values.tolist()
    assert got == [2.0, 7.0]
    assert run.to_xarray("tree")["rank_00003/every_1"]["step"].to_numpy().tolist() == list(
        range(2, 8)
    )


def test_a_job_is_exported_rank_by_rank(job: Path, tmp_path: Path) -> None:
    run = nbp.open_run(job)
    table = run.to_dataframe("grad_norm")
    assert list(table)[:2] == ["rank", "step"]
    assert table.groupby("rank").size().to_dict() == {0: 12, 3: 6}
    paths = run.to_npy(tmp_path / "npy", "counts", module="fc")
    folders = [path.relative_to(tmp_path / "npy").parts[0] for path in paths]
    assert folders == ["rank_00000", "rank_00003"]
    with pytest.raises(RecordWriteError, match=r"\.ranks\[0\]\.to_netcdf"):
        run.to_netcdf(tmp_path / "a.nc")
    with pytest.raises(RecordWriteError, match="a single record"):
        run.pack(tmp_path / "a.zip")


def test_a_job_grows_with_its_ranks(tmp_path: Path) -> None:
    record(tmp_path / "rank_00000", "job", ["fc"], range(2))
    with RecordWriter(tmp_path / "rank_00001", title="job", modules=[], flush_s=3600) as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [GRAD])
        assert writer.flush(60)
        run = nbp.open_run(tmp_path)
        first = run.revision
        assert not run.finished
        fill(stream, range(3))
        assert writer.flush(60)
        assert run.revision > first
        assert run.series("fc", "grad_norm").sizes == {"rank": 2, "step": 3}


def test_a_record_of_its_own_comes_before_ranks(job: Path) -> None:
    shutil.copytree(job / "rank_00003", job, dirs_exist_ok=True)
    run = nbp.open_run(job)
    assert not isinstance(run, nbp.OpenedJob)
    assert json.loads((job / "zarr.json").read_text())["attributes"]["title"] == run.name
