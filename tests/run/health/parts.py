"""What tests of the health of probes share: parts nobody can read, and a loop."""

from __future__ import annotations

from types import SimpleNamespace

from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from notebook_probe.run.health.status import ProbeStatus
from tests.models import floats

__all__ = ["PartUsedDirectly", "Strange", "batch", "broken", "only", "train"]

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


class PartUsedDirectly(nn.Module):
    """One part is used past its call, one returns what nobody can read."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.lonely, self.strange = nn.Linear(4, 4), Strange()

    def forward(self, x: Tensor) -> Tensor:
        self.strange(x)
        nn.functional.linear(x, self.lonely.weight)
        return self.head(self.part(x).tanh())
