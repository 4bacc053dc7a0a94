"""The steps of a trainer's side, or of a step function."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from torch import nn

from notebook_probe.train.collector.executor import Executor, Step
from notebook_probe.train.collector.thread_steps import ThreadSteps

__all__ = ["ExecutorSteps"]


class ExecutorSteps:
    """Hears of an executor's steps.

    Parameters
    ----------
    executor : Executor
        Held weakly; it holds this until `close`.
    ended : callable
        ``ended(step)`` is told of each that is complete.
    """

    def __init__(self, executor: Executor, ended: Callable[[Step], None]) -> None:
        self._executor = weakref.ref(executor)
        self.threads = ThreadSteps(ended)
        self._link = weakref.ref(_Link(self, executor))

    @property
    def model(self) -> nn.Module | None:
        executor = self._executor()
        return executor.model if executor is not None else None

    @property
    def is_alive(self) -> bool:
        return self._executor() is not None

    def now(self) -> Step | None:
        return self.threads.now(_is_training(self.model))

    def close(self) -> None:
        link = self._link()
        if link is not None:
            link.remove()

    def begin(self) -> None:
        """A step of the executor begins on this thread."""
        executor = self._executor()
        if executor is not None:
            self.threads.begin(Step(executor.step, _is_training(executor.model)))


class _Link:
    """What the executor calls; the executor alone holds it, as it holds the executor."""

    def __init__(self, steps: ExecutorSteps, executor: Executor) -> None:
        self._steps = steps
        self._removals = [executor.on_begin(self._begin), executor.on_end(self._end)]

    def remove(self) -> None:
        while self._removals:
            self._removals.pop()()

    def _begin(self) -> None:
        self._steps.begin()

    def _end(self) -> None:
        self._steps.threads.end()


def _is_training(model: nn.Module | None) -> bool:
    return model is None or model.training
