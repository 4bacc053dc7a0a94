"""Targets of a collector, and the steps of each kind."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from torch import nn

from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.train.collector.executor import Executor, OpenSteps, Step
from notebook_probe.train.collector.executor_steps import ExecutorSteps, Side
from notebook_probe.train.collector.module_steps import EvaluationSteps, TrainingSteps

__all__ = ["Found", "HasSides", "HasTrainer", "Target", "side_of", "side_of_loop", "steps_of"]


class HasSides(Protocol):
    """A trainer: what it trains by and what it evaluates by are executors."""

    @property
    def model(self) -> nn.Module: ...
    @property
    def training(self) -> Executor: ...
    @property
    def evaluation(self) -> Executor: ...


class HasTrainer(Protocol):
    """A loop; one with a ``n_updates``, the number of updates completed, counts its steps."""

    @property
    def trainer(self) -> HasSides: ...


Target: TypeAlias = "nn.Module | Executor | HasSides"

Found: TypeAlias = "nn.Module | Side"

SIDES = {"training": "training", "eval": "evaluation"}


def side_of(target: object, phase: PhaseName) -> Found:
    """Return the module or the executor of a target.

    Raises
    ------
    TypeError
        The executor cannot say where its steps begin and end.
    """
    if isinstance(target, nn.Module):
        return target
    if isinstance(target, Executor):
        return Side(target, target, getattr(target, "model", None))
    side, training = getattr(target, SIDES[phase], None), getattr(target, "training", None)
    if isinstance(side, Executor) and isinstance(training, Executor):
        return Side(side, training, getattr(target, "model", None))
    advice = (
        "; a call of a plain function cannot be noticed: make it a StepFunction"
        if callable(target)
        else ""
    )
    raise TypeError(
        f"attach_to_executor({type(target).__name__}): a module, a trainer or one of its sides, or "
        f"what has on_begin and on_end is expected{advice}"
    )


def side_of_loop(loop: object, phase: PhaseName) -> Found:
    """Return the side of the loop's trainer, counted as the loop counts.

    Raises
    ------
    TypeError
        The executor has no trainer, or one that `side_of` does not know.
    """
    trainer = getattr(loop, "trainer", None)
    if trainer is None:
        raise TypeError(
            f"attach_to_loop({type(loop).__name__}): a loop with a .trainer is expected; "
            f"attach_to_executor takes modules"
        )
    side = side_of(trainer, phase)
    if isinstance(side, Side) and hasattr(loop, "n_updates"):
        return replace(side, number=_StateStep(loop))
    return side


def steps_of(side: Found, phase: PhaseName, first: int, ended: Callable[[Step], None]) -> OpenSteps:
    """Return the steps from now on, counted from ``first`` unless they have numbers."""
    if isinstance(side, Side):
        return ExecutorSteps(side, first, ended)
    kind = TrainingSteps if phase == "training" else EvaluationSteps
    return kind(side, first, ended)


class _StateStep:
    """Completed updates of a loop, which is referenced weakly."""

    def __init__(self, loop: Any) -> None:
        self._loop = weakref.ref(loop)

    def __call__(self) -> int | None:
        loop = self._loop()
        return None if loop is None else int(loop.n_updates)
