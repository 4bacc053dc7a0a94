"""A discriminator that wins is told of, and healthy adversaries of other kinds are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp

RULE = "one_sided_gan"


class Losses(NamedTuple):
    """What the two want of the discriminator's answers."""

    of_d: Callable[[Tensor, Tensor], Tensor]
    of_g: Callable[[Tensor], Tensor]


ENTROPIES = Losses(
    lambda real, made: F.softplus(-real).mean() + F.softplus(made).mean(),
    lambda made: F.softplus(-made).mean(),
)
SQUARES = Losses(
    lambda real, made: ((real - 1).square().mean() + made.square().mean()) / 2,
    lambda made: (made - 1).square().mean() / 2,
)
HINGES = Losses(
    lambda real, made: F.relu(1 - real).mean() + F.relu(1 + made).mean(), lambda made: -made.mean()
)
SATURATING = Losses(ENTROPIES.of_d, lambda made: -F.softplus(made).mean())
CRITIC = Losses(lambda real, made: made.mean() - real.mean(), lambda made: -made.mean())


class Gan(nn.Module):
    """Points of a ring, by two perceptrons in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))


def alerts_of(
    losses: Losses, store: Path, seed: int = 0, *, rates: tuple[float, float] = (2e-3, 2e-3)
) -> nbp.alerts.Alerts:
    """Of 130 steps; the losses are logged as Lightning's examples do, and nothing is measured."""
    torch.manual_seed(seed)
    gan = Gan()
    parts = zip((gan.generator, gan.discriminator), rates, strict=True)
    of_g, of_d = (torch.optim.Adam(part.parameters(), lr, (0.5, 0.99)) for part, lr in parts)
    with nbp.watch(gan, of_g, store, probes=None, budget=None) as run:
        for _ in range(130):
            angle = 2 * torch.pi * torch.rand(64)
            real = 2 * torch.stack([angle.cos(), angle.sin()], -1) + 0.1 * torch.randn(64, 2)
            made = gan.generator(torch.randn(64, 4))
            d_loss = losses.of_d(gan.discriminator(real), gan.discriminator(made.detach()))
            of_d.zero_grad()
            d_loss.backward()
            of_d.step()
            if losses is CRITIC:
                for weight in gan.discriminator.parameters():
                    weight.data.clamp_(-0.1, 0.1)
            g_loss = losses.of_g(gan.discriminator(made))
            of_g.zero_grad()
            g_loss.backward()
            of_g.step()
            run.log(d_loss=d_loss.item(), g_loss=g_loss.item())
    return run.alerts


@pytest.mark.parametrize("losses", [ENTROPIES, SQUARES, HINGES, SATURATING])
def test_a_discriminator_that_wins_is_told_of(losses: Losses, tmp_path: Path) -> None:
    (alert,) = alerts_of(losses, tmp_path / "a.zarr", rates=(1e-5, 2e-2))
    assert (alert.rule, alert.module, alert.quantities) == (RULE, "(root)", ("d_loss", "g_loss"))
    assert alert.step < 130


@pytest.mark.parametrize("losses", [ENTROPIES, SQUARES, HINGES, CRITIC])
@pytest.mark.parametrize("seed", range(2))
def test_adversaries_that_are_equals_raise_no_alarm(
    losses: Losses, seed: int, tmp_path: Path
) -> None:
    assert list(alerts_of(losses, tmp_path / "a.zarr", seed)) == []


def test_a_critic_that_is_far_ahead_raises_none_either(tmp_path: Path) -> None:
    assert list(alerts_of(CRITIC, tmp_path / "a.zarr", rates=(1e-5, 2e-2))) == []
