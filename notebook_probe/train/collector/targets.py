"""What a collector may be attached to, and the steps of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from torch import nn

from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.train.collector.executor import Executor, OpenSteps, Step
from notebook_probe.train.collector.executor_steps import ExecutorSteps
from notebook_probe.train.collector.module_steps import EvaluationSteps, TrainingSteps

__all__ = ["HasSides", "HasTrainer", "Target", "side_of", "steps_of"]


class HasSides(Protocol):
    """A trainer: what it trains by and what it evaluates by are executors."""

    @property
    def training(self) -> Executor: ...
    @property
    def evaluation(self) -> Executor: ...


class HasTrainer(Protocol):
    """A loop."""

    @property
    def trainer(self) -> HasSides: ...


Side: TypeAlias = "nn.Module | Executor"
Target: TypeAlias = "Side | HasSides"

SIDES = {"training": "training", "eval": "evaluation"}


def side_of(target: object, phase: PhaseName) -> Side:
    """The module or executor that is meant.

    Raises
    ------
    TypeError
        It cannot say where its steps begin and end.
    """
    if isinstance(target, nn.Module | Executor):
        return target
    side = getattr(target, SIDES[phase], None)
    if isinstance(side, Executor):
        return side
    advice = (
        "; of a function nobody hears when it is called: make it a StepFunction"
        if callable(target)
        else ""
    )
    raise TypeError(
        f"attach_to_executor({type(target).__name__}): a module, a trainer or one of its sides, or "
        f"what has model, step, on_begin and on_end is expected{advice}"
    )


def steps_of(side: Side, phase: PhaseName, first: int, ended: Callable[[Step], None]) -> OpenSteps:
    """Its steps from now on, those of a module counted from ``first``."""
    if not isinstance(side, nn.Module):
        return ExecutorSteps(side, ended)
    kind = TrainingSteps if phase == "training" else EvaluationSteps
    return kind(side, first, ended)
