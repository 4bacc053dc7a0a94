"""The loss of a bare run, in trainers that do not tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim import LBFGS, AdamW, Optimizer
from torch.utils.data import DataLoader
from transformers import Trainer

import notebook_probe as nbp
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from notebook_probe.train.frameworks.lightning import WatchCallback
from notebook_probe.train.frameworks.transformers import WatchCallback as TrainerWatchCallback
from tests.libraries.recorded_scalars import nearly, scalars
from tests.libraries.test_frameworks_transformers import Sentences, arguments_in
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, N_EPOCHS, classifier, dataset
from tests.libraries.transformers_models import gpt2
from tests.models import made
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning asks torch so
]


class Told(lightning.LightningModule):
    """Logs nothing, and notes its losses."""

    def __init__(self, optimizer: type[Optimizer] = AdamW) -> None:
        super().__init__()
        self.net = classifier()
        self.optimizer_class = optimizer
        self.losses: list[float] = []

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, classes = batch
        loss = F.cross_entropy(self.net(inputs), classes)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        self.net(batch[0])

    def configure_optimizers(self) -> Optimizer:
        return self.optimizer_class(self.parameters(), lr=0.01)  # type: ignore[call-arg]


def fit(module: Told, *callbacks: Any, **options: Any) -> None:
    torch.manual_seed(7)
    trainer = lightning.Trainer(
        max_epochs=N_EPOCHS,
        accelerator="cpu",
        devices=1,
        callbacks=[*callbacks],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        **options,
    )
    loader = DataLoader(dataset(), BATCH_SIZE, shuffle=True)
    trainer.fit(module, loader, DataLoader(dataset(seed=1), BATCH_SIZE))


def loss_of(run: nbp.Run) -> dict[int, float]:
    run.controls.settle()
    return scalars(run, BACKWARD_LOSS)


@pytest.mark.parametrize("with_callback", [False, True])
def test_lightning_has_the_loss_of_every_update(watch: Watch, with_callback: bool) -> None:
    module = made(Told)
    run = watch(module)
    fit(module, *([WatchCallback(run)] if with_callback else []))
    assert len(module.losses) == N_EPOCHS * N_BATCHES
    assert loss_of(run) == nearly(dict(enumerate(module.losses)))
    epochs = [event.step for event in run.events if event.kind == "epoch"]
    assert epochs == ([0, N_BATCHES] if with_callback else [])


def test_of_what_lightning_accumulates_it_is_the_mean(watch: Watch) -> None:
    module = made(Told)
    run = watch(module)
    fit(module, accumulate_grad_batches=5)
    means = torch.tensor(module.losses).reshape(-1, 5).mean(1).tolist()
    assert loss_of(run) == nearly(dict(enumerate(means)))


def test_of_a_search_along_a_line_it_is_the_first_loss(watch: Watch) -> None:
    module = made(lambda: Told(LBFGS))
    run = watch(module)
    fit(module)
    found = loss_of(run)
    assert len(found) == N_EPOCHS * N_BATCHES < len(module.losses)
    assert found[0] == pytest.approx(module.losses[0])


class Noting(Trainer):
    """Notes the loss of each batch as the Trainer goes back through it."""

    losses: list[float]

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        loss = super().training_step(*args, **kwargs)
        self.losses.append(loss.item())
        return loss


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("with_callback", [False, True])
def test_the_trainer_has_the_loss_of_every_update(
    watch: Watch, tmp_path: Path, accumulate: int, with_callback: bool
) -> None:
    model = made(gpt2)
    run = watch(model)
    trainer = Noting(
        model,
        arguments_in(
            tmp_path, gradient_accumulation_steps=accumulate, logging_steps=500, eval_strategy="no"
        ),
        train_dataset=Sentences(),
        callbacks=[TrainerWatchCallback(run)] if with_callback else [],
    )
    trainer.losses = []
    trainer.train()
    sums = torch.tensor(trainer.losses).reshape(-1, accumulate).sum(1).tolist()
    assert len(sums) == N_EPOCHS * N_BATCHES // accumulate
    assert loss_of(run) == nearly(dict(enumerate(sums)))
