"""The callback for Lightning: what Lightning reports is what is recorded, at its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.loggers.logger import Logger
from torch import Tensor
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from torch.utils.data import DataLoader

import notebook_probe as nbp
from notebook_probe.train.frameworks.lightning import WatchCallback
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, N_EPOCHS, classifier, dataset
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning asks torch so
    pytest.mark.filterwarnings("ignore:Starting from v1.9.0, `tensorboardX`"),
]


class Classifier(lightning.LightningModule):
    """Logs a step, an epoch and a validation, and counts its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.net = classifier()
        self.n_batches = 0

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, classes = batch
        self.n_batches += 1
        loss = F.cross_entropy(self.net(inputs), classes)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        if self.n_batches == 7:
            self.boom()
        return loss

    def on_train_epoch_end(self) -> None:
        self.log("batches", float(self.n_batches))

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        inputs, classes = batch
        self.log("val_loss", F.cross_entropy(self.net(inputs), classes))

    def configure_optimizers(self) -> Optimizer:
        return AdamW(self.parameters(), lr=0.01)

    def boom(self) -> None:
        """Nothing happens."""


class Reported(Logger):
    """What Lightning hands to its loggers."""

    name, version = "reported", 0

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, dict[int, float]] = {}

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """None are looked at."""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        for name, value in metrics.items():
            self.values.setdefault(name, {})[step] = value

    def of_states(self, name: str) -> dict[int, float]:
        """By the number of updates completed; Lightning counts the last one."""
        return {step + 1: value for step, value in self.values[name].items()}


def fit(module: Classifier, *callbacks: Any, **options: Any) -> Reported:
    torch.manual_seed(7)
    reported = Reported()
    trainer = lightning.Trainer(
        max_epochs=N_EPOCHS,
        accelerator="cpu",
        devices=1,
        callbacks=[*callbacks],
        logger=reported,
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        **options,
    )
    loader = DataLoader(dataset(), BATCH_SIZE, shuffle=True)
    trainer.fit(module, loader, DataLoader(dataset(seed=1), BATCH_SIZE))
    return reported


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate_grad_batches": 3}, {"val_check_interval": 5}],
    ids=["plain", "accumulation", "validation within an epoch"],
)
def test_what_lightning_reports_is_recorded_at_its_steps_and_states(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    alone, module = made(Classifier), made(Classifier)
    fit(alone, **options)
    left = everything(alone)
    callback = WatchCallback(store=tmp_path / "run.zarr")
    reported = fit(module, callback, **options)
    assert differing(left, everything(module)) == []
    run = callback.run
    assert run is not None
    steps = reported.values["train_loss_step"]
    assert len(steps) == N_EPOCHS * (4 if options.get("accumulate_grad_batches") else N_BATCHES)
    assert scalars(run, "train_loss_step") == nearly(steps)
    for name in ("val_loss", "train_loss_epoch", "batches"):
        assert scalars(run, name) == nearly(reported.of_states(name))
    assert len(scalars(run, "val_loss")) == (4 if options.get("val_check_interval") else 2)
    epochs = [event.step for event in run.events if event.kind == "epoch"]
    assert epochs == [0, len(steps) // 2]
    assert run.status().problem == ""
    run.close()


def test_a_schedule_knows_how_long_lightning_trains(watch: Watch) -> None:
    module = made(Classifier)
    run = watch(module, probes=None)
    run.attach("net.0", "weight_norm", "times(5)")
    fit(module, WatchCallback(run))
    steps = run.data.weight_norm.dropna("step", how="all").step.values.tolist()
    assert len(steps) == 5
    assert steps[-1] > N_BATCHES


def test_stop_ends_the_fit_after_its_step_and_no_batch_is_lost(watch: Watch) -> None:
    module = made(Classifier)
    run = watch(module)
    stop_at(run, 4)
    fit(module, WatchCallback(run))  # and returns
    assert module.n_batches == 4
    assert len(scalars(run, "train_loss_step")) == 4
    assert run.status().state == "idle"
    assert list(scalars(run, "val_loss")) == [4]


def test_an_error_of_the_training_is_that_of_the_run(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boom(self: Classifier) -> None:
        raise FloatingPointError("loss is nan")

    monkeypatch.setattr(Classifier, "boom", boom)
    module = made(Classifier)
    run = watch(module)
    with pytest.raises(FloatingPointError):
        fit(module, WatchCallback(run))
    assert run.status().state == "failed"
    assert "loss is nan" in run.status().problem
    assert len(scalars(run, "train_loss_step")) == 6


def test_a_process_that_does_not_record_trains_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    module = made(Classifier)
    monkeypatch.setattr(lightning.Trainer, "is_global_zero", False)
    callback = WatchCallback(rank=None)
    fit(module, callback)
    assert callback.run is None
    assert module.n_batches == N_EPOCHS * N_BATCHES


def test_a_run_takes_no_options_of_watch(watch: Watch) -> None:
    run = watch(made(Classifier))
    with pytest.raises(TypeError, match="store"):
        WatchCallback(run, store="elsewhere.zarr")


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section(
        "Lightning",
        {
            "lightning": lightning,
            "module": made(Classifier),
            "train_loader": DataLoader(dataset(), BATCH_SIZE),
            "val_loader": DataLoader(dataset(seed=1), BATCH_SIZE),
        },
    )
    assert len(names["trainer"].optimizers) == 1
    assert list(scalars(nbp.open_run("runs/first.zarr"), "val_loss")) == [N_BATCHES, 2 * N_BATCHES]
