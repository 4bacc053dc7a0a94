"""One model's graph: how it was made, how long that took, and whether anything has changed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from notebook_probe.graph import Graph
from notebook_probe.graph.building import build

__all__ = ["LookedAt", "looked_at"]


@dataclass(frozen=True)
class LookedAt:
    """What came of it."""

    graph: Graph
    seconds: float
    """Of the processor: others may be at work beside it."""
    changed: list[str]
    """What of the model, or of the process, is not as it was, bit for bit."""


def looked_at(
    make: Callable[[], tuple[nn.Module, tuple[Any, ...], dict[str, Any]]],
) -> LookedAt:
    """Build the graph of a model in training."""
    torch.manual_seed(0)
    model, args, kwargs = make()
    model.train()
    before = _state(model)
    begun = time.process_time()
    graph = build(model, args, kwargs)
    seconds = time.process_time() - begun
    after = _state(model)
    return LookedAt(graph, seconds, [name for name in before if before[name] != after.get(name)])


def _state(model: nn.Module) -> dict[str, Any]:
    """All of it by name, in what can be compared."""
    own = [*model.named_parameters(), *model.named_buffers()]
    modules = [*model.named_modules()]
    return {
        **{name: (one.data_ptr(), one.detach().numpy().tobytes()) for name, one in own},
        **{f"gradient of {name}": (one.grad, one.requires_grad) for name, one in own},
        **{f"mode of {path}": module.training for path, module in modules},
        **{f"attributes of {path}": _attributes(module) for path, module in modules},
        "torch's random numbers": torch.get_rng_state().tolist(),
        "numpy's random numbers": repr(np.random.get_state()),  # noqa: NPY002
        "Python's random numbers": random.getstate(),
    }


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {
        name: [*value.items()] if isinstance(value, dict) and "hooks" in name else id(value)
        for name, value in vars(module).items()
    }
