"""Parameters of what is trained, and how: model, loss, optimizer and learning rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.base import Given, Name, Names, NamesOrNone, Whole, WithRest

__all__ = ["LearningRateParams", "LossParams", "ModelParams", "OptimizerParams"]


def _device(value: Any) -> Any:
    """Return one device; of tfutils' list of devices the only one."""
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError("one device for a model is expected")
        (value,) = value
    if value is None or isinstance(value, torch.device):
        return value
    try:
        return torch.device(value)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"no device: {error}") from None


class ModelParams(WithRest):
    """``func(inputs=first batch, train=True, seed=seed, **rest)`` makes it.

    Parameters
    ----------
    func : callable
        Returns the module, or ``(module, cfg)``; is given of the first three what it accepts.
    seed : int
        Of all random generators.
    prefix : str, optional
        What it is called among several.
    devices : device, optional
    trainable_scopes : names, optional
        Parameters whose names begin so are trained, no others.
    """

    func: Callable[..., Any]
    # The limit is that of np.random.seed, which takes 32 bits.
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
    prefix: Name | None = None
    devices: Annotated[torch.device | None, BeforeValidator(_device)] = None
    trainable_scopes: NamesOrNone = None


class LossParams(Given):
    """``loss_func(outputs, *[inputs[key] for key in pred_targets], **loss_func_kwargs)``.

    Parameters
    ----------
    pred_targets : names
        Keys of the batch.
    loss_func : callable, optional
        By default the cross entropy of each case.
    loss_func_kwargs, agg_func_kwargs : dict
    agg_func : callable or None, optional
        ``agg_func(loss, **agg_func_kwargs)``. Left out, the loss is averaged and the terms that
        the model adds by `add_loss` are added; with None it is the loss as returned.
    """

    deprecated: ClassVar[Mapping[str, str]] = {
        "loss_per_case_func": "loss_func",
        "targets": "pred_targets",
    }

    pred_targets: Names = ("labels",)
    loss_func: Callable[..., Any] | None = None
    loss_func_kwargs: dict[str, Any] = Field(default_factory=dict)
    agg_func: Callable[..., Any] | None = None
    agg_func_kwargs: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_averaged(self) -> bool:
        """True if no aggregation of the losses of cases was given."""
        # An explicit None means "take the loss as it is", so it is the presence of the key that
        # counts.
        return "agg_func" not in self.model_fields_set


class OptimizerParams(WithRest):
    """``optimizer(parameters, lr=..., **rest)`` makes it.

    Parameters
    ----------
    optimizer : class, optional
        By default clipped stochastic gradient descent with a momentum of 0.9.
    """

    deprecated: ClassVar[Mapping[str, str]] = {"func": "optimizer"}

    optimizer: Callable[..., Any] | None = None


class LearningRateParams(WithRest):
    """``func(global_step, **rest)`` is the rate of the update after so many updates.

    Parameters
    ----------
    func : callable, optional
        By default an exponential decay.
    """

    func: Callable[..., Any] | None = None
