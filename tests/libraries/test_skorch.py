"""skorch's nets on a watched module; they step their optimizer with closures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from skorch import NeuralNetClassifier
from skorch.callbacks import Checkpoint, GradientNormClipping
from skorch.dataset import Dataset
from skorch.helper import predefined_split
from skorch.hf import AccelerateMixin
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from tests.libraries.accelerators import new_accelerator
from tests.libraries.trained_twice import (
    BATCH_SIZE,
    CLIP,
    N_EPOCHS,
    Pair,
    Scenario,
    TrainedTwice,
    check_clipping,
    classifier,
    examples,
    train_twice,
)

pytestmark = pytest.mark.libraries


class Accumulating(NeuralNetClassifier):
    """Three batches to an update; those that an epoch leaves over go to the next."""

    def get_loss(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().get_loss(*args, **kwargs) / 3

    def train_step(self, batch: Any, **fit_params: Any) -> Any:
        step = self.train_step_single(batch, **fit_params)
        if len(self.history[-1, "batches"]) % 3 == 0:
            self.optimizer_.step()
            self.optimizer_.zero_grad()
        return step


class Accelerated(AccelerateMixin, NeuralNetClassifier):
    """Mixed precision, as skorch offers it."""


def net_of(
    model: nn.Module,
    folder: Path,
    kind: type[NeuralNetClassifier] = NeuralNetClassifier,
    clip: float | None = None,
    **options: Any,
) -> NeuralNetClassifier:
    """Validates after every epoch, and pickles itself with the module in it."""
    checkpoint = Checkpoint(monitor=None, dirname=folder, f_pickle="net.pkl")
    return kind(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=AdamW,
        lr=0.01,
        batch_size=BATCH_SIZE,
        max_epochs=N_EPOCHS,
        iterator_train__shuffle=True,
        train_split=predefined_split(Dataset(*examples(seed=1))),
        callbacks=[checkpoint, *([] if clip is None else [GradientNormClipping(clip)])],
        verbose=0,
        **options,
    )


def fit(model: nn.Module, folder: Path, **options: Any) -> list[Optimizer]:
    net = net_of(model, folder, **options)
    net.fit(*examples())
    return [net.optimizer_]


def fit_in_mixed_precision(model: nn.Module, folder: Path) -> list[Optimizer]:
    accelerator = new_accelerator(mixed_precision="bf16")
    return fit(model, folder, kind=Accelerated, accelerator=accelerator, device=None)


def fit_and_continue(model: nn.Module, folder: Path) -> list[Optimizer]:
    """Goes on with the parameters that were saved after the first epoch."""
    net = net_of(model, folder)
    net.set_params(max_epochs=1)
    net.fit(*examples())
    net.load_params(checkpoint=Checkpoint(dirname=folder))
    net.partial_fit(*examples())
    return [net.optimizer_]


SCENARIOS = {
    "plain": Scenario(fit),
    "accumulation": Scenario(partial(fit, kind=Accumulating), [3, 3, 3, 4, 3, 3]),
    "clipping": Scenario(partial(fit, clip=CLIP)),
    "mixed precision": Scenario(fit_in_mixed_precision),
    "continued from a checkpoint": Scenario(fit_and_continue),
}


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


@pytest.fixture(scope="module")
def pair(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return train_twice(classifier, scenario.fit, tmp_path_factory.mktemp("training"))


class TestSkorch(TrainedTwice):
    """A module that is watched before the net is made of it."""


@pytest.mark.parametrize("scenario", ["clipping"], indirect=True)
def test_a_gradient_is_recorded_as_it_was_clipped_and_as_it_was_before(pair: Pair) -> None:
    check_clipping(pair)
