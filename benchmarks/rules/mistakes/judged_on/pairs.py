"""Mistakes in trainings of networks with two ways through."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.data import batches, cancer
from benchmarks.rules.mistakes.errors import misread
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_HIGH, UNHEALTHY
from benchmarks.rules.models.paired import TwoTowers
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("mistakes_judge")


@HERE.each(
    cause("one_tower_in_the_optimizer", *LEFT_OUT, follows=UNHEALTHY),
    cause("labels_drawn_anew", "loss_at_chance", follows=UNHEALTHY),
    cause("labels_all_the_same", "nothing_to_learn", "constant_targets", follows=UNHEALTHY),
    cause("rate_of_30", *TOO_HIGH, follows=UNHEALTHY),
)
def two_halves(mistake: str) -> Training:
    """Tumors by two networks, each of which reads a part of the measurements."""
    model = TwoTowers(30, 2, cut=False)
    trained: list[nn.Module] = [model.left, model.right, model.head]
    if mistake == "one_tower_in_the_optimizer":
        trained.remove(model.right)
    rate = 30.0 if mistake == "rate_of_30" else 0.1
    optimizer = optim.SGD([p for module in trained for p in module.parameters()], lr=rate)
    x, y = cancer()
    drawn = torch.Generator().manual_seed(251)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        wanted = batch[1]
        if mistake == "labels_drawn_anew":
            wanted = torch.randint(0, 2, wanted.shape, generator=drawn)
        if mistake == "labels_all_the_same":
            wanted = torch.ones_like(wanted)
        return F.cross_entropy(model(batch[0]), wanted)

    wrong = misread(model, (x, y))
    return fit(
        *(model, optimizer, loss, batches((x, y), 32, seed=251)),
        error=wrong,
        harm=wrong,
        factor=0.9,
    )
