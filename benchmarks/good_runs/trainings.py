"""Small trainings by seed, and causes that can be planted in them."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

import notebook_probe as nbp

__all__ = ["TRAININGS", "GoodTraining"]

DIGITS = load_digits()
IMAGES = torch.tensor(DIGITS.data, dtype=torch.float32) / 16
LABELS = torch.tensor(DIGITS.target)
N_WORDS, LENGTH = 32, 24
NEXT = torch.softmax(
    2 * torch.randn(N_WORDS, N_WORDS, generator=torch.Generator().manual_seed(5)), 1
)
"""Probabilities of the word after each."""

Batch = tuple[Tensor, Tensor]


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.scale = (width // 2) ** -0.5

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        later = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        scores = (q @ k.transpose(-1, -2) * self.scale).masked_fill(later, -torch.inf)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, width))


class DecoderBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(width), Attention(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.ln1(x)))
        return x + self.drop(self.down(functional.gelu(self.up(self.ln2(x)))))


class TinyDecoder(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.emb, self.pos = nn.Embedding(N_WORDS, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(DecoderBlock(width) for _ in range(2))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, N_WORDS)

    def forward(self, words: Tensor) -> Tensor:
        x = self.emb(words) + self.pos(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)).flatten(0, 1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x.view(-1, 8, 8))[0][:, -1])


def mlp(n_classes: int = 10) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.Linear(64, n_classes))


def convolutions() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
    )


def digits(generator: torch.Generator) -> Batch:
    chosen = torch.randint(0, len(IMAGES), (32,), generator=generator)
    return IMAGES[chosen], LABELS[chosen]


def odd_digits(generator: torch.Generator) -> Batch:
    x, y = digits(generator)
    return x, y % 2


def words(generator: torch.Generator) -> Batch:
    text = torch.randint(0, N_WORDS, (16, 1), generator=generator)
    for _ in range(LENGTH):
        new = torch.multinomial(NEXT[text[:, -1]], 1, generator=generator)
        text = torch.cat([text, new], 1)
    return text[:, :-1], text[:, 1:].flatten()


@dataclass(frozen=True)
class GoodTraining:
    """A training by seed.

    Attributes
    ----------
    model, batch : callable
    lr : float
        Of Adam.
    layer : str
        Path of the layer that a cause is planted in.
    others : mapping of str to str
        Causes of this training alone, with a glob of the modules that are right.
    """

    model: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]
    lr: float
    layer: str
    others: Mapping[str, str]

    @property
    def causes(self) -> dict[str, str]:
        """Every cause, with a glob of the modules that are right."""
        return {
            "weights x5": self.layer,
            "frozen": self.layer,
            "rate x10": "*",
            "labels 40% random": "*",
            **self.others,
        }

    def record(self, store: Path, seed: int, n_steps: int, cause: str = "") -> nbp.OpenedRun:
        """Train with the default probes and budget, and return the record."""
        shutil.rmtree(store, ignore_errors=True)
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
        model = self.model()
        self._plant(model, cause)
        rate = 10 * self.lr if cause == "rate x10" else self.lr
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], rate)
        with contextlib.redirect_stdout(io.StringIO()), nbp.watch(model, store=store) as run:
            for _ in range(n_steps):
                x, y = self.batch(generator)
                if cause.startswith("labels"):
                    other = y[torch.randperm(len(y), generator=generator)]
                    y = torch.where(torch.rand(len(y), generator=generator) < 0.4, other, y)
                loss = functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run.log(loss=loss)
        return nbp.open_run(store)

    def _plant(self, model: nn.Module, cause: str) -> None:
        layer = model.get_submodule(self.layer)
        if cause == "weights x5":
            with torch.no_grad():
                next(iter(layer.parameters())).mul_(5)
        elif cause == "frozen":
            layer.requires_grad_(False)
        elif cause == "no dropout":
            for module in model.modules():
                if isinstance(module, nn.Dropout):
                    module.p = 0.0
        elif cause == "attention scale 1":
            vars(model.get_submodule("blocks.1.attn"))["scale"] = 1.0
        elif cause == "no norm":
            path, _, name = self.others[cause].rpartition(".")
            setattr(model.get_submodule(path), name, nn.Identity())


TRAININGS = {
    "mlp": GoodTraining(mlp, digits, 1e-3, "3", {"no dropout": "*"}),
    "decoder": GoodTraining(
        *(TinyDecoder, words, 3e-3, "blocks.1.up"),
        {"attention scale 1": "blocks.1*", "no norm": "blocks.0.ln2"},
    ),
    "two": GoodTraining(lambda: mlp(2), odd_digits, 1e-3, "3", {}),
    "conv": GoodTraining(convolutions, digits, 3e-3, "5", {"no norm": "6"}),
    "gru": GoodTraining(Recurrent, digits, 3e-3, "rnn", {}),
}
"""The first two are of the kinds on which bounds were set."""
