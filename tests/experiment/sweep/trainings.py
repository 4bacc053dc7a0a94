"""What the tests let sweeps train; another process imports it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from notebook_probe.experiment.sweep import Configuration


def told(configuration: Configuration) -> dict[str, Any]:
    """Fails for depth 3, is killed at depth 4."""
    depth = configuration["model"]["depth"]
    print(f"training depth {depth}")
    if depth == 3:
        raise ValueError("no depth of 3")
    if depth == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"twice": 2 * depth, "process": os.getpid()}


def recorded(configuration: Configuration) -> None:
    """A short training in a record of its own."""
    import torch

    import notebook_probe as nbp

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), configuration["lr"])
    place = Path(configuration.folder) / "run.zarr"
    with nbp.watch(model, optimizer, store=place, config=dict(configuration)) as run:
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 3)).square().mean()
            loss.backward()
            run.log(loss=loss)
            optimizer.step()


def waits(configuration: Configuration) -> None:
    """Says that it has begun, and never ends by itself."""
    Path(configuration.folder, "begun").write_text(str(os.getpid()))
    while True:
        time.sleep(60)
