"""Loops that pass twice, train in turns, thaw late, average, or set the weights themselves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from benchmarks.rules.data import batches, diabetes, digit_images, digits, wine
from benchmarks.rules.losses import cross_entropy, evaluated, squared_error
from benchmarks.rules.models.agents import ClippedPolicy, episodes
from benchmarks.rules.models.images import cnn
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.practice import TwoHeads
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("practice")
Pair = tuple[Tensor, Tensor]


@HERE.healthy
def clipped_policy() -> Training:
    """The pole, by a policy whose ratio is clipped, four updates from each episodes (PPO)."""
    model = mlp(4, 64, 64, 3, act=nn.Tanh)
    optimizer = optim.Adam(model.parameters(), lr=3e-3, eps=1e-5)
    learnt = ClippedPolicy(model, optimizer)
    return Training(
        [(model, optimizer)], learnt, episodes(221), n_steps=300, error=learnt.error, factor=0.8
    )


@HERE.healthy
def sharpness_aware() -> Training:
    """Each gradient is that at the worst place near the weights: two passes a step (SAM)."""
    model = mlp(64, 64, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(i: int, batch: Pair) -> Sequence[float]:
        optimizer.zero_grad()
        (loss := cross_entropy(model, batch)).backward()
        moved = _uphill(model, 0.05)
        optimizer.zero_grad()
        cross_entropy(model, batch).backward()
        with torch.no_grad():
            for value, by in zip(model.parameters(), moved, strict=True):
                value.sub_(by)
        optimizer.step()
        return (loss.item(),)

    return Training([(model, optimizer)], step, batches(digits(), 64, seed=222))


def _uphill(model: nn.Module, radius: float) -> list[Tensor]:
    """Move the weights along their gradients, and return by how much."""
    slopes = [value.grad for value in model.parameters() if value.grad is not None]
    scale = radius / torch.stack([slope.norm() for slope in slopes]).norm()
    moved = [scale * slope for slope in slopes]
    with torch.no_grad():
        for value, by in zip(model.parameters(), moved, strict=True):
            value.add_(by)
    return moved


@HERE.healthy
def tasks_in_turns() -> Training:
    """Two tasks, the digit and whether it is odd: each step trains one of two heads."""
    model = TwoHeads(64, 64, 10, 2)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)

    def step(i: int, batch: Pair) -> Sequence[float]:
        task = i % 2
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[0], task), batch[1] % 2 if task else batch[1])
        loss.backward()
        optimizer.step()
        return (loss.item(),)

    return Training([(model, optimizer)], step, batches(digits(), 64, seed=223))


@HERE.healthy
def thawed_later() -> Training:
    """A new head on convolutions that were trained for other classes; they thaw at step 100."""
    x, y = digit_images()
    low = y < 5
    model = cnn(1, 5)
    of_low = optim.Adam(model.parameters(), lr=3e-3)
    found = batches((x[low], y[low]), 64, seed=224)
    for batch in (next(found) for _ in range(80)):
        of_low.zero_grad()
        cross_entropy(model, (batch[0], batch[1])).backward()
        of_low.step()
    model[-1] = nn.Linear(192, 5)
    body = model[:-1]
    body.requires_grad_(False)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    high = batches((x[~low], y[~low] - 5), 64, seed=225)

    def thaw() -> None:
        body.requires_grad_(True)

    return fit(model, optimizer, cross_entropy, high, before={100: thaw})


@HERE.healthy
def averaged_weights() -> Training:
    """Patients, with a copy that follows the weights and is what is asked (EMA)."""
    model = mlp(10, 64, 64, 1, act=nn.SiLU)
    followed = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)

    def step(i: int, batch: Pair) -> Sequence[float]:
        optimizer.zero_grad()
        (loss := squared_error(model, batch)).backward()
        optimizer.step()
        followed.update_parameters(model)
        return (loss.item(),)

    def error() -> float:
        with torch.no_grad():
            return squared_error(followed, diabetes()).item()

    return Training(
        [(model, optimizer)], step, batches(diabetes(), 64, seed=226), error=error, factor=0.8
    )


@HERE.healthy
def mixed_with_restarts() -> Training:
    """Digits mixed with one another; the rate falls and starts again every 60 steps (SGDR)."""
    model = cnn(1, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 60)
    drawn = torch.Generator().manual_seed(227)

    def loss(model: nn.Module, batch: Pair) -> Tensor:
        x, y = batch
        share = torch.rand((), generator=drawn)
        other = torch.randperm(len(x), generator=drawn)
        told = model(share * x + (1 - share) * x[other])
        return share * F.cross_entropy(told, y) + (1 - share) * F.cross_entropy(told, y[other])

    x, y = digit_images()
    return fit(
        *(model, optimizer, loss, batches((x, y), 64, seed=227)),
        schedule=schedule,
        error=evaluated(model, (x, y)),
    )


@HERE.healthy
def few_labels() -> Training:
    """Wines, a third of them labelled; the others as a slower copy sees them (mean teacher)."""
    model = nn.Sequential(nn.Linear(13, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 3))
    teacher = copy.deepcopy(model).requires_grad_(False)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    x, y = wine()

    def step(i: int, batch: Pair) -> Sequence[float]:
        seen, kind = batch
        told = model(seen)
        with torch.no_grad():
            taught = teacher(seen).softmax(-1)
        apart = F.mse_loss(told.softmax(-1), taught)
        loss = F.cross_entropy(told[::3], kind[::3]) + min(1.0, i / 80) * apart
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.05)
        return (loss.item(),)

    return Training(
        [(model, optimizer)],
        step,
        batches((x, y), 48, seed=228),
        error=evaluated(model, (x, y)),
    )


@HERE.healthy
def quickly_adapted() -> Training:
    """Sines of any phase: five updates for one, then a part of the way there (Reptile)."""
    model = mlp(1, 48, 48, 1, act=nn.Tanh)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    drawn = torch.Generator().manual_seed(229)
    begun: list[Tensor] = []
    phase = torch.zeros(())

    def step(i: int, _: Any) -> Sequence[float]:
        nonlocal phase
        if i % 5 == 0:
            _go_on(model, begun, 0.3)
            phase = 2 * torch.rand((), generator=drawn)
        x = 4 * torch.rand(32, 1, generator=drawn) - 2
        optimizer.zero_grad()
        (loss := squared_error(model, (x, (2 * x[:, 0] + phase).sin()))).backward()
        optimizer.step()
        return (loss.item(),)

    return Training([(model, optimizer)], step, iter(int, 1), 400, factor=0.9)


def _go_on(model: nn.Module, begun: list[Tensor], share: float) -> None:
    """Go a part of the way from where the task began, and note where the next begins."""
    with torch.no_grad():
        for value, start in zip(model.parameters(), begun, strict=False):
            value.copy_(torch.lerp(start, value, share))
    begun[:] = [value.detach().clone() for value in model.parameters()]


@HERE.healthy
def two_optimizers() -> Training:
    """Matrices by Muon, the rest by AdamW, in one step."""
    model = mlp(64, 64, 64, 10)
    inner = [value for value in model.parameters() if value.ndim == 2][:-1]
    others = [value for value in model.parameters() if all(value is not one for one in inner)]
    optimizer = optim.Muon(inner, lr=0.02, weight_decay=0.0)
    for_others = optim.AdamW(others, lr=3e-3)

    def step(i: int, batch: Pair) -> Sequence[float]:
        optimizer.zero_grad()
        for_others.zero_grad()
        (loss := cross_entropy(model, batch)).backward()
        optimizer.step()
        for_others.step()
        return (loss.item(),)

    watched: list[tuple[nn.Module, Optimizer]] = [(model, optimizer)]
    return Training(watched, step, batches(digits(), 64, seed=230))
