"""Train lineage: origin and results of a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from notebook_probe.json_numbers import json_value
from notebook_probe.lineage.dataset_graph import DatasetGraph
from notebook_probe.summary.attempted import attempted
from notebook_probe.summary.lineage.data import data_facts

__all__ = ["TrainingFacts", "train_lineage"]

ALONE = "stand_alone"
WRAPPERS = {
    "DistributedDataParallel": "data_parallel",
    "DataParallel": "data_parallel",
    "FullyShardedDataParallel": "fully_sharded",
    "FSDPModule": "fully_sharded",
}
"""Wrappers of a model, and the kind of parallelism of each."""


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """Facts about a training; None if unknown.

    Attributes
    ----------
    network : str, optional
        Class of the model.
    model : nn.Module, optional
    loss_fn : callable, optional
    loss : float, optional
        The last one.
    optimizers : sequence of Optimizer
    epoch, step_num : int, optional
        Complete ones.
    data : DatasetGraph, optional
    checkpoint : str, optional
        Path of the last saved state.
    """

    network: str | None = None
    model: nn.Module | None = None
    loss_fn: Callable[..., Any] | None = None
    loss: float | None = None
    optimizers: Sequence[Optimizer] = ()
    epoch: int | None = None
    step_num: int | None = None
    data: DatasetGraph | None = None
    checkpoint: str | None = None


def train_lineage(training: TrainingFacts) -> dict[str, Any]:
    """Return the train lineage as plain values, by MindSpore's names.

    Examples
    --------
    >>> import torch
    >>> model = nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> facts = TrainingFacts(model=model, loss_fn=nn.MSELoss(), optimizers=[optimizer])
    >>> told = train_lineage(facts)
    >>> [told[name] for name in ("network", "loss_function", "optimizer", "learning_rate", "epoch")]
    ['Linear', 'MSELoss', 'SGD', 0.1, None]
    """
    data = data_facts(training.data)
    read: dict[str, Callable[[], Any]] = {
        "network": lambda: training.network or _class(training.model),
        "loss_function": lambda: _called(training.loss_fn),
        "loss": lambda: _number(training.loss),
        "optimizer": lambda: _joined([type(one).__name__ for one in training.optimizers]),
        "learning_rate": lambda: _rates(training.optimizers),
        "epoch": lambda: training.epoch,
        "step_num": lambda: training.step_num,
        "parallel_mode": lambda: _parallel_mode(training.model),
        "device_num": lambda: _device_num(training.model),
        "batch_size": lambda: data.batch_size,
        "data_path": lambda: data.path,
        "data_size": lambda: data.size,
        "model_path": lambda: training.checkpoint,
        "model_size": lambda: _bytes_at(training.checkpoint),
    }
    # Attempted one by one, as loss functions and optimizers may be anything.
    return {name: attempted(one) for name, one in read.items()}


def _class(value: object) -> str | None:
    return None if value is None else type(value).__name__


def _called(function: Any) -> str | None:
    """Return a function by its name, an object by its class."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else _class(function)


def _joined(names: Sequence[str]) -> str | None:
    return ", ".join(dict.fromkeys(names)) or None


def _number(value: Any) -> float | str | None:
    return None if value is None else json_value(float(value))


def _rates(optimizers: Sequence[Optimizer]) -> Any:
    """Return the rate of all groups, or a list of rates if they differ."""
    groups = [group for one in optimizers for group in one.param_groups]
    rates = [_number(group["lr"]) for group in groups]
    same = rates[:1] * len(rates) == rates
    return (rates[0] if same else rates) if rates else None


def _parallel_mode(model: nn.Module | None) -> str:
    # By the names of the base classes, so that nothing of a distributed package is imported.
    names = [kind.__name__ for kind in type(model).__mro__]
    wrapped = next((WRAPPERS[name] for name in names if name in WRAPPERS), None)
    return wrapped or ("distributed" if _world_size() > 1 else ALONE)


def _device_num(model: nn.Module | None) -> int:
    own = getattr(model, "device_ids", None) if _world_size() == 1 else None
    return len(own) if own else _world_size()


def _world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _bytes_at(place: str | None) -> int | None:
    """Return the bytes of a file or folder; None if it is elsewhere."""
    path = Path(place) if place else None
    if path is None or not path.exists():
        return None
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files if one.is_file())
