"""Small classifiers of every usual kind, and a loop that has all that a quantity may ask for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from notebook_probe.errors import ReplacedWarning
from notebook_probe.run.run import Run

__all__ = ["CASES", "CLASSES", "Case", "train"]

CLASSES, MICRO_BATCHES, LARGEST_NORM = 3, 2, 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """A classifier of three classes, and the shape of its batches."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def made(self) -> nn.Module:
        """Return the same model each time."""
        torch.manual_seed(0)
        return self.build()

    def batch(self, seed: int) -> Tensor:
        """Return the same normal batch for the same seed."""
        return torch.randn(self.shape, generator=torch.Generator().manual_seed(seed))


class Recurrent(nn.Module):
    """An LSTM, whose output is a tuple with a tuple in it."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.lstm(x)[0].mean(1))
        return logits


class Attentive(nn.Module):
    """Self-attention with dropout: one random number too many changes its training."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(x).mean(1))
        return logits


def _convolution() -> nn.Module:
    body = (nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(80, 8))
    return nn.Sequential(*body, nn.Tanh(), nn.Linear(8, CLASSES))


CASES = {
    "convolution": Case(_convolution, (4, 2, 6, 6)),
    "recurrent": Case(Recurrent, (4, 5, 6)),
    "attention": Case(Attentive, (4, 5, 8)),
}
"""Models that `QuantitySuite` trains, by name."""


def train(model: nn.Module, batches: Iterable[Tensor], run: Run | None = None) -> None:
    """Train with micro-batches, a gradient scaler and clipping; ``run`` gets all reports."""
    loader = batches if run is None else run.batches(batches)
    torch.manual_seed(1)  # of dropout
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=False)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for inputs in loader:
        optimizer.zero_grad()
        targets = torch.arange(len(inputs)) % CLASSES
        for part in range(MICRO_BATCHES):
            if run is not None:
                run.batch(inputs=inputs, targets=targets, indices=torch.arange(len(inputs)) + part)
                run.batch(mask=targets > 0, truncated=targets == 0)
            losses = cross_entropy(model(inputs).float(), targets, reduction="none")
            if run is not None:
                run.batch(losses=losses, buckets=targets)
            scaler.scale(losses.mean() / MICRO_BATCHES).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        scaler.step(optimizer)
        scaler.update()
        if run is not None:
            with warnings.catch_warnings():  # a scaler leaves out the update of what is not finite
                warnings.simplefilter("ignore", ReplacedWarning)
                run.log(loss=losses.detach().mean(), eval_loss=1.0)
