"""A WGAN whose critic is kept smooth by a gradient in its loss (arXiv:1704.00028)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import grad
from torch.optim import Adam

from tests.libraries.loops.witnessed import (
    Wanted,
    check,
    in_double,
    outputs_of,
    train_beside_a_twin,
)
from tests.models import made
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

pytestmark = pytest.mark.libraries

N_UPDATES, N_CRITIC, SIZE = 3, 3, 16
ADAM = partial(Adam, lr=1e-3, betas=(0.0, 0.9))


class Gan(nn.Module):
    """Two networks that learn from each other."""

    def __init__(self) -> None:
        super().__init__()
        first, last = [nn.Linear(2, 16), nn.LeakyReLU(0.2)], [nn.ELU(), nn.Linear(16, 1)]
        self.critic = nn.Sequential(*first, nn.Linear(16, 16), *last)
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(inplace=True), nn.Linear(16, 2))

    def loss_of_generator(self, noise: Tensor) -> Tensor:
        return -self.critic(self.generator(noise)).mean()


def loss_of(critic: nn.Module, real: Tensor, fake: Tensor, share: Tensor) -> Tensor:
    """The critic's, as everybody writes it."""
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    scores = critic(mixed)
    (slope,) = grad(scores, mixed, torch.ones_like(scores), create_graph=True, retain_graph=True)
    penalty = (slope.norm(2, dim=1) - 1).square().mean()
    return critic(fake).mean() - critic(real).mean() + 10 * penalty


def batch_for(generator: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    fake = generator(torch.randn(SIZE, 4)).detach()
    return torch.randn(SIZE, 2) / 2 + 1, fake, torch.rand(SIZE, 1)


def wanted_of_critic(critic: nn.Module, batch: tuple[Tensor, ...]) -> Wanted:
    """The derivatives of the whole loss by what each layer gave.

    A penalty sends nothing through the output of the call that it is of: of the last layer there
    are two gradients, of means.
    """
    twin = in_double(critic)
    layers = {name: outputs_of(layer) for name, layer in twin.named_children()}
    loss = loss_of(twin, *(part.double() for part in batch))
    wanted: Wanted = {("(root)", "inner_backwards"): 1}
    for name, outputs in layers.items():
        slopes = grad(loss, outputs, retain_graph=True, allow_unused=True)
        wanted[name, "output_grad_norm"] = norm_of(*(one for one in slopes if one is not None))
        wanted[name, "output_norm"] = norm_of(*outputs)
        wanted[name, "calls"] = 3
    assert wanted["4", "output_grad_norm"] == pytest.approx((2 / SIZE) ** 0.5)
    names, parameters = zip(*twin.named_parameters(), strict=True)
    for name, slope in zip(names, grad(loss, parameters), strict=True):
        wanted[name, "grad_norm"] = norm_of(slope)
    return wanted


def wanted_of_generator(gan: Gan, noise: Tensor) -> Wanted:
    twin = in_double(gan)
    pictures = outputs_of(twin.generator)
    loss = twin.loss_of_generator(noise.double())
    slope, *of_layer = grad(loss, [*pictures, *twin.generator[0].parameters()])
    return {
        ("2", "output_norm"): norm_of(*pictures),
        ("2", "output_grad_norm"): norm_of(slope),
        ("2", "calls"): 1,
        ("0", "grad_norm"): norm_of(*of_layer),
    }


def train_critic(gan: Gan) -> Iterator[Wanted]:
    """For pictures of a generator that stays as it is."""
    optimizer = ADAM(gan.critic.parameters())
    for _ in range(N_UPDATES * N_CRITIC):
        wanted = wanted_of_critic(gan.critic, batch := batch_for(gan.generator))
        optimizer.zero_grad()
        loss_of(gan.critic, *batch).backward()
        optimizer.step()
        yield wanted


def train_both(gan: Gan) -> Iterator[Wanted]:
    """The critic several times as often as the generator, of whose updates this tells."""
    of_critic, of_generator = ADAM(gan.critic.parameters()), ADAM(gan.generator.parameters())
    for _ in range(N_UPDATES):
        for _ in range(N_CRITIC):
            of_critic.zero_grad()
            loss_of(gan.critic, *batch_for(gan.generator)).backward()
            of_critic.step()
        wanted = wanted_of_generator(gan, noise := torch.randn(SIZE, 4))
        of_generator.zero_grad()
        gan.loss_of_generator(noise).backward()
        of_generator.step()
        yield wanted


def test_of_a_penalised_critic_the_gradients_of_its_loss_are_recorded(watch: Watch) -> None:
    alone, gan = made(Gan), made(Gan)
    run = watch(gan.critic, probes=["default", "gradients"])
    run.attach([name for name, _ in gan.critic.named_parameters()], "grad_norm")
    check(run, train_beside_a_twin(train_critic, alone, gan))


def test_of_a_generator_only_the_pictures_that_it_learns_from_are_recorded(watch: Watch) -> None:
    """Not those that were made for the critic; both networks are watched."""
    alone, gan = made(Gan), made(Gan)
    watch(gan.critic)
    run = watch(gan.generator)
    check(run, train_beside_a_twin(train_both, alone, gan))
