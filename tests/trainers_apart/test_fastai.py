"""The callback for fastai: what its Recorder says, and steps of optimizers that are not torch's."""

from __future__ import annotations

import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fastai.callback import progress
from fastai.callback.core import Callback
from fastai.callback.training import GradientAccumulation
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.metrics import accuracy
from fastai.optimizer import SGD, OptimWrapper
from torch import nn

import notebook_probe as nbp
from notebook_probe.train.frameworks.fastai import WatchCallback
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.models import normal

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:fastai", "ignore:`torch.jit"),
]

N_BATCHES, N_EPOCHS = 4, 2
INPUTS = normal(0, 32, 4)
SAMPLES = [*zip(INPUTS, (INPUTS[:, 0] > 0).long(), strict=True)]
PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "frameworks.md"
OF_TORCH = partial(OptimWrapper, opt=torch.optim.AdamW)


def loaders() -> DataLoaders:
    return DataLoaders(DataLoader(SAMPLES, bs=8), DataLoader(SAMPLES[:16], bs=8))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def learner(*callbacks: Any, model: nn.Module | None = None, **options: Any) -> Learner:
    made = Learner(
        loaders(),
        model or network(),
        loss_func=nn.CrossEntropyLoss(),
        metrics=accuracy,
        cbs=callbacks,
        **options,
    )
    made.remove_cb(progress.ProgressCallback)
    return made


@pytest.mark.parametrize("optimizer", ["fastai", "torch"])
def test_steps_of_both_kinds_of_optimizers_are_recorded(optimizer: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {} if optimizer == "fastai" else {"opt_func": OF_TORCH}
    alone, callback = learner(**options), WatchCallback(store=tmp_path / "run.zarr")
    watched = learner(callback, **options)
    for one in (alone, watched):
        torch.manual_seed(1)
        one.fit(N_EPOCHS, 1e-2)
    pairs = zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    run = callback.watched_run
    assert run is not None
    n_steps = N_EPOCHS * N_BATCHES
    assert [*scalars(run, "train_loss")] == [*range(n_steps)]
    for place, name in enumerate(("epoch_train_loss", "valid_loss", "accuracy")):
        of_epochs = {
            (i + 1) * N_BATCHES: row[place] for i, row in enumerate(watched.recorder.values)
        }
        assert scalars(run, name) == nearly(of_epochs)
    ratios = run.series("0", "update_ratio")
    assert ratios.step.values.tolist() == [*range(n_steps)]
    assert (ratios > 0).all()
    assert [event.step for event in run.events if event.kind == "epoch"] == [0, N_BATCHES]
    assert run.config["optimizer"]["lr"] == 1e-2
    assert not run.alerts
    assert not run.remarks
    run.close()


def test_an_update_has_the_size_that_the_optimizer_gave_it(tmp_path: Path) -> None:
    callback = WatchCallback(store=tmp_path / "run.zarr", probes={"0.weight": ["update_norm"]})
    one = learner(callback, opt_func=SGD)
    before = one.model[0].weight.detach().clone()
    one.fit(1, 1e-2)
    run = callback.watched_run
    assert run is not None
    moved = (one.model[0].weight.detach() - before).norm()
    sizes = run.series("0.weight", "update_norm")
    assert sizes.size == N_BATCHES
    assert float(sizes.sum()) >= float(moved) > 0
    run.close()


def test_batches_of_one_update_are_one_step(tmp_path: Path) -> None:
    callback = WatchCallback(store=tmp_path / "run.zarr", probes=["default"])
    learner(callback, GradientAccumulation(n_acc=16)).fit(1, 1e-2)
    run = callback.watched_run
    assert run is not None
    assert run.series("0", "update_ratio").step.values.tolist() == [0, 1]
    run.close()


class Setting(Callback):
    """Sets a rate of 0 after the second batch, and keeps the weights after each."""

    order = 80

    def __init__(self, callback: WatchCallback) -> None:
        self.callback = callback
        self.weights: list[torch.Tensor] = []

    def after_batch(self) -> None:
        self.weights.append(self.learn.model[0].weight.detach().clone())
        if len(self.weights) == 2 and self.callback.watched_run is not None:
            self.callback.watched_run.set("lr", 0.0)


def test_a_rate_that_is_set_between_two_steps_is_that_of_fastai(tmp_path: Path) -> None:
    callback = WatchCallback(store=tmp_path / "run.zarr", probes=None)
    setting = Setting(callback)
    one = learner(callback, setting, opt_func=SGD)
    one.fit(1, 1e-2)
    assert one.opt.hypers[-1]["lr"] == 0.0
    first, second, third, *_ = setting.weights
    assert not torch.equal(first, second)
    assert torch.equal(second, third)
    assert callback.watched_run is not None
    callback.watched_run.close()


def test_stop_ends_the_fit_before_another_batch(watch: Any) -> None:
    model = network()
    run = watch(model)
    stop_at(run, 2)
    learner(WatchCallback(run), model=model).fit(N_EPOCHS, 1e-2)  # and returns
    assert [*scalars(run, "train_loss")] == [0, 1]
    assert run.status().state == "idle"


def test_a_search_for_a_rate_is_not_recorded(tmp_path: Path) -> None:
    callback = WatchCallback(store=tmp_path / "run.zarr")
    one = learner(callback)
    one.lr_find(num_it=5, show_plot=False)
    assert callback.watched_run is None
    one.fit(1, 1e-2)
    assert callback.watched_run is not None
    assert len(scalars(callback.watched_run, "train_loss")) == N_BATCHES
    callback.watched_run.close()


def test_a_learner_that_is_saved_has_no_run(tmp_path: Path) -> None:
    callback = WatchCallback(store=tmp_path / "run.zarr")
    one = learner(callback)
    one.fit(1, 1e-2)
    loaded = pickle.loads(pickle.dumps(one))
    assert callback.watched_run is not None
    callback.watched_run.close()
    [copied] = [one for one in loaded.cbs if isinstance(one, WatchCallback)]
    assert copied.watched_run is None


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE.read_text("utf-8").partition("\n## fastai\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.M)
    names: dict[str, Any] = {"model": network(), "loaders": loaders(), "torch": torch}
    exec(block, names)
    opened = nbp.open_run("runs/first.zarr")
    assert len(scalars(opened, "accuracy")) == 2
