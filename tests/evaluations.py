"""The ways in which users evaluate a model between steps; afterwards it is in train mode."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["EVALUATIONS", "evaluation", "inference"]


def evaluation(model: nn.Module, batch: Tensor) -> None:
    model.eval()
    with torch.no_grad():
        model(batch)
    model.train()


def inference(model: nn.Module, batch: Tensor) -> None:
    model.eval()
    with torch.inference_mode():
        model(batch)
    model.train()


def evaluation_with_gradients(model: nn.Module, batch: Tensor) -> None:
    model.eval()
    model(batch)
    model.train()


def no_grad_in_train_mode(model: nn.Module, batch: Tensor) -> None:
    with torch.no_grad():
        model(batch)


EVALUATIONS = (evaluation, inference, evaluation_with_gradients, no_grad_in_train_mode)
