"""Batches of the training loop: how long it waits for them, and what it hands over of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["Batches", "read_batch"]

Batch = TypeVar("Batch")


class Batches(Generic[Batch]):
    """A loader whose waiting is measured, as part of the step that is open meanwhile.

    Parameters
    ----------
    loader : iterable
    observer : Observer
    """

    def __init__(self, loader: Iterable[Batch], observer: Observer) -> None:
        self._loader, self._observer = loader, observer

    def __len__(self) -> int:
        return len(cast(Sized, self._loader))

    def __iter__(self) -> Iterator[Batch]:
        begun = time.perf_counter()
        for batch in self._loader:
            self._waited(time.perf_counter() - begun)
            yield batch
            begun = time.perf_counter()
        self._waited(time.perf_counter() - begun)

    def _waited(self, seconds: float) -> None:
        training = self._observer.training
        training.interval.wait(training.frame, seconds)


def read_batch(name: str, value: Any) -> list[Tensor]:
    """The tensors of what is handed over; numbers and arrays become one.

    Raises
    ------
    QuantityError
        What was given and what is allowed.

    Examples
    --------
    >>> read_batch("indices", [3, 1])
    [tensor([3, 1])]
    """
    tensors = tensors_of(value)
    if tensors:
        return tensors
    try:
        return [torch.as_tensor(value)]
    except (TypeError, ValueError, RuntimeError):
        raise QuantityError(
            f"batch({name}=...): {type(value).__name__} {value!r}"[:120] + "; a tensor, an array, "
            "a list of numbers or a container of tensors is expected"
        ) from None
