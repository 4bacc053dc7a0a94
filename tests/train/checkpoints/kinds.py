"""Four kinds of models, each with data, for trainings that are interrupted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from notebook_probe.train import Loop, Trainer

__all__ = ["KINDS", "loop_of", "same_state"]

N_SAMPLES, BATCH = 14, 4  # the last batch of an epoch is a short one


class Conv(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
        )


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 8, 2, batch_first=True, dropout=0.3), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight  # tied

    def forward(self, ids: Tensor) -> Tensor:
        n = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        x = self.tokens(ids) + self.places(torch.arange(n))
        return self.head(self.block(x, src_mask=mask, is_causal=True)).transpose(1, 2)


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    """Samples with noise from every generator that there is."""

    def __init__(self, inputs: Tensor, labels: Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        x = self.inputs[place]
        if x.is_floating_point():
            noise = torch.randn_like(x) + random.random() + np.random.random()
            x = x + 0.1 * noise
        return x, self.labels[place]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 3))


KINDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (3,)),
    "conv": (Conv, (1, 6, 6)),
    "lstm": (Recurrent, (4, 5)),
    "gpt": (GPT, ()),
}


def loop_of(kind: str, seed: int = 0, **options: Any) -> tuple[Loop, DataLoader[Any]]:
    """A loop and its data, both made anew."""
    make, shape = KINDS[kind]
    torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=40)
    accuracy = {"accuracy": lambda p, y: (p.argmax(1) == y).float()}
    options = {"scheduler": scheduler, "train_metrics": accuracy, **options}
    trainer = Trainer(model, nn.functional.cross_entropy, optimizer, **options)
    own = torch.Generator().manual_seed(3)
    if shape:
        inputs = torch.randn(N_SAMPLES, *shape, generator=own)
        labels = torch.randint(0, 3, (N_SAMPLES,), generator=own)
    else:
        inputs = torch.randint(0, 11, (N_SAMPLES, 6), generator=own)
        labels = inputs.roll(-1, 1)
    return Loop(trainer), DataLoader(Augmented(inputs, labels), BATCH, shuffle=True)


def same_state(a: Any, b: Any) -> bool:
    """Equal, bit for bit, down to every tensor and number."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_state(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same_state(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
