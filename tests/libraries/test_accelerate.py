"""A loop of one's own on a watched model that accelerate prepares."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader

from tests.libraries.accelerators import new_accelerator
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

pytestmark = pytest.mark.libraries


def fit(
    model: nn.Module,
    folder: Path,
    accumulated: int = 1,
    clip: float | None = None,
    mixed_precision: str = "no",
    continues: bool = False,
) -> list[Optimizer]:
    """Train as accelerate's guide says, with a validation and a checkpoint after every epoch."""
    accelerator = new_accelerator(
        gradient_accumulation_steps=accumulated, mixed_precision=mixed_precision
    )
    own = AdamW(model.parameters(), lr=0.01)
    model, optimizer, training, validation, scheduler = accelerator.prepare(
        model,
        own,
        DataLoader(dataset(), BATCH_SIZE, shuffle=True),
        DataLoader(dataset(seed=1), BATCH_SIZE),
        StepLR(own, 5),
    )
    for epoch in range(N_EPOCHS):
        for inputs, classes in training:
            with accelerator.accumulate(model):
                accelerator.backward(F.cross_entropy(model(inputs), classes))
                if clip is not None and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for inputs, _ in validation:
                model(inputs)
        model.train()
        accelerator.save_state(folder / str(epoch))
        if continues:
            accelerator.load_state(folder / "0")
    accelerator.free_memory()
    return [own]


SCENARIOS = {
    "plain": Scenario(fit),
    "accumulation": Scenario(partial(fit, accumulated=3), THREES),
    "clipping": Scenario(partial(fit, clip=CLIP)),
    "clipping what was accumulated": Scenario(partial(fit, clip=CLIP, accumulated=3), THREES),
    "mixed precision": Scenario(partial(fit, mixed_precision="bf16")),
    "continued from a checkpoint": Scenario(partial(fit, continues=True)),
}


@pytest.fixture(scope="module", params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


@pytest.fixture(scope="module")
def pair(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return train_twice(classifier, scenario.fit, tmp_path_factory.mktemp("training"))


class TestAccelerate(TrainedTwice):
    """The model is watched before it is prepared."""


@pytest.mark.parametrize("scenario", ["clipping", "clipping what was accumulated"], indirect=True)
def test_a_gradient_is_recorded_as_it_was_clipped_and_as_it_was_before(pair: Pair) -> None:
    check_clipping(pair)
