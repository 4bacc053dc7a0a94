"""Models to be compiled, what an eager float64 twin says of them, and what Dynamo has counted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint

from tests.models import floats, loss_of

__all__ = [
    "QUANTITIES",
    "Checkpointed",
    "Shared",
    "Small",
    "Wrapped",
    "batch",
    "n_breaks",
    "n_graphs",
    "told_by_twin",
    "trained",
    "whole",
]

batch = floats(5, 4)

QUANTITIES = (
    "output_mean",
    "output_std",
    "output_norm",
    "output_rms",
    "output_abs_max",
    "zero_fraction",
    "nonfinite_fraction",
    "output_grad_norm",
    "input_norm",
)


class Small(nn.Module):
    """Has what changes its output in place, and what is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 8), nn.LayerNorm(8)
        self.relu, self.last = nn.ReLU(), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.relu(self.norm(self.first(x))))


class Shared(nn.Module):
    """Calls one module twice, with the frozen one in between."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.twice(self.frozen(x) + self.twice(x).tanh())


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = Small(), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(checkpoint(self.body, x, use_reentrant=False))


class Wrapped(nn.Module):
    """Has a part that may be compiled alone, between two that are not."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.block, self.after = nn.Linear(4, 4), Small(), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.block(self.before(x)))


def whole(model: nn.Module, backend: Any = "aot_eager", **options: Any) -> Any:
    return torch.compile(model, backend=backend, fullgraph=True, **options)


def n_graphs() -> int:
    return counters["stats"]["unique_graphs"]


def n_breaks() -> int:
    return sum(counters["graph_break"].values())


def trained(
    model: nn.Module,
    called: Any,
    steps: Iterable[int],
    batches: Callable[[int], Sequence[Tensor]] = lambda step: [batch(step)],
) -> list[float]:
    """Train by plain SGD, with the gradients of some batches for each step; return the losses."""
    optimizer, losses = SGD(model.parameters(), lr=0.1), []
    for step in steps:
        optimizer.zero_grad()
        for one in batches(step):
            loss = loss_of(called(one))
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


def told_by_twin(
    model: nn.Module,
    places: Sequence[str],
    n_steps: int,
    batches: Callable[[int], Sequence[Tensor]] = lambda step: [batch(step)],
) -> dict[tuple[str, str], list[float]]:
    """What a twin in float64 gives at each step, by numpy, over all calls of the step."""
    twin = copy.deepcopy(model).double()
    seen: dict[tuple[str, str], list[Tensor]] = {}
    for place in places:
        twin.get_submodule(place).register_forward_hook(_noting(seen, place))
    found: dict[tuple[str, str], list[float]] = {}
    for step in range(n_steps):
        seen.clear()
        trained(twin, twin, [step], lambda step: [one.double() for one in batches(step)])
        for place in places:
            for name, value in _numbers(place, seen).items():
                found.setdefault((place, name), []).append(value)
    return found


def _noting(seen: dict[tuple[str, str], list[Tensor]], place: str) -> Callable[..., None]:
    def note(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        if torch._C._current_graph_task_id() != -1:
            return  # a checkpoint recomputes
        seen.setdefault((place, "output"), []).append(output.detach())
        seen.setdefault((place, "input"), []).append(args[0].detach())
        if output.requires_grad:
            output.register_hook(seen.setdefault((place, "gradient"), []).append)

    return note


def _numbers(place: str, seen: dict[tuple[str, str], list[Tensor]]) -> dict[str, float]:
    y, x = _joined(seen[place, "output"]), _joined(seen[place, "input"])
    found = {
        "output_mean": y.mean(),
        "output_std": y.std(ddof=1),
        "output_norm": np.sqrt((y**2).sum()),
        "output_rms": np.sqrt((y**2).mean()),
        "output_abs_max": np.abs(y).max(),
        "zero_fraction": (y == 0).mean(),
        "nonfinite_fraction": (~np.isfinite(y)).mean(),
        "input_norm": np.sqrt((x**2).sum()),
    }
    if (place, "gradient") in seen:
        found["output_grad_norm"] = np.sqrt((_joined(seen[place, "gradient"]) ** 2).sum())
    return {name: float(value) for name, value in found.items()}


def _joined(tensors: Sequence[Tensor]) -> Any:
    return np.concatenate([one.numpy().ravel() for one in tensors])
