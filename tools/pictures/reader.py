"""The network of most pictures: a convolution, attention between positions, a head."""

from __future__ import annotations

import math
from itertools import chain, repeat

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import notebook_probe as nbp
from tools.pictures.digits import digits
from tools.pictures.scene import Train, Watch

__all__ = ["training"]

N_TRAINING, BATCH = 1500, 64
LARGEST_NORM = 1.0
DECAYS = 0.01, 0.1
"""Weight decay at the beginning and the end."""


class Reader(nn.Module):
    """Reads a digit: convolution, BatchNorm, ReLU, attention between positions, tanh, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.layernorm = nn.LayerNorm(16)
        self.tanh = nn.Tanh()
        self.head = nn.Linear(256, 10)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.pool(self.relu(self.norm(self.conv(images)))).flatten(2).mT
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        logits: Tensor = self.head(self.tanh(self.layernorm(tokens + mixed)).flatten(1))
        return logits


def training(n_steps: int, lr: float) -> Train:
    """One cycle of AdamW: the rate rises to ``lr`` and falls again, weight decay grows."""

    def train(watch: Watch) -> nbp.Run:
        torch.manual_seed(0)
        model = Reader()
        optimizer = torch.optim.AdamW(_groups(model), lr=lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=n_steps + 1)
        images, targets = digits()
        images = images.unflatten(1, (1, 8, 8))
        unseen = images[N_TRAINING:], targets[N_TRAINING:]
        run = watch(model, optimizer)
        run.probe_batch(images[:64], targets[:64], cross_entropy)
        data = TensorDataset(images[:N_TRAINING], targets[:N_TRAINING], torch.arange(N_TRAINING))
        loader = DataLoader(data, BATCH, shuffle=True)
        endless = chain.from_iterable(map(run.batches, repeat(loader)))
        for step in range(n_steps):
            batch = next(endless)
            optimizer.param_groups[0]["weight_decay"] = _decay(step / n_steps)
            _step(run, model, optimizer, *batch)
            schedule.step()
            if step % 10 == 0:
                _evaluate(run, model, *unseen)
        return run

    return train


def _groups(model: nn.Module) -> list[dict[str, object]]:
    """Matrices, which decay, and vectors, which do not."""
    parameters = list(model.parameters())
    return [
        {"params": [one for one in parameters if one.dim() > 1]},
        {"params": [one for one in parameters if one.dim() == 1], "weight_decay": 0.0},
    ]


def _decay(share: float) -> float:
    first, last = DECAYS
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def _step(
    run: nbp.Run,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    targets: Tensor,
    indices: Tensor,
) -> None:
    run.batch(inputs=images, targets=targets, indices=indices)
    losses = cross_entropy(model(images), targets, reduction="none")
    run.batch(losses=losses, buckets=targets)
    optimizer.zero_grad()
    losses.mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
    optimizer.step()
    run.log(loss=losses.mean())


def _evaluate(run: nbp.Run, model: nn.Module, images: Tensor, targets: Tensor) -> None:
    model.eval()
    with torch.no_grad():
        run.log(eval_loss=cross_entropy(model(images), targets))
    model.train()
