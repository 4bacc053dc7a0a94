"""Train a small network for seconds, and write its panel: ``python -m tools.site_panel FILE``.

The panel on the first page of the site. It is made while the site is built, by the panel of that
commit, and is not kept beside the pages.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import notebook_probe as nbp

SEED = 0
STEPS = 300
STORE = "runs/digits.zarr"
LOOKED_AT = [("conv2", "grad_norm"), ("head", "grad_norm")]


def network() -> nn.Sequential:
    """Two convolutions and a linear layer, for images of 8 by 8."""
    model = nn.Sequential()
    model.add_module("conv1", nn.Conv2d(1, 12, 3, padding=1))
    model.add_module("relu1", nn.ReLU())
    model.add_module("conv2", nn.Conv2d(12, 24, 3, padding=1))
    model.add_module("relu2", nn.ReLU())
    model.add_module("pool", nn.AdaptiveAvgPool2d(2))
    model.add_module("flat", nn.Flatten())
    model.add_module("head", nn.Linear(96, 10))
    return model


def digits() -> tuple[Tensor, Tensor]:
    """All handwritten digits of scikit-learn, from 0 to 1."""
    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(labels)


def train(store: str) -> None:
    """Record a training with a fixed seed, each step of it."""
    torch.manual_seed(SEED)
    images, labels = digits()
    model, loss_fn = network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with nbp.watch(model, optimizer, store=store, name="digits", budget=None) as run:
        for _ in range(STEPS):
            drawn = torch.randint(len(images), (64,))
            loss = loss_fn(model(images[drawn]), labels[drawn])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.log(loss=loss.item())


def write(path: Path) -> None:
    """Train, and write what the panel shows of the record as one file, which names the record."""
    path = path.resolve()
    with TemporaryDirectory() as folder, chdir(folder):
        train(STORE)
        explorer = nbp.open_run(STORE).explorer
        explorer.home = "grad_norm"
        explorer.series = LOOKED_AT
        explorer.to_html(path)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size / 1e3:.0f} kB")
