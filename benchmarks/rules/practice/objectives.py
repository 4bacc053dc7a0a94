"""Losses that are small, negative, sparse, of second order, or of a network against itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.data import batches, cancer, digits
from benchmarks.rules.losses import cross_entropy, evaluated
from benchmarks.rules.models.gan import N_NOISE
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.points import roll
from benchmarks.rules.models.practice import Codebook, Predicted, Recommended
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("practice")
Pair = tuple[Tensor, Tensor]


@HERE.healthy
def predicted_views() -> Training:
    """Two views of a digit, one predicted from the other, whose gradient is stopped (SimSiam)."""
    model = Predicted(mlp(64, 64, 64, 32, norm=True), mlp(32, 16, 32, norm=True))
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    drawn = torch.Generator().manual_seed(201)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        noise = 0.1 * torch.randn(2, *batch[0].shape, generator=drawn)
        (p1, z1), (p2, z2) = (model(batch[0] + part) for part in noise)
        apart = F.cosine_similarity(p1, z2.detach()) + F.cosine_similarity(p2, z1.detach())
        return -apart.mean() / 2

    x, _ = digits()

    def error() -> float:
        with torch.no_grad():
            return 1 + loss(model, (x[:512], x)).item()

    return fit(model, optimizer, loss, batches(digits(), 128, seed=201), error=error)


@HERE.healthy
def distilled_digits() -> Training:
    """A small network learns the softened answers of a large one."""
    teacher = mlp(64, 128, 10)
    of_teacher = optim.Adam(teacher.parameters(), lr=1e-2)
    for _ in range(60):
        of_teacher.zero_grad()
        cross_entropy(teacher, digits()).backward()
        of_teacher.step()
    model = mlp(64, 16, 10)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        with torch.no_grad():
            taught = (teacher(batch[0]) / 4).softmax(-1)
        told = (model(batch[0]) / 4).log_softmax(-1)
        return 16 * F.kl_div(told, taught, reduction="batchmean") + cross_entropy(model, batch)

    return fit(model, optimizer, loss, batches(digits(), 64, seed=202))


@HERE.healthy
def critic_with_penalty() -> Training:
    """Points of a spiral, by a critic whose slope is held at 1 (WGAN-GP), five times as often."""
    generator, critic = mlp(N_NOISE, 48, 48, 2), mlp(2, 48, 48, 1)
    of_g = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
    of_c = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    watched: list[tuple[nn.Module, Optimizer]] = [(generator, of_g), (critic, of_c)]
    drawn = torch.Generator().manual_seed(203)
    (points,) = roll(2000, 203)

    def judge(real: Tensor) -> Tensor:
        with torch.no_grad():
            made: Tensor = generator(torch.randn(len(real), N_NOISE, generator=drawn))
        between = torch.lerp(made, real, torch.rand(len(real), 1, generator=drawn))
        between.requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        apart = critic(made).mean() - critic(real).mean()
        return apart + 10 * (slope.norm(dim=-1) - 1).square().mean()

    def step(i: int, batches: Sequence[Tensor]) -> Sequence[float]:
        for real in batches:
            of_c.zero_grad()
            (judged := judge(real)).backward()
            of_c.step()
        of_g.zero_grad()
        made = generator(torch.randn(64, N_NOISE, generator=drawn))
        (fooled := -critic(made).mean()).backward()
        of_g.step()
        return fooled.item(), judged.item()

    def error() -> float:
        noise = torch.randn(500, N_NOISE, generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            made: Tensor = generator(noise)
        return (made.T.cov() - points.T.cov()).square().mean().sqrt().item()

    return Training(
        watched, step, _five(batches((points,), 64, seed=203)), 240, error=error, factor=0.9
    )


def _five(found: Iterator[tuple[Tensor, ...]]) -> Iterator[list[Tensor]]:
    while True:
        yield [next(found)[0] for _ in range(5)]


@HERE.healthy
def two_branches() -> Training:
    """A number that may be either root, by three normal distributions; the loss falls below 0."""
    model = mlp(1, 48, 48, 9, act=nn.Tanh)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    drawn = torch.Generator().manual_seed(204)
    x = torch.rand(2000, 1, generator=drawn)
    sign = 2.0 * torch.randint(0, 2, (2000, 1), generator=drawn) - 1
    y = sign * x.sqrt() + 0.03 * torch.randn(2000, 1, generator=drawn)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        mix, mean, scale = model(batch[0]).chunk(3, -1)
        parts = torch.distributions.Normal(mean, scale.exp()).log_prob(batch[1])
        return -(parts + mix.log_softmax(-1)).logsumexp(-1).mean()

    def error() -> float:
        with torch.no_grad():
            return math.exp(loss(model, (x, y)).item())

    return fit(model, optimizer, loss, batches((x, y), 100, seed=204), error=error)


@HERE.healthy
def coded_digits() -> Training:
    """Digits from the nearest of 32 codes, with a straight-through gradient (VQ-VAE)."""
    model = Codebook(mlp(64, 64, 16), mlp(16, 64, 64), n_codes=32, width=4)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        made, kept = model(batch[0])
        return F.mse_loss(made, batch[0]) + kept

    return fit(model, optimizer, loss, batches(digits(), 64, seed=205))


@HERE.healthy
def hardest_triplets() -> Training:
    """Digits of a kind drawn together, of the hardest triplets of a batch; many cost nothing."""
    model = mlp(64, 64, 16)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        found = F.normalize(model(batch[0]), dim=-1)
        apart, alike = torch.cdist(found, found), batch[1][:, None] == batch[1]
        far = apart.masked_fill(~alike, 0.0).amax(-1)
        near = apart.masked_fill(alike, 9.0).amin(-1)
        return F.relu(far - near + 0.2).mean()

    return fit(model, optimizer, loss, batches(digits(), 64, seed=206))


@HERE.healthy
def rare_positives() -> Training:
    """Points in a small square, one of thirty, are found by the focal loss."""
    model = mlp(2, 48, 48, 1)
    nn.init.constant_(model[-1].get_parameter("bias"), -3.4)  # as rare as they are
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x = 2 * torch.rand(6000, 2, generator=torch.Generator().manual_seed(207)) - 1
    y = ((x - 0.2).abs() < 0.18).all(-1).float()

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        told = model(batch[0])[:, 0]
        missed = F.binary_cross_entropy_with_logits(told, batch[1], reduction="none")
        sure = (-missed).exp()
        return ((1 - sure).square() * missed).sum() / batch[1].sum().clamp(min=1)

    return fit(model, optimizer, loss, batches((x, y), 256, seed=207))


@HERE.healthy
def ranked_items() -> Training:
    """Preferences between items, by sparse embeddings: most rows have no gradient (BPR)."""
    drawn = torch.Generator().manual_seed(208)
    tastes, kinds = torch.randn(300, 4, generator=drawn), torch.randn(200, 4, generator=drawn)
    model = Recommended(300, 200)
    optimizer = optim.SparseAdam(list(model.parameters()), lr=2e-2)

    def loss(model: nn.Module, batch: tuple[Tensor]) -> Tensor:
        return -F.logsigmoid(model(batch[0])).mean()

    user = torch.randint(0, 300, (8000,), generator=drawn)
    items = torch.randint(0, 200, (8000, 2), generator=drawn)
    worth = (tastes[user, None] * kinds[items]).sum(-1)
    items = items.gather(-1, worth.argsort(descending=True))
    triples = torch.cat([user[:, None], items], -1)
    return fit(model, optimizer, loss, batches((triples,), 256, seed=208))


@HERE.healthy
def cooling_rod() -> Training:
    """The heat equation: its second derivative, its edges and its beginning are the loss (PINN)."""
    model = mlp(2, 32, 32, 1, act=nn.Tanh)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    drawn = torch.Generator().manual_seed(209)

    def points() -> Iterator[Tensor]:
        while True:
            yield torch.rand(128, 2, generator=drawn)

    def loss(model: nn.Module, places: Tensor) -> Tensor:
        places = places.clone().requires_grad_()
        (slopes,) = torch.autograd.grad(model(places).sum(), places, create_graph=True)
        (curves,) = torch.autograd.grad(slopes[:, 0].sum(), places, create_graph=True)
        x, t = places.detach().unbind(-1)
        begins = model(torch.stack([x, 0 * x], -1))[:, 0] - (math.pi * x).sin()
        edges = model(torch.stack([x.round(), t], -1))[:, 0]
        inside = slopes[:, 1] - 0.1 * curves[:, 0]
        return inside.square().mean() + begins.square().mean() + edges.square().mean()

    return fit(model, optimizer, loss, points())


@HERE.healthy
def weighted_tumours() -> Training:
    """Tumours, each class with a weight, labels smoothed, until hardly anything is missed."""
    model = mlp(30, 32, 2)
    optimizer = optim.NAdam(model.parameters(), lr=5e-3)
    weights = torch.tensor([1.6, 0.8])

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1], weights, label_smoothing=0.05)

    error = evaluated(model, cancer())
    return fit(model, optimizer, loss, batches(cancer(), 64, seed=210), error=error)


@HERE.healthy
def strokes_to_letters() -> Training:
    """Letters of a sequence, wherever in it they are written (CTC)."""
    model: Any = nn.Sequential(nn.Conv1d(8, 48, 5, padding=2), nn.ReLU(), nn.Conv1d(48, 7, 1))
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    drawn = torch.Generator().manual_seed(211)
    shapes = torch.randn(7, 8, generator=drawn)

    def strokes() -> Iterator[Pair]:
        while True:
            letters = torch.randint(1, 7, (32, 4), generator=drawn)
            seen = shapes[letters].repeat_interleave(3, 1).transpose(1, 2)
            yield seen + 0.3 * torch.randn(seen.shape, generator=drawn), letters

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        told = model(batch[0]).permute(2, 0, 1).log_softmax(-1)
        n_in, n_out = torch.full((32,), 12), torch.full((32,), 4)
        return F.ctc_loss(told, batch[1], n_in, n_out)

    return fit(model, optimizer, loss, strokes())
