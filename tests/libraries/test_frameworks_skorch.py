"""The callback for skorch: the history of the net is what is recorded."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import skorch
import torch
from sklearn.base import clone
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, EpochScoring
from skorch.dataset import Dataset
from skorch.helper import predefined_split
from torch import nn
from torch.optim import AdamW

import notebook_probe as nbp
from notebook_probe.train.frameworks.skorch import WatchCallback
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, N_EPOCHS, classifier, examples
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = pytest.mark.libraries


class Begun(Callback):
    """Counts the training's batches that are drawn."""

    def __init__(self) -> None:
        self.n = 0

    def on_batch_begin(self, net: Any, batch: Any = None, training: bool = False, **_: Any) -> None:
        self.n += training


def fitted(model: nn.Module, *callbacks: Any) -> NeuralNetClassifier:
    torch.manual_seed(7)
    net = NeuralNetClassifier(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=AdamW,
        lr=0.01,
        batch_size=BATCH_SIZE,
        max_epochs=N_EPOCHS,
        iterator_train__shuffle=True,
        train_split=predefined_split(Dataset(*examples(seed=1))),
        callbacks=[EpochScoring("balanced_accuracy", lower_is_better=False), *callbacks],
        verbose=0,
    )
    return net.fit(*examples())


def test_the_history_of_the_net_is_recorded_at_its_steps_and_states(tmp_path: Path) -> None:
    alone, model = made(classifier), made(classifier)
    left = everything(alone, [fitted(alone).optimizer_])
    callback = WatchCallback(store=tmp_path / "run.zarr")
    net = fitted(model, callback)
    assert differing(left, everything(model, [net.optimizer_])) == []
    run, history = callback.run, net.history
    assert run is not None
    losses = [loss for epoch in history[:, "batches", :, "train_loss"] for loss in epoch]
    assert len(losses) == N_EPOCHS * N_BATCHES
    assert scalars(run, "train_loss") == nearly(dict(enumerate(losses)))
    for name in ("train_loss", "valid_loss", "valid_acc", "balanced_accuracy"):
        of_epochs = {(i + 1) * N_BATCHES: row[name] for i, row in enumerate(history)}
        recorded = "epoch_train_loss" if name == "train_loss" else name
        assert scalars(run, recorded) == nearly(of_epochs)
    epochs = [event.step for event in run.events if event.kind == "epoch"]
    assert epochs == [0, N_BATCHES]
    assert run.status().problem == ""
    run.close()


def test_stop_ends_the_fit_before_another_batch_is_drawn(watch: Watch) -> None:
    model, begun = made(classifier), Begun()
    run = watch(model)
    stop_at(run, 4)
    fitted(model, WatchCallback(run), begun)  # and returns
    assert begun.n == 4
    assert list(scalars(run, "train_loss")) == [0, 1, 2, 3]
    assert run.status().state == "idle"


def test_what_is_copied_or_saved_of_a_net_has_no_run(watch: Watch, tmp_path: Path) -> None:
    callback = WatchCallback(watch(made(classifier)))
    for one in (pickle.loads(pickle.dumps(callback)), copy.deepcopy(callback), clone(callback)):
        assert one.run is None
    optioned = WatchCallback(store=tmp_path / "run.zarr", probes=None)
    for one in (pickle.loads(pickle.dumps(optioned)), clone(optioned)):
        assert one.get_params() == {"store": tmp_path / "run.zarr", "probes": None}


def test_a_clone_of_a_net_trains_a_module_of_its_own_in_a_run_of_its_own(tmp_path: Path) -> None:
    net = fitted(made(classifier), first := WatchCallback(store=tmp_path / "run.zarr"))
    other = clone(net).fit(*examples())
    second = dict(other.callbacks_)["WatchCallback"]
    assert first.run is not None
    assert second.run is not None
    assert second.run.location != first.run.location
    assert list(scalars(second.run, "valid_loss")) == [N_BATCHES, 2 * N_BATCHES]
    first.run.close()
    second.run.close()


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs, classes = examples()
    names = {"skorch": skorch, "model": made(classifier), "inputs": inputs, "classes": classes}
    run_section("skorch", {**names, "torch": torch})
    assert len(scalars(nbp.open_run("runs/first.zarr"), "valid_acc")) == 2
