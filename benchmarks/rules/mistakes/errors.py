"""Errors of a model, measured without its loss, which may be the mistake."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.rules.data import Pair
from benchmarks.rules.losses import next_token

__all__ = ["doubt", "misjudged", "misread", "off", "unlike"]


def misread(model: nn.Module, data: Pair) -> Callable[[], float]:
    """Part of the classes that an evaluation gets wrong."""

    def error(told: Tensor, y: Tensor) -> Tensor:
        return told.argmax(-1).ne(y).float().mean()

    return _evaluated(model, data, error)


def misjudged(model: nn.Module, data: Pair) -> Callable[[], float]:
    """Part of the yes and no that an evaluation gets wrong."""

    def error(told: Tensor, y: Tensor) -> Tensor:
        return (told.flatten() > 0).ne(y > 0).float().mean()

    return _evaluated(model, data, error)


def off(model: nn.Module, data: Pair) -> Callable[[], float]:
    """Mean squared difference from the targets."""

    def error(told: Tensor, y: Tensor) -> Tensor:
        return (told.flatten() - y.flatten()).square().mean()

    return _evaluated(model, data, error)


def unlike(model: nn.Module, x: Tensor) -> Callable[[], float]:
    """Mean squared difference between inputs and what the model makes of them."""

    def error(told: Tensor, y: Tensor) -> Tensor:
        return (told - y).square().mean()

    return _evaluated(model, (x, x), error)


def doubt(model: nn.Module, ids: Tensor) -> Callable[[], float]:
    """Cross entropy of the next token."""

    def found() -> float:
        with torch.no_grad():
            told = next_token(model, ids).item()
        return told if math.isfinite(told) else math.inf

    return found


def _evaluated(
    model: nn.Module, data: Pair, error: Callable[[Tensor, Tensor], Tensor]
) -> Callable[[], float]:
    def found() -> float:
        was_training = model.training
        model.eval()
        with torch.no_grad():
            x = data[0].to(next(model.parameters()).dtype)
            told = error(model(x), data[1]).item()
        model.train(was_training)
        return told if math.isfinite(told) else math.inf

    return found
