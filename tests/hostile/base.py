"""A whole record with a part of every kind, from which spoiled ones are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

import notebook_probe as nbp

__all__ = ["make_model", "record"]

STEPS = 24


def make_model() -> nn.Sequential:
    """Return the model that the record is of."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


def record(folder: Path) -> Path:
    """Write the record: numbers, vectors, arrays, logged names, events, settings, two branches."""
    _train(folder, STEPS)
    _train(folder, STEPS // 2, step=STEPS // 2, branch=True)
    return folder


def _train(folder: Path, n_steps: int, **where: Any) -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    config = {"lr": 0.1, "depth": 2}
    with nbp.watch(model, optimizer, store=folder, name="whole", config=config, **where) as run:
        run.attach("*", ["grad_norm", "weight_norm", "output_std"])
        run.attach("0", "weight_histogram", "every(4)")
        for step in range(n_steps):
            optimizer.zero_grad()
            loss = model(torch.ones(8, 2) * step / 7).square().mean()
            loss.backward()
            optimizer.step()
            run.log({"loss": loss.item(), "train/seen": 8.0 * step})
            if step % 8 == 7:
                run.log({"eval_accuracy": 0.5})
        run.log_array("image", torch.eye(2))
        run.controls.checkpoint_saved(n_steps, str(folder / "step.pt"), 1024, 0.5)
