"""Learning rates that are too high, jump, or go to nothing."""

from __future__ import annotations

import math
from itertools import repeat

from torch import nn, optim

from benchmarks.rules.consequences import DIVERGED
from benchmarks.rules.data import batches, digit_images, digits
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.models.agents import Reinforce, episodes
from benchmarks.rules.models.graph import Gcn, communities
from benchmarks.rules.models.images import FunctionalCnn
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("set")
TOO_HIGH = ("early_divergence", "lr_high", "diverging_loss")


@HERE.add("sgd_at_4", TOO_HIGH, follows=DIVERGED)
def large_batch_mlp(planted: bool) -> Training:
    """Digits, 512 at a time."""
    model = mlp(64, 128, 64, 10)
    optimizer = optim.SGD(model.parameters(), lr=4.0 if planted else 0.2)
    return fit(model, optimizer, cross_entropy, batches(digits(), 512, seed=1))


@HERE.add("adam_at_0.3", TOO_HIGH, follows=DIVERGED)
def functional_cnn(planted: bool) -> Training:
    """Digits by a network without modules for its activations, in a loop that logs nothing."""
    model = FunctionalCnn()
    optimizer = optim.Adam(model.parameters(), lr=0.3 if planted else 2e-3)
    return fit(model, optimizer, cross_entropy, batches(digit_images(), 64, seed=2), logs=False)


@HERE.add("cosine_ends_at_a_quarter", ("lr_low",), step=60)
def graph_network(planted: bool) -> Training:
    """Communities of a graph, all nodes at once."""
    edges, x, y = communities(300, 5, seed=3)
    model = Gcn(edges, 16, 5)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-2)
    n_steps = 60 if planted else 240

    def cosine(step: int) -> float:
        return 0.5 + 0.5 * math.cos(math.pi * min(step, n_steps) / n_steps)

    schedule = optim.lr_scheduler.LambdaLR(optimizer, cosine)
    return fit(
        *(model, optimizer, cross_entropy, repeat((x, y))),
        schedule=schedule,
    )


@HERE.add(
    "lr_times_100",
    (*TOO_HIGH, "exploding_gradient", "loss_spike", "adam_spike_ahead"),
    step=120,
    follows=DIVERGED,
)
def reinforced_cart(planted: bool) -> Training:
    """REINFORCE on a pole on a cart."""
    model = mlp(4, 32, 2, act=nn.Tanh)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)

    def jump() -> None:
        optimizer.param_groups[0]["lr"] *= 100

    step = Reinforce(model, optimizer, n_episodes=3, before={120: jump} if planted else {})
    return Training(
        [(model, optimizer)], step, episodes(seed=4), 200, error=step.error, harm=step.error
    )
