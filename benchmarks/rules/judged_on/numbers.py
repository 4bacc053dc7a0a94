"""Numbers that are none, and targets that come in another unit."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn, optim

from benchmarks.rules.consequences import BROKEN, DIVERGED
from benchmarks.rules.data import batches, changed, digits, ratings, sequence_sums
from benchmarks.rules.losses import squared_error
from benchmarks.rules.models.paired import Factors, margin
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.sequences import Recurrent
from benchmarks.rules.models.variational import Vae, evidence
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("judge")


@HERE.add("one_pixel_is_nan", BROKEN, step=130, follows=DIVERGED)
def variational_digits(planted: bool) -> Training:
    """Digits by a variational autoencoder."""
    model = Vae()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    at = {130: _without_a_pixel} if planted else {}
    return fit(
        *(model, optimizer, evidence, changed(batches(digits(), 64, seed=71), at)),
        factor=0.85,
    )


@HERE.add("root_of_0", BROKEN, step=110, follows=DIVERGED)
def siamese_digits(planted: bool) -> Training:
    """Pairs of digits, drawn near or pushed apart; one pair is an image and itself."""
    x, y = digits()
    drawn = torch.Generator().manual_seed(72)
    first, second = torch.randint(0, len(x), (2, 6000), generator=drawn)
    differ = first != second
    first, second = first[differ], second[differ]
    pairs = batches((x[first], x[second], y[first] == y[second]), 96, seed=72)
    model = mlp(64, 48, 8, act=nn.Tanh)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    at = {110: _with_itself} if planted else {}
    return fit(model, optimizer, margin, changed(pairs, at))


@HERE.add(
    "ratings_in_per_cent",
    ("adam_spike_ahead", "loss_spike", "exploding_gradient", "diverging_loss"),
    step=200,
    follows=DIVERGED,
)
def embedded_ratings(planted: bool) -> Training:
    """What users think of items, by embeddings."""
    model = Factors(60, 40)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    at = dict.fromkeys(range(200, 300), _in_per_cent) if planted else {}
    found = changed(batches(ratings(4096, seed=73), 128, seed=73), at)
    return fit(model, optimizer, squared_error, found)


@HERE.add(
    "gradients_never_zeroed",
    ("uncleared_gradients", "exploding_gradient", "diverging_loss", "early_divergence", "lr_high"),
    follows=(*DIVERGED, "always_clipped"),
)
def gru_sums(planted: bool) -> Training:
    """Two marked numbers are added by a GRU."""
    model = Recurrent(nn.GRU(2, 24, batch_first=True), 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    data = sequence_sums(1024, 10, seed=74)
    return fit(
        *(model, optimizer, squared_error, batches(data, 64, seed=74)),
        prepare=_leave if planted else optim.Optimizer.zero_grad,
    )


def _leave(optimizer: optim.Optimizer) -> None:
    """Gradients stay as they are, and the next ones are added."""


def _without_a_pixel(batch: Any) -> Any:
    x = batch[0].clone()
    x[3, 20] = torch.nan
    return x, batch[1]


def _with_itself(batch: Any) -> Any:
    first, second, alike = batch
    return torch.cat([second[:1], first[1:]]), second, alike.index_fill(0, torch.tensor(0), True)


def _in_per_cent(batch: Any) -> Any:
    return batch[0], 100 * batch[1]
