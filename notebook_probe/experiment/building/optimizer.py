"""The optimizer and its rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.errors import ParamError
from notebook_probe.experiment.building.gradients import AppliesGradients, ByGradients
from notebook_probe.experiment.learning_rates import LearningRate, exponential_decay
from notebook_probe.experiment.optimizers import ClipOptimizer
from notebook_probe.experiment.params.sections import LearningRateParams, OptimizerParams

__all__ = ["DEFAULT_OPTIMIZER", "make_optimizer", "with_default_optimizer", "with_default_rate"]

DEFAULT_OPTIMIZER = {"optimizer_class": torch.optim.SGD, "momentum": 0.9}
"""Default arguments of `ClipOptimizer`."""

SET_ELSEWHERE = {
    "lr": "learning_rate_params",
    "learning_rate": "learning_rate_params",
    "params": "model_params['trainable_scopes']",
}
"""Arguments of an optimizer that are not among its own parameters here."""


def with_default_optimizer(params: OptimizerParams) -> OptimizerParams:
    """Clipped gradient descent with momentum where no optimizer is named."""
    if params.optimizer is None:
        rest = {**DEFAULT_OPTIMIZER, **params.rest}
        return params.model_copy(update={"optimizer": ClipOptimizer, "rest": rest})
    return params


def with_default_rate(params: LearningRateParams) -> LearningRateParams:
    """Return the parameters, with an exponential decay if no function is given."""
    return params.model_copy(update={"func": params.func or exponential_decay})


def make_optimizer(
    params: OptimizerParams, rates: LearningRateParams, parameters: Sequence[tuple[str, Tensor]]
) -> tuple[Optimizer, LearningRate]:
    """Return optimizer and learning rate, with defaults filled in.

    Raises
    ------
    ParamError
        A rate among the arguments of the optimizer, or what is no optimizer.
    """
    for name, by in SET_ELSEWHERE.items():
        if name in params.rest:
            raise ParamError(f"optimizer_params[{name!r}]: this is set by {by}")
    assert params.optimizer is not None
    assert rates.func is not None
    # Constructors need a rate although the schedule sets it before each update.
    first = rates.func(0, **rates.rest)
    several = params.rest.get("optimizer_class")
    given: list[Any] = [*parameters]
    optimizer = params.optimizer(
        params=[given for _ in several] if isinstance(several, list) else given,
        # A list of rates is one for each of several optimizers or groups.
        lr=[*first] if isinstance(first, list | tuple) else float(first),
        **params.rest,
    )
    if isinstance(optimizer, AppliesGradients) and not isinstance(optimizer, Optimizer):
        optimizer = ByGradients(optimizer, parameters, float(first))
    if not isinstance(optimizer, Optimizer):
        raise ParamError(
            f"optimizer_params['optimizer'] makes {type(optimizer).__name__}; a "
            f"torch.optim.Optimizer is expected, or what has compute_gradients and apply_gradients"
        )
    return optimizer, LearningRate(optimizer, rates.func, **rates.rest)
