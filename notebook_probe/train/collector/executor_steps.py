"""The steps of a trainer's side, or of a step function."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from notebook_probe.train.collector.executor import Executor, Step
from notebook_probe.train.collector.thread_steps import ThreadSteps

__all__ = ["ExecutorSteps", "Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a trainer: its executor and model.

    Attributes
    ----------
    executor : Executor
    counted : Executor
        Executor whose complete steps are updates: of a trainer's phases, the training phase.
    model : nn.Module or None
        Model that the executor runs.
    number : callable or None
        ``number()``, the updates completed, where they are counted; None while they are not.
    """

    executor: Executor
    counted: Executor
    model: nn.Module | None
    number: Callable[[], int | None] | None = None


class ExecutorSteps:
    """Listener to an executor's steps.

    Parameters
    ----------
    side : Side
        Executor and model are held weakly; the executor holds this until `close`.
    first : int
        Number of the first step, unless the side has one.
    ended : callable
        ``ended(step)`` is called with each that is complete.
    """

    def __init__(self, side: Side, first: int, ended: Callable[[Step], None]) -> None:
        self._executor = weakref.ref(side.executor)
        self._model = weakref.ref(side.model) if side.model is not None else None
        self._number, self.completed = side.number, first
        self.threads = ThreadSteps(ended)
        # Held by the executor alone, so that attaching keeps nothing alive.
        self._link = weakref.ref(_Link(self, side))

    @property
    def model(self) -> nn.Module | None:
        return self._model() if self._model is not None else None

    @property
    def is_alive(self) -> bool:
        return self._executor() is not None

    def now(self) -> Step | None:
        return self.threads.now(self._is_training)

    def close(self) -> None:
        link = self._link()
        if link is not None:
            link.remove()

    def begin(self) -> None:
        """Start a step of the executor on this thread."""
        number = self._number() if self._number is not None else None
        self.threads.begin(Step(self.completed if number is None else number, self._is_training))

    @property
    def _is_training(self) -> bool | None:
        model = self.model
        return None if model is None else model.training


class _Link:
    """Callbacks of the executor; only executors refer to it, as it refers to them."""

    def __init__(self, steps: ExecutorSteps, side: Side) -> None:
        self._steps = steps
        self._removals = [
            side.executor.on_begin(self._begin),
            side.executor.on_end(self._end),
            side.counted.on_end(self._count),
        ]

    def remove(self) -> None:
        while self._removals:
            self._removals.pop()()

    def _begin(self) -> None:
        self._steps.begin()

    def _end(self) -> None:
        self._steps.threads.end()

    def _count(self) -> None:
        self._steps.completed += 1
