"""The Trainer of transformers on a watched language model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from accelerate.optimizer import AcceleratedOptimizer
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

from tests.libraries.case import language
from tests.libraries.trained_twice import (
    CLIP,
    N_BATCHES,
    N_EPOCHS,
    THREES,
    Pair,
    Scenario,
    TrainedTwice,
    check_clipping,
    train_twice,
)
from tests.libraries.transformers_models import gpt2

pytestmark = pytest.mark.libraries

BATCH_SIZE = 2


class Sentences(Dataset[dict[str, Any]]):
    """Sequences of twelve words, each of which has to be told from those before it."""

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def __len__(self) -> int:
        return N_BATCHES * BATCH_SIZE

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: value[0] for name, value in language(self.first + index).items()}


def fit(model: nn.Module, folder: Path, **options: Any) -> list[Optimizer]:
    """Train with an evaluation and a checkpoint after every epoch."""
    return [_trained(model, folder, **options)]


def fit_and_continue(model: nn.Module, folder: Path) -> list[Optimizer]:
    """A second trainer goes on from the checkpoint of the first, which it finds by itself."""
    _trained(model, folder, max_steps=N_BATCHES)
    return [_trained(model, folder, resumes=True)]


def _trained(model: nn.Module, folder: Path, resumes: bool = False, **options: Any) -> Optimizer:
    options = {"eval_strategy": "epoch", "save_strategy": "epoch", **options}
    arguments = TrainingArguments(
        folder,
        num_train_epochs=N_EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        learning_rate=0.01,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        **options,
    )
    trainer = Trainer(model, arguments, train_dataset=Sentences(), eval_dataset=Sentences(100))
    trainer.train(resume_from_checkpoint=resumes)
    optimizer = trainer.optimizer
    return optimizer.optimizer if isinstance(optimizer, AcceleratedOptimizer) else optimizer


SCENARIOS = {
    "plain": Scenario(fit),
    "accumulation": Scenario(partial(fit, gradient_accumulation_steps=3), THREES),
    "clipping": Scenario(partial(fit, max_grad_norm=CLIP)),
    "mixed precision": Scenario(partial(fit, bf16=True)),
    "activation checkpointing": Scenario(partial(fit, activation_checkpointing=True)),
    "evaluation within an epoch": Scenario(
        partial(fit, gradient_accumulation_steps=3, eval_strategy="steps", eval_steps=1), THREES
    ),
    "the best model at the end": Scenario(partial(fit, load_best_model_at_end=True)),
    "continued from a checkpoint": Scenario(fit_and_continue),
}


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


@pytest.fixture(scope="module")
def pair(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return train_twice(gpt2, scenario.fit, tmp_path_factory.mktemp("training"))


class TestTrainer(TrainedTwice):
    """GPT-2, as it comes."""


@pytest.mark.parametrize("scenario", ["clipping"], indirect=True)
def test_a_gradient_is_recorded_as_it_was_clipped_and_as_it_was_before(pair: Pair) -> None:
    check_clipping(pair)
