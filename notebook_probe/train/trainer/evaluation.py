"""Evaluating a model, and leaving everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from notebook_probe.train.generators import same_generators

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
    """In evaluation mode and without gradients; modes, buffers and generators come back."""
    before, buffers = modes(model), _buffers(model)
    model.eval()
    try:
        with torch.no_grad(), same_generators():
            yield
    finally:
        set_modes(before)
        _put_back(buffers)


def _buffers(model: nn.Module) -> list[tuple[Tensor, Tensor, int]]:
    return [(buffer, buffer.clone(), buffer._version) for buffer in model.buffers()]


def _put_back(buffers: list[tuple[Tensor, Tensor, int]]) -> None:
    with torch.no_grad():
        for buffer, value, version in buffers:
            if buffer._version != version:  # the rest is untouched
                buffer.copy_(value)
