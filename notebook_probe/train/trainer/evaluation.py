"""Evaluation of a model that leaves everything unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from notebook_probe.train.generators import same_generators
from notebook_probe.train.gradient_mode import gradient_mode_kept
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["evaluating", "modes", "set_modes"]


def modes(model: nn.Module) -> list[tuple[nn.Module, bool]]:
    """Every module, and whether it is in training mode."""
    return [(module, module.training) for module in model.modules()]


def set_modes(before: list[tuple[nn.Module, bool]]) -> None:
    """Put the modes back one by one, as a frozen part keeps its own."""
    for module, training in before:
        module.training = training


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Run in evaluation mode without gradients; restore modes, buffers and generators."""
    before, buffers = modes(model), _buffers(model)
    with gradient_mode_kept():
        try:
            model.eval()
            with torch.no_grad(), same_generators():
                yield
        finally:
            with uninterrupted:
                set_modes(before)
                with torch.no_grad():
                    for buffer in buffers:
                        buffer.put_back()


@dataclass(frozen=True, slots=True)
class _Buffer:
    """Former buffer: the tensor itself, as a forward may put another in its place."""

    owner: nn.Module
    name: str
    tensor: Tensor | None
    value: Tensor | None
    version: int

    def put_back(self) -> None:
        self.owner._buffers[self.name] = self.tensor
        # Each write in place counts the version up, so that no values need to be compared.
        if self.tensor is None or self.value is None or self.tensor._version == self.version:
            return  # untouched
        self.tensor.copy_(self.value)


def _buffers(model: nn.Module) -> list[_Buffer]:
    return [
        _Buffer(module, name, buffer, buffer.clone(), buffer._version)
        if buffer is not None
        else _Buffer(module, name, None, None, 0)
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
