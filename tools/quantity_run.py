"""A short training in which every quantity has something to measure, for the pictures of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import notebook_probe as nbp
from notebook_probe.quantities import Quantity

__all__ = ["train"]

STEPS = 160
EVERY = {"forward": "every(10)", "backward": "every(10)"}
OFTEN = "every(2)"
MICRO_BATCHES, LARGEST_NORM = 2, 1.0


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


def train(quantities: tuple[Quantity, ...], store: Path) -> nbp.Run:
    """Train with all quantities attached wherever they fit; the run is closed."""
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=30)
    run = nbp.watch(model, optimizer, store=store, probes=None)
    for quantity in quantities:
        for place in ("*", ""):
            with suppress(nbp.NotApplicableError):
                run.attach(place, quantity, EVERY.get(quantity.cost, OFTEN))
    loader, images, targets = _digits()
    run.probe_batch(images[:64], targets[:64], cross_entropy)
    endless = (batch for _ in iter(int, 1) for batch in run.batches(loader))
    with run:
        for step in range(STEPS):
            _step(run, model, optimizer, scaler, endless)
            if step % 10 == 0:
                model.eval()
                with torch.no_grad():
                    run.log(eval_loss=cross_entropy(model(images), targets))
                model.train()
    return run


def _digits() -> tuple[DataLoader[tuple[Tensor, ...]], Tensor, Tensor]:
    """Micro-batches to train on, and images with their digits to evaluate."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    targets, indices = torch.tensor(data.target), torch.arange(len(data.target))
    training = TensorDataset(images[:1500], targets[:1500], indices[:1500])
    return DataLoader(training, 32, shuffle=True, drop_last=True), images[1500:], targets[1500:]


def _step(
    run: nbp.Run,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    batches: Iterator[tuple[Tensor, ...]],
) -> None:
    optimizer.zero_grad()
    total = torch.zeros(())
    for _ in range(MICRO_BATCHES):
        images, targets, indices = next(batches)
        run.batch(inputs=images, targets=targets, indices=indices)
        losses = cross_entropy(model(images), targets, reduction="none")
        run.batch(losses=losses)
        loss = losses.mean() / MICRO_BATCHES
        scaler.scale(loss).backward()
        total += loss.detach()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
    scaler.step(optimizer)
    scaler.update()
    run.log(loss=total)
