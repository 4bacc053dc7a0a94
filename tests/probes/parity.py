"""All that a training leaves behind, bit by bit: it must not depend on being watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["bits", "differing", "everything"]


def everything(model: nn.Module, optimizers: Iterable[Optimizer] = ()) -> dict[str, bytes]:
    """Parameters, gradients, buffers, the optimizers' state, the random state, by name."""
    kept: dict[str, bytes] = {"random state": bits(torch.get_rng_state())}
    for name, value in model.named_parameters():
        kept[name] = bits(value)
        if value.grad is not None:
            kept[f"gradient of {name}"] = bits(value.grad)
    kept |= {f"buffer {name}": bits(value) for name, value in model.named_buffers()}
    for i, optimizer in enumerate(optimizers):
        kept |= _tensors(f"optimizer {i}", optimizer.state_dict()["state"])
    return kept


def bits(tensor: Tensor) -> bytes:
    """Its bytes: equal for equal NaN, different for 0.0 and -0.0."""
    dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
    return dense.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """What is not the same in both."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _tensors(name: str, state: Any) -> dict[str, bytes]:
    """Every tensor and number somewhere in an optimizer's state."""
    if isinstance(state, Tensor):
        return {name: bits(state)}
    if isinstance(state, Mapping):
        state = state.items()
    elif isinstance(state, list | tuple):
        state = enumerate(state)
    else:
        return {name: repr(state).encode()}
    found: dict[str, bytes] = {}
    for key, part in state:
        found |= _tensors(f"{name}.{key}", part)
    return found
