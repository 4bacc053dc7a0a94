"""A small real experiment: the digits of scikit-learn, and a network that learns them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from tests.digits import digits as all_digits

BATCH = 40


@cache
def rows() -> list[dict[str, Tensor]]:
    images, labels = all_digits()
    return [
        {"images": image, "labels": label}
        for image, label in zip(images[:400], labels[:400], strict=True)
    ]


def digits(batch_size: int, shuffle: bool = True) -> DataLoader[Any]:
    """Ten batches of 40."""
    return DataLoader(rows(), batch_size=batch_size, shuffle=shuffle)  # type: ignore[arg-type]


def network(width: int = 16, dropout: float = 0.25) -> nn.Module:
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 10))


def accuracy(inputs: Mapping[str, Tensor], output: Tensor) -> dict[str, Tensor]:
    return {"accuracy": (output.argmax(1) == inputs["labels"]).float().mean()}


def params(**other: Mapping[str, Any]) -> dict[str, Any]:
    """Dicts of a training that writes nothing; keys of a dict may be replaced one by one."""
    given: dict[str, Any] = {
        "save_params": {"exp_id": "digits", "do_save": False},
        "model_params": {"func": network, "seed": 3},
        "train_params": {"data_params": {"func": digits, "batch_size": BATCH}, "num_steps": 12},
        "skip_check": True,
    }
    for name, changes in other.items():
        given[name] = {**given.get(name, {}), **changes} if isinstance(changes, dict) else changes
    return given


def weights(model: nn.Module) -> list[Tensor]:
    return [value.detach().clone() for value in model.parameters()]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))
