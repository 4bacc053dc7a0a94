"""Loops that train too little, leave a part out, wait, or train one of two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import torch
from torch import Tensor, nn, optim
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from benchmarks.rules.data import batches, counting, iris, wine
from benchmarks.rules.losses import cross_entropy, next_token
from benchmarks.rules.models.adapted import Lora
from benchmarks.rules.models.gan import LOSSES, N_NOISE, Adversaries
from benchmarks.rules.models.graph import Gcn, communities
from benchmarks.rules.models.paired import TwoTowers
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.sequences import Gpt
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("judge")


@HERE.add("clipped_at_0.002", ("always_clipped",), follows=("lr_low",))
def clipped_graph(planted: bool) -> Training:
    """Communities of a graph, with momentum and a limit to the gradient."""
    edges, x, y = communities(400, 4, seed=81)
    model = Gcn(edges, 16, 4)
    optimizer = optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    return fit(
        *(model, optimizer, cross_entropy, repeat((x, y))),
        clip=2e-3 if planted else 3.0,
    )


@HERE.add(
    "adapters_not_in_the_optimizer",
    ("untrained_adapter", "not_in_optimizer", "cut_off", "lr_low", "stale_probe"),
    follows=("exploding_gradient",),
)
def adapted_gpt(planted: bool) -> Training:
    """A GPT that counts by 1 to 5 is adapted to counting backwards, with its head."""
    model = Gpt(24, width=24, depth=1)
    _teach(model)
    model.requires_grad_(False)
    attention = model.blocks[0].get_submodule("attn")
    for name in ("qkv", "out"):
        base = attention.get_submodule(name)
        assert isinstance(base, nn.Linear)
        setattr(attention, name, Lora(base))
    model.head.requires_grad_(True)
    adapters = [] if planted else [p for p in attention.parameters() if p.requires_grad]
    optimizer = optim.Adam([*adapters, *model.head.parameters()], lr=5e-3)
    backwards = (ids.flip(1) for ids in counting(16, 16, seed=82))
    return fit(model, optimizer, next_token, backwards, factor=0.8)


@HERE.add(
    "branch_cut_off",
    ("stale_probe", "vanishing_gradient", "lr_low", "untrained_adapter", "cut_off"),
)
def two_towers(planted: bool) -> Training:
    """Wines by two halves of their measurements, in a loop that logs nothing."""
    model = TwoTowers(13, 3, cut=planted)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    return fit(model, optimizer, cross_entropy, batches(wine(), 16, seed=83), logs=False)


@HERE.add(
    "generator_cannot_reach",
    ("one_sided_gan",),
    follows=(
        *("vanishing_gradient", "exploding_gradient", "diverging_loss", "lr_high", "loss_spike"),
        "generator_behind",
    ),
)
def flower_gan(planted: bool) -> Training:
    """Measurements of flowers, made by one network and judged by another."""
    generator = nn.Sequential(mlp(N_NOISE, 48, 48, 4), nn.Sigmoid() if planted else nn.Identity())
    discriminator = mlp(4, 48, 48, 1, act=nn.LeakyReLU)
    of_g = optim.RMSprop(generator.parameters(), lr=2e-3)
    of_d = optim.RMSprop(discriminator.parameters(), lr=1e-3)
    watched: list[tuple[nn.Module, Optimizer]] = [(generator, of_g), (discriminator, of_d)]
    step = Adversaries(generator, discriminator, of_g, of_d)

    def error() -> float:
        noise = torch.randn(500, N_NOISE, generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            made: Tensor = generator(noise)
        return (made.T.cov() - iris()[0].T.cov()).square().mean().sqrt().item()

    found, factor = _with_noise(50), 0.9
    return Training(watched, step, found, 300, error=error, harm=error, factor=factor, parts=LOSSES)


@HERE.add("sorted_for_each_row", ("loader_bound",), step=0)
def flowers(planted: bool) -> Training:
    """Flowers, four numbers each, from a DataLoader."""
    model = mlp(4, 24, 3, act=nn.ReLU6)
    optimizer = optim.AdamW(model.parameters(), lr=5e-3)
    flowers = _Flowers(slow=planted)
    return fit(
        *(model, optimizer, cross_entropy, _epochs(DataLoader(flowers, 30, shuffle=True))),
        n_steps=150,
        harm=lambda: flowers.n_sorted,
    )


class _Flowers(Dataset[tuple[Tensor, Tensor]]):
    """Rows, and what is done to read one."""

    def __init__(self, *, slow: bool) -> None:
        self._slow, self._data, self.n_sorted = slow, iris(), 0.0

    def __len__(self) -> int:
        return len(self._data[0])

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        if self._slow:
            self.n_sorted += len(sorted(torch.rand(2500).tolist()))
        return self._data[0][i], self._data[1][i]


def _epochs(loader: DataLoader[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def _teach(model: Gpt) -> None:
    """Count, before anybody watches."""
    optimizer = optim.Adam(model.parameters(), 5e-3)
    for _, ids in zip(range(120), counting(16, 16, seed=80), strict=False):
        optimizer.zero_grad()
        next_token(model, ids).backward()
        optimizer.step()


def _with_noise(size: int) -> Iterator[tuple[Tensor, Tensor]]:
    drawn = torch.Generator().manual_seed(84)
    for found in batches(iris(), size, seed=84):
        yield found[0], torch.randn(size, N_NOISE, generator=drawn)
