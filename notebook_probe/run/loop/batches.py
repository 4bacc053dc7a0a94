"""Batches of the training loop: how long it waits for them, how many, and what of them it tells."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.run.loop.passes import DataPasses

__all__ = ["Batches", "read_batch"]

Batch = TypeVar("Batch")


class Batches(Generic[Batch]):
    """A loader whose waiting is measured, as part of the step that is open meanwhile.

    Parameters
    ----------
    loader : iterable
    observer : Observer
    passes : DataPasses
        Notes where one begins, and how many samples a step takes.
    """

    def __init__(self, loader: Iterable[Batch], observer: Observer, passes: DataPasses) -> None:
        self._loader, self._observer, self._passes = loader, observer, passes

    def __len__(self) -> int:
        return len(cast(Sized, self._loader))

    def __iter__(self) -> Iterator[Batch]:
        through = self._passes.begin(self._loader)
        try:
            begun = time.perf_counter()
            for batch in self._loader:
                self._waited(time.perf_counter() - begun)
                through.draw()
                yield batch
                begun = time.perf_counter()
            self._waited(time.perf_counter() - begun)
            through.exhaust()
        finally:
            through.close()

    def _waited(self, seconds: float) -> None:
        training = self._observer.training
        training.interval.wait(training.frame, seconds)


def read_batch(name: str, value: Any) -> list[Tensor]:
    """Return the tensors in a batch; numbers and arrays become one.

    Raises
    ------
    QuantityError
        Invalid value, with what is allowed.

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
