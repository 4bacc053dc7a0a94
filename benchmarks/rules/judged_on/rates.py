"""Learning rates that are too high by themselves or by their loss, and one that is none."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.consequences import DIVERGED
from benchmarks.rules.data import batches, cancer, counting, digit_images
from benchmarks.rules.losses import cross_entropy, next_token
from benchmarks.rules.models.agents import Reinforce, episodes
from benchmarks.rules.models.images import cnn
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.sequences import Gpt
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("judge")
TOO_HIGH = ("early_divergence", "lr_high", "diverging_loss")


@HERE.add("losses_summed", TOO_HIGH, follows=DIVERGED)
def momentum_cnn(planted: bool) -> Training:
    """Digits by a convolutional network, momentum."""
    model = cnn(1, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        mean = cross_entropy(model, batch)
        return mean * len(batch[0]) if planted else mean

    return fit(model, optimizer, loss, batches(digit_images(), 64, seed=51))


@HERE.add("adamw_at_0.3", TOO_HIGH, follows=DIVERGED)
def counting_gpt(planted: bool) -> Training:
    """Numbers that count up, in autocast to bfloat16."""
    model = Gpt(24, width=24, depth=1)
    optimizer = optim.AdamW(model.parameters(), lr=0.3 if planted else 3e-3)
    return fit(
        *(model, optimizer, next_token, counting(8, 16, seed=52)),
        precision=torch.bfloat16,
        n_steps=180,
    )


@HERE.add("lr_of_1e-9", ("lr_low",))
def actor_and_critic(planted: bool) -> Training:
    """A pole on a cart, with a critic that shares the layers."""
    model = mlp(4, 48, 48, 3)
    optimizer = optim.RMSprop(model.parameters(), lr=1e-9 if planted else 2e-3)
    step = Reinforce(model, optimizer, n_episodes=2, values=lambda told: told[:, 2])
    return Training(
        [(model, optimizer)], step, episodes(seed=53), 160, error=step.error, harm=step.error
    )


@HERE.add(
    "gradient_ascent",
    (*TOO_HIGH, "exploding_gradient"),
    follows=(*DIVERGED, "always_clipped"),
)
def one_unit_head(planted: bool) -> Training:
    """Tumours by one logit, with weight decay."""
    model = mlp(30, 32, 1, act=nn.SiLU)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.binary_cross_entropy_with_logits(model(batch[0])[:, 0], batch[1].float())

    return fit(
        *(model, optimizer, loss, batches(cancer(), 32, seed=54)),
        backward=(lambda found: (-found).backward()) if planted else Tensor.backward,
    )
