"""Reported numbers of training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from notebook_probe.train.metrics.averages import MovingAverage, Value, on_host
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.metrics.user_metrics import UserMetrics
from notebook_probe.train.trainer.forward import Passed
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Reports"]


class Reports:
    """Losses, their moving averages, and the metrics of the user.

    Parameters
    ----------
    metrics : UserMetrics
    """

    def __init__(self, metrics: UserMetrics) -> None:
        self._metrics = metrics
        self._total, self._own = MovingAverage(), MovingAverage()

    def add(self, passed: Sequence[Passed]) -> Metrics[Value]:
        """Report a step, by the batches of its group."""
        total = _mean([one.total for one in passed])
        found: Metrics[Value] = Metrics(loss=total, loss_moving=self._total.add(total))
        own = [one.own for one in passed if one.own is not None]
        if own:
            found["fn_loss_moving"] = self._own.add(_mean(own))
        if len(self._metrics):
            with uninterrupted, torch.no_grad():
                for one in passed:
                    self._metrics.update(one.output, one.target)
                found.update(self._metrics.values())
        return found

    def reset(self) -> None:
        """Start all averages and metrics again."""
        self._total.reset()
        self._own.reset()
        self._metrics.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the averages."""
        return {"total": self._total.state_dict(), "own": self._own.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._total.load_state_dict(state["total"])
        self._own.load_state_dict(state["own"])


def _mean(values: Sequence[Tensor]) -> Value:
    if len(values) == 1:
        return on_host(values[0])
    return on_host(torch.stack([value.detach() for value in values]).mean())
