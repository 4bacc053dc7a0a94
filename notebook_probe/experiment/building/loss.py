"""The loss of a batch, as its parameters say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from notebook_probe.errors import ParamError, UnknownNameError, near
from notebook_probe.experiment.params.sections import LossParams
from notebook_probe.train.trainer.losses import drop_losses

__all__ = ["ExperimentLoss", "cross_entropy_per_case"]


def cross_entropy_per_case(outputs: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of each case: what is made small where nothing is said."""
    return F.cross_entropy(outputs, labels, reduction="none")


class ExperimentLoss:
    """``loss_func(outputs, *targets, **kwargs)``, and what makes one number of it.

    Parameters
    ----------
    params : LossParams

    Examples
    --------
    >>> loss = ExperimentLoss(LossParams(loss_func=F.mse_loss, pred_targets=("y",)))
    >>> loss(torch.zeros(2), {"y": torch.full((2,), 3.0)})
    tensor(9.)
    """

    def __init__(self, params: LossParams) -> None:
        self._params = params
        self._function = params.loss_func or cross_entropy_per_case

    def targets(self, batch: Mapping[str, Any]) -> list[Any]:
        """Return the targets of the predictions for a batch."""
        names = self._params.pred_targets
        for name in names:
            if name not in batch:
                raise UnknownNameError(
                    f"loss_params['pred_targets']: no {name!r} in a batch; {near(name, batch)}"
                )
        return [batch[name] for name in names]

    def __call__(self, outputs: Any, batch: Mapping[str, Any]) -> Tensor:
        """Return the loss; the trainer averages it unless it is one number."""
        params = self._params
        loss = self._function(outputs, *self.targets(batch), **params.loss_func_kwargs)
        if params.is_averaged:
            return loss
        drop_losses()  # they belong to the default alone
        if params.agg_func is not None:
            loss = params.agg_func(loss, **params.agg_func_kwargs)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            kind = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise ParamError(f"loss_params['agg_func'] leads to {kind}; one number is expected")
        return loss.reshape(())

    @torch.no_grad()
    def as_target(self, inputs: Mapping[str, Any], output: Any) -> dict[str, Any]:
        """Return the default result of a validation."""
        return {"loss": self(output, inputs).mean()}
