"""The ways in which users copy a model."""

from __future__ import annotations

import copy
import io
import pickle

import torch
from torch import nn

__all__ = ["deep", "pickled", "saved"]


def deep(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model)


def pickled(model: nn.Module) -> nn.Module:
    return pickle.loads(pickle.dumps(model))


def saved(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)
