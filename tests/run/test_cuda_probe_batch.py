"""A probe batch on a CUDA device: its random generator too is left as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam

from tests.models import Encoder, Tagger, loss_of, made, words
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def draws(output: Any, targets: Any) -> Tensor:
    return loss_of(output) + 0 * torch.rand((), device="cuda")


def trained(model: nn.Module) -> list[Tensor]:
    """Weights and the state of the device's generator; a recurrent one drops no outputs."""
    torch.cuda.manual_seed(5)
    optimizer = Adam(model.train().parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model(words(step).cuda())).backward()
        optimizer.step()
    return [*model.parameters(), torch.cuda.get_rng_state()]


@pytest.mark.parametrize("build", [Encoder, Tagger])
def test_training_on_a_device_is_equal_bit_for_bit(
    build: Callable[[], nn.Module], watch: Watch
) -> None:
    plain, model = made(build).cuda(), made(build).cuda()
    run = watch(model, probes={"": ["sharpness", "sam_sharpness"], "head": ["feature_drift"]})
    run.probe_batch(words(9).cuda(), None, draws)
    pairs = zip(trained(plain), trained(model), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert np.isfinite(run.series("", "sharpness")).all()
    assert len(run.series("head", "feature_drift")) == 3
