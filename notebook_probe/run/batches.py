"""Batches of the training loop: how long it waits for them, and what it hands over of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.probes.values import tensors_of

__all__ = ["Batches", "read_batch"]

Batch = TypeVar("Batch")


class Batches(Generic[Batch]):
    """A loader whose waiting is measured.

    Parameters
    ----------
    loader : iterable
    waited : callable
        Told the seconds that each batch, and beginning and ending an epoch, took.
    """

    def __init__(self, loader: Iterable[Batch], waited: Callable[[float], None]) -> None:
        self._loader, self._waited = loader, waited

    def __len__(self) -> int:
        return len(cast(Sized, self._loader))

    def __iter__(self) -> Iterator[Batch]:
        begun = time.perf_counter()
        for batch in self._loader:
            self._waited(time.perf_counter() - begun)
            yield batch
            begun = time.perf_counter()
        self._waited(time.perf_counter() - begun)


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
