"""Trainings from dicts, and the same by hand."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from notebook_probe.experiment import train, train_from_params
from notebook_probe.experiment.building.training import TrainedModel
from tests.experiment.digits import BATCH, digits, network, params, weights

DATA: dict[str, Any] = {"data_params": {"func": digits, "batch_size": BATCH}}


def built(**other: Any) -> tuple[TrainedModel, ...]:
    return train_from_params(**params(**other), dont_run=True)["trainings"]


def trained(**other: Any) -> TrainedModel:
    (training,) = built(**other)
    train([training])
    return training


def endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def by_hand(n_units: int, n_minibatches: int = 1, rate: float = 0.01) -> list[Tensor]:
    """The default training, as one would write it in torch."""
    torch.manual_seed(3)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    batches = endless(digits(BATCH // n_minibatches))
    for _ in range(n_units):
        optimizer.zero_grad()
        for _ in range(n_minibatches):
            batch = next(batches)
            loss = F.cross_entropy(model(batch["images"]), batch["labels"], reduction="none")
            (loss.mean() / n_minibatches).backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
    return weights(model)


def losing(*losses: float) -> Any:
    """A loss of these values, unit by unit."""
    values = iter(losses)

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return outputs.mean() * 0 + next(values)

    return {"loss_func": loss}
