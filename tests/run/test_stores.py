"""What watch refuses: models, optimizers and places of records."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import (
    NotApplicableError,
    RecordFormatError,
    RecordMismatchError,
    RecordWriteError,
)
from tests.models import ConvNet, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.traces import n_hooks, our_threads

batch = floats(5, 4)


def test_what_is_no_model_is_refused(watch: Watch) -> None:
    with pytest.raises(TypeError, match=r"watch\(str\): a torch.nn.Module is expected"):
        nbp.watch("model")  # type: ignore[arg-type]


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"watch\(..., str\): a torch.optim.Optimizer is"):
        nbp.watch(made(mlp), "adam")  # type: ignore[arg-type]


def test_another_models_optimizer_is_refused() -> None:
    with pytest.raises(NotApplicableError, match="SGD owns none of the 4 parameters of Sequential"):
        nbp.watch(made(mlp), sgd(made(ConvNet)))


def test_the_record_of_another_model_is_left_as_it_is(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    with watch(model, store=tmp_path / "r.zarr") as run:
        train(model, sgd(model), batch, range(2))
    other = made(ConvNet)
    with pytest.raises(RecordMismatchError, match="holds the record of another model"):
        watch(other, store=tmp_path / "r.zarr", resume=True)
    assert n_hooks(other) == 0
    assert nbp.open_run(run.location).data.sizes["step"] == 2


def test_a_foreign_folder_is_left_as_it_is(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    model = made(mlp)
    with pytest.raises(RecordFormatError, match="thesis is a folder with other files"):
        watch(model, store=tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]
    assert n_hooks(model) == 0


def test_a_path_that_cannot_be_written_is_refused(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = made(mlp)
    with pytest.raises(RecordWriteError, match="cannot make the folder"):
        watch(model, store=tmp_path / "file" / "r.zarr")
    with pytest.raises(RecordFormatError, match="file is a file, not a record"):
        watch(model, store=tmp_path / "file")
    assert n_hooks(model) == 0
    assert our_threads() == []


def test_a_failed_watch_leaves_the_model_usable(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    with pytest.raises(nbp.UnknownNameError):
        watch(model, probes={"nowhere": ["weight_norm"]}, store=tmp_path / "r.zarr")
    assert not (tmp_path / "r.zarr").exists()
    run = watch(model, store=tmp_path / "r.zarr")
    train_step(model, sgd(model), batch(0))
    assert run.data.sizes["step"] == 1


def test_a_wrapper_means_the_model_inside(watch: Watch) -> None:
    model = made(mlp)
    run = watch(nn.DataParallel(model))
    train_step(model, sgd(model), batch(0))
    assert run.data.module.values.tolist() == ["(root)", "0", "1", "2"]


def test_a_record_that_is_full_stops_and_training_goes_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, max_bytes=50_000)
    while not run.status().problem:
        train(model, optimizer, batch, range(50))
        run.flush()
    train(model, optimizer, batch, range(3))
    run.flush()
    train(model, optimizer, batch, range(3))
    status = run.status()
    assert status.n_probes == 0
    assert f"{status.nbytes / 1000:.3g} kB on disk" in str(status)
    run.close()
    opened = nbp.open_run(run.location)
    last = opened.data.step.values[-1]
    assert status.problem == (
        f"nothing is recorded after step {last}: the record has its max_bytes=50000"
    )
    assert status.step >= last + 3
    assert [event.kind for event in opened.events][-2:] == ["full", "detach"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"name": 3}, TypeError, "name=3; text is expected, or None for the model's class"),
        ({"channel_axis": None}, ValueError, "channel_axis=None; axes by selections of modules"),
        ({"channel_axis": -1}, ValueError, "channel_axis=-1; axes by selections of modules"),
        ({"keep_bits": None}, ValueError, "keep_bits=None; bits by the name of a quantity"),
        ({"keep_bits": 10}, ValueError, "keep_bits=10; bits by the name of a quantity"),
        ({"chunks": 1000}, ValueError, "chunks=1000; whole numbers by 'step'"),
    ],
)
def test_options_of_another_kind_are_refused_before_anything_is_made(
    watch: Watch, tmp_path: Path, options: dict[str, object], error: type[Exception], said: str
) -> None:
    model = made(mlp)
    with pytest.raises(error, match=said):
        watch(model, store=tmp_path / "r.zarr", **options)
    assert not (tmp_path / "r.zarr").exists()
    assert n_hooks(model) == 0


def test_chunks_are_as_its_user_chose(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    run = watch(model, store=tmp_path / "r.zarr", chunks={"step": 4, "module": 2})
    train(model, sgd(model), floats(5, 4), range(10))
    run.close()
    plain = xr.open_zarr(tmp_path / "r.zarr", group="scalars/every_1")
    assert plain.weight_norm.encoding["chunks"] == (4, 2)
    cut = nbp.open_run(tmp_path / "r.zarr", chunks={}).data.weight_norm
    assert cut.chunks is not None
    assert cut.chunks[1] == (4, 4, 2)
