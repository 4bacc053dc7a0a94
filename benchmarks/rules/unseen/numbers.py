"""Numbers that overflow, are none, come in another unit, or grow with every repetition."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.consequences import BROKEN, DIVERGED
from benchmarks.rules.data import batches, changed, diabetes, sequence_sums, wine
from benchmarks.rules.losses import cross_entropy, squared_error
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.points import Denoiser, roll
from benchmarks.rules.models.sequences import Recurrent
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("unseen")
Pair = tuple[Tensor, Tensor]


@HERE.add("root_of_less_than_0", BROKEN, step=120, follows=DIVERGED)
def denoised_spiral(planted: bool) -> Training:
    """The noise that was added to points of a spiral; a level is a little above 1."""
    model = Denoiser()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    drawn = torch.Generator().manual_seed(121)

    def with_level(batch: tuple[Tensor, ...]) -> Pair:
        return batch[0], torch.rand(len(batch[0]), 1, generator=drawn)

    def one_above(batch: Pair) -> Pair:
        batch[1][0] = 1.001
        return batch

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        x, level = batch
        noise = torch.randn(x.shape, generator=drawn)
        return F.mse_loss(model(level * x + (1 - level**2).sqrt() * noise, level), noise)

    found = map(with_level, batches(roll(2000, 121), 100, seed=121))
    at = {120: one_above} if planted else {}
    return fit(model, optimizer, loss, changed(found, at), factor=0.8)


@HERE.add("loss_times_2**24", BROKEN, follows=DIVERGED)
def scaled_by_hand(planted: bool) -> Training:
    """Wines in half precision, the loss multiplied so that small gradients are not lost."""
    model = mlp(13, 48, 48, 3)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    scale = 2.0**24 if planted else 2.0**10
    return fit(
        *(model, optimizer, cross_entropy, batches(wine(), 32, seed=122)),
        precision=torch.float16,
        backward=lambda loss: (scale * loss).backward(),
    )


@HERE.add(
    "targets_in_another_unit",
    ("loss_spike", "exploding_gradient"),
    step=200,
    follows=DIVERGED,
)
def median_of_patients(planted: bool) -> Training:
    """The median and the tenths of a number of patients; one batch has it in another unit."""
    model = mlp(10, 64, 64, 3, act=nn.SiLU)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    levels = torch.tensor([0.1, 0.5, 0.9])

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        missed = batch[1][:, None] - model(batch[0])
        return torch.maximum(levels * missed, (levels - 1) * missed).mean()

    def larger(batch: Pair) -> Pair:
        return batch[0], 1000 * batch[1]

    found = batches(diabetes(), 64, seed=123)
    at = {200: larger} if planted else {}
    return fit(model, optimizer, loss, changed(found, at), factor=0.9)


@HERE.add(
    "recurrent_weights_times_3",
    (
        *("exploding_gradient", "early_divergence", "diverging_loss", "lr_high"),
        *("gradient_too_long", *BROKEN),
    ),
    follows=DIVERGED,
)
def relu_rnn(planted: bool) -> Training:
    """Two marked numbers of a sequence are added, by a network of Elman's with ReLU."""
    layer = nn.RNN(2, 40, batch_first=True, nonlinearity="relu")
    again = layer.get_parameter("weight_hh_l0")
    nn.init.eye_(again)
    if planted:
        again.data *= 3
    model = Recurrent(layer, 1)
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    data = sequence_sums(2048, 16, seed=124)
    return fit(model, optimizer, squared_error, batches(data, 32, seed=124), clip=1.0)
