"""Lightning's Trainer on a watched module; it steps its optimizers with closures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import lightning
import pytest
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from torch.utils.data import DataLoader

from tests.libraries.trained_twice import (
    BATCH_SIZE,
    CLIP,
    N_EPOCHS,
    THREES,
    Pair,
    Scenario,
    TrainedTwice,
    check_clipping,
    classifier,
    dataset,
    train_twice,
)

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning asks torch so
    pytest.mark.filterwarnings("ignore:The dirpath has changed:UserWarning"),
]


class Classifier(lightning.LightningModule):
    """As in Lightning's own examples."""

    def __init__(self) -> None:
        super().__init__()
        self.net = classifier()

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        inputs, classes = batch
        return F.cross_entropy(self.net(inputs), classes)

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        inputs, classes = batch
        self.log("val_loss", F.cross_entropy(self.net(inputs), classes))

    def configure_optimizers(self) -> Optimizer:
        return AdamW(self.parameters(), lr=0.01)


def fit(
    model: nn.Module,
    folder: Path,
    n_epochs: int = N_EPOCHS,
    continued_from: Path | None = None,
    **options: Any,
) -> list[Optimizer]:
    """Train with a validation and a checkpoint after every epoch."""
    trainer = lightning.Trainer(
        max_epochs=n_epochs,
        accelerator="cpu",
        devices=1,
        callbacks=[ModelCheckpoint(folder, save_last=True)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    training = DataLoader(dataset(), BATCH_SIZE, shuffle=True)
    validation = DataLoader(dataset(seed=1), BATCH_SIZE)
    trainer.fit(model, training, validation, ckpt_path=continued_from)
    return trainer.optimizers


def fit_and_continue(model: nn.Module, folder: Path) -> list[Optimizer]:
    """A second trainer goes on from the checkpoint of the first."""
    fit(model, folder / "first", n_epochs=1)
    return fit(model, folder / "second", continued_from=folder / "first" / "last.ckpt")


SCENARIOS = {
    "plain": Scenario(fit),
    "accumulation": Scenario(partial(fit, accumulate_grad_batches=3), THREES),
    "clipping": Scenario(partial(fit, gradient_clip_val=CLIP)),
    "mixed precision": Scenario(partial(fit, precision="bf16-mixed")),
    "validation within a step": Scenario(
        partial(fit, val_check_interval=2, accumulate_grad_batches=3), THREES
    ),
    "continued from a checkpoint": Scenario(fit_and_continue),
}


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


@pytest.fixture(scope="module", params=["", "net"], ids=["the module", "the network in it"])
def pair(
    request: pytest.FixtureRequest, scenario: Scenario, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    folder = tmp_path_factory.mktemp("training")
    return train_twice(Classifier, scenario.fit, folder, network="net", watched=request.param)


class TestLightning(TrainedTwice):
    """Whether the LightningModule is watched or the network in it."""


@pytest.mark.parametrize("scenario", ["clipping"], indirect=True)
def test_a_gradient_is_recorded_as_it_was_clipped_and_as_it_was_before(pair: Pair) -> None:
    check_clipping(pair)
