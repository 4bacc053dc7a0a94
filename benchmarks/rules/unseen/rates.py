"""Learning rates that are too high, from the first step or later, and one that ends at 0."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.consequences import BROKEN, DIVERGED
from benchmarks.rules.data import N_CHARACTERS, batches, iris, text_batches
from benchmarks.rules.losses import cross_entropy, next_token
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.points import Flow, moons
from benchmarks.rules.models.q_values import N_PLACES, QLoss, error_of, walks
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("unseen")
TOO_HIGH = ("early_divergence", "lr_high", "diverging_loss")


@HERE.add("nadam_at_3", TOO_HIGH, follows=DIVERGED)
def moons_with_dropout(planted: bool) -> Training:
    """Two half circles, by layers with dropout."""
    parts = (nn.Linear(2, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 48), nn.ReLU())
    model = nn.Sequential(*parts, nn.Dropout(0.2), nn.Linear(48, 2))
    optimizer = optim.NAdam(model.parameters(), lr=3.0 if planted else 5e-3)
    return fit(model, optimizer, cross_entropy, batches(moons(1000, 101), 50, seed=101))


@HERE.add("adam_at_1", (*TOO_HIGH, *BROKEN), follows=DIVERGED)
def flowing_moons(planted: bool) -> Training:
    """The density of two half circles, by affine couplings."""
    model = Flow()
    optimizer = optim.Adam(model.parameters(), lr=1.0 if planted else 3e-3)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return -model(batch[0]).mean()

    return fit(model, optimizer, loss, batches(moons(2000, 102), 100, seed=102), factor=0.9)


@HERE.add("schedule_ends_at_0", ("lr_low",), step=60, follows=("vanishing_gradient",))
def tied_gru(planted: bool) -> Training:
    """Text, character by character, with one matrix for what is read and what is said."""
    model = _TiedGru(N_CHARACTERS, 48)
    optimizer = optim.Adam(model.parameters(), lr=4e-3)
    last = 60 if planted else 10_000
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(step < last))
    return fit(
        *(model, optimizer, next_token, text_batches(12, 24, seed=103)),
        clip=1.0,
        schedule=schedule,
        factor=0.85,
    )


@HERE.add("lr_times_300", TOO_HIGH, step=120, follows=DIVERGED)
def corridor(planted: bool) -> Training:
    """What the places of a corridor are worth, by Q-learning with a copy that follows."""
    model = mlp(N_PLACES, 48, 2)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)

    def jump() -> None:
        optimizer.param_groups[0]["lr"] *= 300

    return fit(
        *(model, optimizer, QLoss(model), walks(64, seed=104)),
        before={120: jump} if planted else {},
        error=lambda: error_of(model),
        harm=lambda: error_of(model),
    )


@HERE.add("lbfgs_at_20", TOO_HIGH, follows=DIVERGED)
def flowers_by_lbfgs(planted: bool) -> Training:
    """Flowers, all of them in each step, by an optimizer that asks for the loss itself."""
    model = mlp(4, 16, 3, act=nn.Tanh)
    optimizer = optim.LBFGS(model.parameters(), lr=20.0 if planted else 0.05, max_iter=4)
    x, y = iris()

    def step(i: int, batch: Any) -> tuple[float]:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch[0]), batch[1])
            loss.backward()
            return loss

        return (optimizer.step(closure).item(),)

    return Training([(model, optimizer)], step, batches((x, y), 150, seed=105), 150)


class _TiedGru(nn.Module):
    def __init__(self, n_tokens: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(n_tokens, width)
        self.rnn, self.head = nn.GRU(width, width, batch_first=True), nn.Linear(width, n_tokens)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.1)

    def forward(self, ids: Tensor) -> Tensor:
        told: Tensor = self.head(self.rnn(self.tokens(ids))[0])
        return told
