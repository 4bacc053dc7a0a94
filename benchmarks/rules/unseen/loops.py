"""Loops that train too little, leave a part out, add up too much, or train one of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.consequences import DIVERGED
from benchmarks.rules.data import batches, digits
from benchmarks.rules.losses import cross_entropy, reconstruction, squared_error
from benchmarks.rules.models.experts import Autoencoder, Experts, Translator
from benchmarks.rules.models.gan import LOSSES, N_NOISE
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.points import roll
from benchmarks.rules.models.waves import Sine
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("unseen")
LEFT_OUT = (
    "untrained_adapter",
    "not_in_optimizer",
    "cut_off",
    "vanishing_gradient",
    "lr_low",
    "stale_probe",
)


@HERE.add("clipped_at_0.0001", ("always_clipped",), follows=("lr_low",))
def reversed_numbers(planted: bool) -> Training:
    """Numbers are written backwards, by one LSTM that reads and one that writes."""
    model = Translator(8)
    optimizer = optim.SGD(model.parameters(), lr=1.0)

    def loss(model: nn.Module, ids: Tensor) -> Tensor:
        wanted = ids.flip(1)
        before = F.pad(wanted[:, :-1], (1, 0), value=8)
        return F.cross_entropy(model(ids, before).flatten(0, 1), wanted.flatten())

    return fit(
        *(model, optimizer, loss, _numbers(32, 4)),
        clip=1e-4 if planted else 5.0,
        factor=0.9,
    )


@HERE.add("code_detached", LEFT_OUT)
def twelve_numbers(planted: bool) -> Training:
    """Digits, made again from twelve numbers, in a loop that logs nothing."""
    model = Autoencoder(detached=planted)
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    return fit(model, optimizer, reconstruction, batches(digits(), 64, seed=132), logs=False)


@HERE.add("expert_never_chosen", LEFT_OUT)
def four_experts(planted: bool) -> Training:
    """Digits by the two of four networks that a gate prefers."""
    model = Experts(64, 10)
    if planted:
        model.gate.bias.data[3] = -1e4
    optimizer = optim.Adamax(model.parameters(), lr=5e-3)
    x, _ = digits()

    def unused() -> float:
        with torch.no_grad():
            chosen: Tensor = model.gate(x).topk(2).indices
        return (chosen != 3).all(-1).float().mean().item()

    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=133), harm=unused)


@HERE.add("gradients_added_up", ("uncleared_gradients",), follows=DIVERGED)
def painted_digit(planted: bool) -> Training:
    """How bright each place of a picture is, by sines."""
    model = nn.Sequential(Sine(2, 48, 10.0), Sine(48, 48, 1.0), nn.Linear(48, 1))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    axis = torch.linspace(-1, 1, 8)
    places = torch.cartesian_prod(axis, axis)
    prepare = (lambda _: None) if planted else Optimizer.zero_grad
    batch = places, digits()[0][0]
    return fit(model, optimizer, squared_error, repeat(batch), prepare=prepare)


@HERE.add(
    "generator_hardly_trains",
    ("one_sided_gan", "generator_behind"),
    follows=("vanishing_gradient", "exploding_gradient", "diverging_loss", "lr_high", "loss_spike"),
)
def spiral_gan(planted: bool) -> Training:
    """Points of a spiral, by two networks that lose squares."""
    generator = mlp(N_NOISE, 48, 48, 2)
    discriminator = mlp(2, 48, 48, 1, act=lambda: nn.LeakyReLU(0.2))
    of_g = optim.Adam(generator.parameters(), lr=1e-6 if planted else 2e-3, betas=(0.5, 0.99))
    of_d = optim.Adam(discriminator.parameters(), lr=5e-3 if planted else 1e-3, betas=(0.5, 0.99))
    watched: list[tuple[nn.Module, Optimizer]] = [(generator, of_g), (discriminator, of_d)]

    def step(i: int, batch: Any) -> Sequence[float]:
        real, noise = batch
        made = generator(noise)
        judged = (discriminator(real) - 1).square().mean() / 2
        judged = judged + discriminator(made.detach()).square().mean() / 2
        of_d.zero_grad()
        judged.backward()
        of_d.step()
        fooled = (discriminator(made) - 1).square().mean() / 2
        of_g.zero_grad()
        fooled.backward()
        of_g.step()
        return fooled.item(), judged.item()

    (points,) = roll(2000, 135)

    def error() -> float:
        noise = torch.randn(500, N_NOISE, generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            made: Tensor = generator(noise)
        return (made.T.cov() - points.T.cov()).square().mean().sqrt().item()

    return Training(watched, step, _with_noise(points), 300, error=error, harm=error, parts=LOSSES)


def _with_noise(points: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    drawn = torch.Generator().manual_seed(135)
    for (found,) in batches((points,), 64, seed=135):
        yield found, torch.randn(64, N_NOISE, generator=drawn)


def _numbers(size: int, length: int) -> Iterator[Tensor]:
    drawn = torch.Generator().manual_seed(131)
    while True:
        yield torch.randint(0, 8, (size, length), generator=drawn)
