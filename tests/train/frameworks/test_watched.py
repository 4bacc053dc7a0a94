"""What a framework's callback does whichever the framework is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch, watch

__all__ = ["watch"]

batch = floats(5, 4)


def test_a_library_that_is_missing_is_named_with_the_way_to_install_it() -> None:
    with (
        pytest.raises(nbp.MissingExtraError, match="pip install nothing-like-it"),
        needs("nothing-like-it"),
    ):
        import nothing_like_it  # type: ignore[import-not-found]  # noqa: F401


def test_a_run_that_watches_takes_no_options_and_must_be_one(watch: Watch) -> None:
    with pytest.raises(TypeError, match="store"):
        Watched(watch(made(mlp)), {"store": "elsewhere.zarr"})
    with pytest.raises(TypeError, match="Sequential"):
        Watched(made(mlp), {})  # type: ignore[arg-type]


def test_numbers_of_a_step_and_of_the_state_after_it_lie_where_they_belong(watch: Watch) -> None:
    model = made(mlp)
    watched = Watched(run := watch(model, probes=None), {})
    watched.begin(model, 0, 2)
    train_step(model, sgd(model), batch(0))
    watched.trained({"loss": torch.tensor(2.0), "epoch": 0.5, "rate": "fast"})
    watched.boundary()
    watched.evaluated({"val_loss": 1.0, "many": torch.zeros(2)})
    assert run.series("", "loss").step.values.tolist() == [0]
    assert run.series("", "val_loss").step.values.tolist() == [1]
    assert {"rate", "many"}.isdisjoint(run.data)


def test_a_name_that_cannot_be_recorded_is_told_once_and_ends_no_training(watch: Watch) -> None:
    model = made(mlp)
    watched = Watched(run := watch(model, probes=None), {})
    train_step(model, sgd(model), batch(0))
    with pytest.warns(UserWarning, match="step") as told:
        watched.trained({"step": 1.0, "loss": 2.0})
    watched.trained({"step": 1.0})
    assert len(told) == 1
    assert run.series("", "loss").values.tolist() == [2.0]


def test_stop_is_told_to_a_trainer_that_asks(watch: Watch) -> None:
    model = made(mlp)
    watched = Watched(run := watch(model), {})
    train_step(model, sgd(model), batch(0))
    assert not watched.is_stopped()
    train_step(model, sgd(model), batch(1))
    run.controls.put(Control("stop"))
    assert watched.is_stopped()


def test_only_the_main_process_watches_where_one_record_is_wanted(tmp_path: Path) -> None:
    model = made(mlp)
    watched = Watched(None, {"rank": None, "store": tmp_path / "run.zarr"})
    watched.begin(model, is_main=False)
    watched.epoch(0)
    watched.trained({"loss": 1.0})
    watched.ended()
    assert watched.run is None
    assert not (tmp_path / "run.zarr").exists()


@pytest.mark.slow
def test_a_training_that_goes_on_does_so_in_its_record(tmp_path: Path) -> None:
    for done in (0, 2):
        model = made(mlp)
        watched = Watched(None, {"store": tmp_path / "run.zarr"})
        watched.begin(model, done, 4)
        for step in range(2):
            train_step(model, sgd(model), batch(step))
            watched.trained({"loss": float(done + step)})
            watched.boundary()
        watched.ended()
        assert watched.run is not None
        watched.run.close()
    kept = nbp.open_run(tmp_path / "run.zarr").series("", "loss")
    assert kept.step.values.tolist() == kept.values.tolist() == [0, 1, 2, 3]


def test_a_second_training_of_a_model_goes_on_in_the_run_of_the_first(tmp_path: Path) -> None:
    model = made(mlp)
    watched = Watched(None, {"store": tmp_path / "run.zarr"})
    watched.begin(model)
    run = watched.run
    watched.ended()
    watched.begin(model)
    assert watched.run is run
    assert run is not None
    run.close()
    watched.trained({"loss": 1.0})
    watched.boundary()
    watched.ended()  # nothing of which concerns a run that is closed
