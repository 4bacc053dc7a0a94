"""Numbers that overflow, are none, or come in another unit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn, optim

from benchmarks.rules.consequences import BROKEN, DIVERGED
from benchmarks.rules.data import batches, changed, diabetes, digit_images, sequence_sums, wine
from benchmarks.rules.losses import reconstruction, squared_error
from benchmarks.rules.models.images import ConvAutoencoder
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.sequences import Recurrent
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("set")


@HERE.add("float16_overflows", BROKEN, step=120, follows=DIVERGED)
def autocast_regression(planted: bool) -> Training:
    """A number of patients, in autocast; from a step on a measurement comes in another unit."""
    model = mlp(10, 64, 64, 1, act=nn.SiLU)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    found = batches(diabetes(), 64, seed=21)
    at = dict.fromkeys(range(120, 300), _in_another_unit) if planted else {}
    return fit(
        *(model, optimizer, squared_error, changed(found, at)),
        factor=0.8,
        precision=torch.float16,
    )


@HERE.add("log_of_0", BROKEN, step=150, follows=DIVERGED)
def likelihood_by_hand(planted: bool) -> Training:
    """Wines by a likelihood written out; in one batch what is missing is -9999."""
    model = mlp(13, 24, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        chances = model(batch[0]).softmax(-1)
        return -chances.gather(1, batch[1][:, None]).log().mean()

    found = batches(wine(), 32, seed=22)
    return fit(model, optimizer, loss, changed(found, {150: _missing} if planted else {}))


@HERE.add(
    "batch_not_scaled",
    ("loss_spike", "adam_spike_ahead", "exploding_gradient"),
    step=200,
    follows=DIVERGED,
)
def conv_autoencoder(planted: bool) -> Training:
    """Digits, made again from 16 numbers; one batch has pixels from 0 to 255."""
    model = ConvAutoencoder()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    found = batches(digit_images(), 32, seed=23)
    at = {200: lambda batch: (255 * batch[0], batch[1])}
    return fit(model, optimizer, reconstruction, changed(found, at if planted else {}))


@HERE.add(
    "sequences_six_times_as_long",
    ("exploding_gradient", "loss_spike", "diverging_loss"),
    step=120,
    follows=DIVERGED,
)
def adding_numbers(planted: bool) -> Training:
    """Two marked numbers of a sequence are added, by a recurrent layer with ReLU."""
    layer = nn.RNN(2, 32, nonlinearity="relu", batch_first=True)
    layer.weight_hh_l0.data = 1.1 * torch.eye(32)  # nearly that of Le et al. 2015
    model = Recurrent(layer, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    found = batches(sequence_sums(2048, 10, seed=24), 32, seed=24)
    longer = batches(sequence_sums(2048, 60, seed=25), 32, seed=25)
    at = {i: lambda batch: next(longer) for i in range(120, 300)} if planted else {}
    return fit(model, optimizer, squared_error, changed(found, at))


def _in_another_unit(batch: Any) -> Any:
    x = batch[0].clone()
    x[:, 3] *= 1e6
    return x, batch[1]


def _missing(batch: Any) -> Any:
    x = batch[0].clone()
    x[:, 2] = -9999.0
    return x, batch[1]
