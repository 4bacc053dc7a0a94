"""Two optimizers of one LightningModule, stepped by its own training step."""

from __future__ import annotations

import lightning
import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.utils.data import DataLoader

from tests.libraries.trained_twice import BATCH_SIZE, CLIP, N_BATCHES, dataset
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning asks torch so
]


class TwoNetworks(lightning.LightningModule):
    """Trains one after the other or both at once, each clipped by itself."""

    def __init__(self, at_once: bool) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.at_once = at_once
        self.first, self.second = nn.Linear(6, 3), nn.Linear(6, 3)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        inputs, _ = batch
        networks = list(zip((self.first, self.second), self.optimizers(), strict=True))
        if self.at_once:
            for network, optimizer in networks:
                self._learn(network, optimizer, inputs)
            for _, optimizer in networks:
                optimizer.step()
        else:
            for network, optimizer in networks:
                self._learn(network, optimizer, inputs)
                optimizer.step()

    def _learn(self, network: nn.Module, optimizer: Optimizer, inputs: Tensor) -> None:
        optimizer.zero_grad()
        self.manual_backward(network(inputs).square().mean())
        self.clip_gradients(optimizer, CLIP, "norm")

    def configure_optimizers(self) -> list[Optimizer]:
        return [SGD(network.parameters(), lr=0.1) for network in (self.first, self.second)]


def fit(model: lightning.LightningModule) -> dict[str, bytes]:
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(7)
    trainer.fit(model, DataLoader(dataset(), BATCH_SIZE))
    return everything(model, trainer.optimizers)


def gradients(data: xr.Dataset, network: str) -> list[float]:
    """The recorded size of a network's gradient, NaN at steps that were not its own."""
    values: list[float] = data.grad_norm.sel(module=network).values.tolist()
    return values


def trained(at_once: bool, watch: Watch) -> xr.Dataset:
    alone, watched = (made(lambda: TwoNetworks(at_once)) for _ in range(2))
    run = watch(watched)
    assert differing(fit(alone), fit(watched)) == []
    assert run.status().errors == ()
    return run.data.load()


def test_networks_that_alternate_have_a_step_each(watch: Watch) -> None:
    data = trained(at_once=False, watch=watch)
    assert data.step.values.tolist() == list(range(2 * N_BATCHES))
    np.testing.assert_allclose(gradients(data, "first"), [CLIP, np.nan] * N_BATCHES, rtol=1e-4)
    np.testing.assert_allclose(gradients(data, "second"), [np.nan, CLIP] * N_BATCHES, rtol=1e-4)


def test_networks_that_are_stepped_together_share_a_step(watch: Watch) -> None:
    data = trained(at_once=True, watch=watch)
    assert data.step.values.tolist() == list(range(N_BATCHES))
    for network in ("first", "second"):
        np.testing.assert_allclose(gradients(data, network), [CLIP] * N_BATCHES, rtol=1e-4)
