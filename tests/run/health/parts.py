"""What tests of the health of probes share: parts nobody can read, and a loop."""

from __future__ import annotations

from types import SimpleNamespace

from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from notebook_probe.run.health.status import ProbeStatus
from tests.models import floats

__all__ = ["Strange", "batch", "broken", "only", "train"]

batch = floats(5, 4)


class Strange(nn.Module):
    """Returns what nobody can read."""

    def forward(self, x: Tensor) -> SimpleNamespace:
        return SimpleNamespace(x=x)


def broken(output: Tensor) -> Tensor:
    raise ZeroDivisionError("on purpose")


def train(model: nn.Module, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


def only(run: nbp.Run) -> ProbeStatus:
    """The status of the one probe."""
    (probe,) = run.status().probes
    return probe
