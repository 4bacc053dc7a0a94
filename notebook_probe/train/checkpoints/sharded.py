"""Whole tensors of a file, laid out like a model's that is split over processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["laid_out", "optimizer_laid_out", "whole"]


def whole(value: Tensor) -> Tensor:
    """All of a tensor, of which this process may hold a part; every process asks for it."""
    full = getattr(value, "full_tensor", None)
    return full() if callable(full) else value


def laid_out(state: Mapping[str, Any], model: nn.Module) -> dict[str, Any]:
    """Return weights by name, each laid out like the model's own."""
    own = model.state_dict()
    return {name: _like(value, own.get(name)) for name, value in state.items()}


def optimizer_laid_out(state: Mapping[str, Any], optimizer: Optimizer) -> dict[str, Any]:
    """Return an optimizer's state, with tensors laid out like their parameters."""
    # A state knows its parameters by their positions, counted over all groups.
    own = [value for group in optimizer.param_groups for value in group["params"]]
    places = [place for group in state["param_groups"] for place in group["params"]]
    parameters = dict(zip(places, own, strict=True))
    entries = {
        place: {name: _like(value, parameters[place]) for name, value in entry.items()}
        for place, entry in state["state"].items()
    }
    return {**state, "state": entries}


def _like(value: Any, own: Any) -> Any:
    mesh = getattr(own, "device_mesh", None)
    if mesh is None or not isinstance(value, Tensor) or value.shape != own.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(own.device), mesh, own.placements)
