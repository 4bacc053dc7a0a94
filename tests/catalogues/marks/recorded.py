"""Small runs, recorded as users record them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["begun", "recorded", "row"]

ALIVE: list[nn.Module] = []
"""A run ends with its model."""


def begun(folder: Any, steps: int = 3, **options: Any) -> nbp.Run:
    """A run that is not closed."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = nbp.watch(model, optimizer, store=folder, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 2)).square().mean()
        loss.backward()
        optimizer.step()
        run.log({"loss": loss.item()})
    run.flush()
    ALIVE.append(model)
    return run


def recorded(folder: Path | str, **options: Any) -> Path:
    begun(folder, **options).close()
    ALIVE.clear()
    return Path(folder)


def row(folder: Path, state: str = "finished") -> dict[str, Any]:
    """What a catalogue tells of it."""
    run_id = OpenedRecord(folder).attrs["run_id"]
    return {"run": str(folder), "run_id": run_id, "state": state}
