"""A model to be tried: how it is built, its batches, and its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from tests.models import loss_of

__all__ = ["N_WORDS", "Batch", "Case", "images", "language", "own_loss", "words"]

Batch: TypeAlias = dict[str, Any]
"""The keyword arguments of a forward."""

N_WORDS = 50


def own_loss(output: Any) -> Tensor:
    """The loss that models of Hugging Face return with their output."""
    return output.loss


@dataclass(frozen=True)
class Case:
    """A tiny model with random weights; nothing of it comes from outside.

    Attributes
    ----------
    plain : callable, optional
        The same model without checkpointing: it knows what each module's one call must give.
    modules, parameters : float
        The least shares of modules with a recorded output and of parameters with a gradient.
    """

    build: Callable[[], nn.Module]
    batch: Callable[[int], Batch]
    loss: Callable[[Any], Tensor] = loss_of
    plain: Callable[[], nn.Module] | None = None
    modules: float = 1.0
    parameters: float = 1.0


def seeded(step: int) -> torch.Generator:
    return torch.Generator().manual_seed(step)


def words(step: int) -> Tensor:
    """Two sequences of twelve."""
    return torch.randint(1, N_WORDS, (2, 12), generator=seeded(step))


def images(step: int, size: int) -> Tensor:
    """Two images of three channels."""
    return torch.randn(2, 3, size, size, generator=seeded(step))


def language(step: int) -> Batch:
    """What language models are trained on."""
    return {"input_ids": words(step), "labels": words(step)}
