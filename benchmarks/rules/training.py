"""A training that is ready to begin, and the step that most of them take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

__all__ = ["Fit", "Training", "fit", "keep_gradients"]

Watched = tuple[nn.Module, Optimizer]


@dataclass(frozen=True)
class Training:
    """Models, their optimizers, and what trains them a step further.

    Attributes
    ----------
    watched : sequence of (model, optimizer)
        Each is a run.
    step : callable
        ``step(i, batch)`` trains and returns the loss of each watched model.
    batches : iterator
        Without an end.
    n_steps : int
    logs : bool
        Whether the loop logs its loss and has its loader measured.
    parts : sequence of str
        Names by which the loop logs the losses of all its models, in the run of the first.
    error : callable, optional
        How bad the models are, asked before the first step and after the last; by default the loss
        of the first and the last tenth of the steps.
    factor : float
        A healthy training brings its error below this part of what it was.
    harm : callable, optional
        What the cause makes larger, asked at the end; by default the mean loss since the cause.
    """

    watched: Sequence[Watched]
    step: Callable[[int, Any], Sequence[float]]
    batches: Iterator[Any]
    n_steps: int = 240
    logs: bool = True
    error: Callable[[], float] | None = None
    factor: float = 0.7
    harm: Callable[[], float] | None = None
    parts: Sequence[str] = ()


@dataclass(frozen=True)
class Fit:
    """One update of one model, with what loops commonly do besides.

    Attributes
    ----------
    loss : callable
        ``loss(model, batch)``
    clip : float, optional
        Largest norm of the gradient.
    accumulate : int
        Backward passes to an update, each on its part of the batch.
    precision : dtype, optional
        Of autocast.
    before : dict of int to callable
        What happens before a step.
    prepare, backward : callable
        What is done before the backward passes, and each of them.
    """

    model: nn.Module
    optimizer: Optimizer
    loss: Callable[[nn.Module, Any], Tensor]
    clip: float | None = None
    accumulate: int = 1
    schedule: LRScheduler | None = None
    precision: torch.dtype | None = None
    before: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    prepare: Callable[[Optimizer], None] = Optimizer.zero_grad
    backward: Callable[[Tensor], None] = Tensor.backward

    def __call__(self, i: int, batch: Any) -> tuple[float]:
        self.before.get(i, _nothing)()
        self.prepare(self.optimizer)
        losses = [self._part(part) for part in _parts(batch, self.accumulate)]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        return (sum(losses),)

    def _part(self, part: Any) -> float:
        precision = self.precision or torch.float32
        with torch.autocast("cpu", precision, enabled=self.precision is not None):
            loss = self.loss(self.model, part)
        loss = loss / self.accumulate
        self.backward(loss)
        return loss.item()


def fit(
    model: nn.Module,
    optimizer: Optimizer,
    loss: Callable[[nn.Module, Any], Tensor],
    batches: Iterator[Any],
    *,
    n_steps: int = 240,
    logs: bool = True,
    factor: float = 0.7,
    error: Callable[[], float] | None = None,
    harm: Callable[[], float] | None = None,
    **of_the_step: Any,
) -> Training:
    """One model that is fitted to batches; ``of_the_step`` are fields of `Fit`."""
    step = Fit(model, optimizer, loss, **of_the_step)
    return Training(
        [(model, optimizer)], step, batches, n_steps, logs, error=error, factor=factor, harm=harm
    )


def keep_gradients(optimizer: Optimizer) -> None:
    """Leave the gradients of the last update where they are, in place of `zero_grad`."""


def _nothing() -> None:
    """Most steps are as any other."""


def _parts(batch: Any, n: int) -> Iterator[Any]:
    if n == 1:
        return iter([batch])
    return zip(*(tensor.chunk(n) for tensor in batch), strict=True)
