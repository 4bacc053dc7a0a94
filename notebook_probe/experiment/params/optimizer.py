"""By what the weights are changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from notebook_probe.experiment.params.door import WithRest

__all__ = ["OptimizerParams"]


class OptimizerParams(WithRest):
    """``optimizer(parameters, lr=..., **rest)`` makes it.

    Parameters
    ----------
    optimizer : class, optional
        By default clipped stochastic gradient descent with a momentum of 0.9.
    """

    deprecated: ClassVar[Mapping[str, str]] = {"func": "optimizer"}

    optimizer: Callable[..., Any] | None = None
