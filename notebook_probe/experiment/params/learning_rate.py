"""How fast it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from notebook_probe.experiment.params.door import WithRest

__all__ = ["LearningRateParams"]


class LearningRateParams(WithRest):
    """``func(global_step, **rest)`` is the rate of the update after so many updates.

    Parameters
    ----------
    func : callable, optional
        By default an exponential decay.
    """

    func: Callable[..., Any] | None = None
