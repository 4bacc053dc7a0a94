"""The loss of fixed batches, with other parameters in place of the model's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.train.data.batch import Batch, read_item

__all__ = ["MeanLoss", "kept_batches"]

LossFn = Callable[[Any, Any], Tensor]


class MeanLoss:
    """The mean over batches of the loss of each, in evaluation mode and without gradients.

    Parameters
    ----------
    model : nn.Module
    batches : sequence of ProbeBatch
        Copies: the same at every call.
    """

    def __init__(self, model: nn.Module, batches: list[ProbeBatch]) -> None:
        if not batches:
            raise ValueError("a landscape needs a batch or more of data; there is none")
        self.model, self.batches = unwrap(model), batches

    def untouched(self) -> AbstractContextManager[None]:
        """Context in which it may be evaluated; model and generators are restored afterwards."""
        return self.batches[0].untouched(self.model)

    def __call__(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return the loss with these parameters and buffers, 0-d float64; inside `untouched`.

        The model may write into the buffers.
        """
        with torch.no_grad():
            # In float64: differences between neighboring points may be small.
            losses = [batch.loss(self.model, state).double() for batch in self.batches]
            return torch.stack(losses).mean()


def kept_batches(batches: Iterable[Any], loss_fn: LossFn, num_samples: int) -> list[ProbeBatch]:
    """Copy the first ``max(1, num_samples // batch size)`` batches.

    Parameters
    ----------
    batches : iterable of batches
        Batches as for `train.Loop`: ``(inputs, targets)``, dicts.
    loss_fn : callable
        ``loss_fn(outputs, targets)``.
    num_samples : int

    Raises
    ------
    ValueError
        There is none, or what comes is no batch.
    """
    source = iter(batches)
    kept = [_kept(read_item(item), loss_fn) for item in islice(source, 1)]
    if not kept:
        raise ValueError("batches: there is none; a landscape needs one or more")
    # The size of a batch is known only now.
    size = _size(kept[0])
    more = islice(source, max(1, num_samples // size) - 1)
    return [*kept, *(_kept(read_item(item), loss_fn) for item in more)]


def _kept(batch: Batch, loss_fn: LossFn) -> ProbeBatch:
    given = dict(batch.keywords) if batch.keywords else batch.inputs
    targets = batch.labels[0] if len(batch.labels) == 1 else batch.labels
    return ProbeBatch.of(given, targets, loss_fn)


def _size(batch: ProbeBatch) -> int:
    """Return the samples of a batch: the length of its first tensor."""
    first = next(iter(tensors_of([batch.args, batch.kwargs])), None)
    return max(1, len(first)) if first is not None and first.dim() else 1
