"""Layers that are unused, pruned, rounded, normalized, repeated, left out, or of few bits."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune

from benchmarks.rules.data import batches, counting, digit_images, digits, wine
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.models.images import cnn
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.practice import FewBits, Flow, Pooled, SkippingMlp, Writer
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("practice")
Pair = tuple[Tensor, Tensor]


@HERE.healthy
def unused_pooler() -> Training:
    """The step of a row of numbers, from the mean of its tokens; a pooler is not used."""
    model = Pooled(24, 5)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)

    def loss(model: nn.Module, ids: Tensor) -> Tensor:
        return F.cross_entropy(model(ids)[0], (ids[:, 1] - ids[:, 0] - 1) % 24)

    return fit(model, optimizer, loss, counting(64, 7, seed=241), factor=0.9)


@HERE.healthy
def pruned_digits() -> Training:
    """Four of five weights are pruned, and the rest is trained on."""
    model = mlp(64, 128, 128, 10)
    for layer in model:
        if isinstance(layer, nn.Linear):
            prune.random_unstructured(layer, "weight", 0.8)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=242))


@HERE.healthy
def normalized_weights() -> Training:
    """Wines, by a layer with weight norm and one with spectral norm."""
    model = mlp(13, 48, 48, 3)
    parametrizations.weight_norm(model[0])
    parametrizations.spectral_norm(model[2])
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    return fit(model, optimizer, cross_entropy, batches(wine(), 48, seed=243))


@HERE.healthy
def four_bits() -> Training:
    """Digits, by weights that are rounded to four bits in every forward."""
    model = nn.Sequential(FewBits(64, 64), nn.ReLU(), FewBits(64, 10))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=244))


@HERE.healthy
def one_block_twelve_times() -> Training:
    """Digits, by one block that moves a state twelve times."""
    model = Flow(64, 10)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=245))


@HERE.healthy
def blocks_left_out() -> Training:
    """Digits, by eight blocks of which a third is left out of each step."""
    model = SkippingMlp(64, 48, 8, 10)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=246))


@HERE.healthy
def half_of_the_bits() -> Training:
    """Digits, all weights in bfloat16, in which small updates round away."""
    model = cnn(1, 10).bfloat16()
    optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        return F.cross_entropy(model(batch[0].bfloat16()).float(), batch[1])

    return fit(model, optimizer, loss, batches(digit_images(), 64, seed=247))


@HERE.healthy
def sums_modulo_23() -> Training:
    """The sum of two numbers on a circle, learnt by heart first, with strong decay."""
    model = nn.Sequential(nn.Embedding(23, 32), nn.Flatten(), *mlp(64, 128, 23))
    optimizer = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1.0)
    pairs = torch.cartesian_prod(torch.arange(23), torch.arange(23))
    known = pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(248))[:300]]
    return fit(model, optimizer, cross_entropy, batches((known, known.sum(-1) % 23), 100, seed=248))


@HERE.healthy
def padded_and_copied() -> Training:
    """Numbers of several lengths, written once more, by torch's encoder and decoder."""
    model = Writer(12)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    drawn = torch.Generator().manual_seed(249)

    def rows() -> Iterator[Tensor]:
        while True:
            ids = torch.randint(2, 12, (32, 8), generator=drawn)
            length = torch.randint(3, 9, (32, 1), generator=drawn)
            yield ids.masked_fill(torch.arange(8) >= length, 0)

    def loss(model: nn.Module, ids: Tensor) -> Tensor:
        before = F.pad(ids[:, :-1], (1, 0), value=1)
        told = model(ids, before)
        return F.cross_entropy(told.flatten(0, 1), ids.flatten(), ignore_index=0)

    return fit(model, optimizer, loss, rows(), factor=0.9)
