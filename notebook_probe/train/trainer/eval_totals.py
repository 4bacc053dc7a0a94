"""Means and metrics over the batches of an evaluation."""

from __future__ import annotations

from notebook_probe.train.metrics.averages import Mean, on_host
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.metrics.user_metrics import UserMetrics
from notebook_probe.train.trainer.forward import Passed

__all__ = ["EvalTotals"]


class EvalTotals:
    """Means over evaluated batches; losses are weighted by the size of their batches.

    Parameters
    ----------
    metrics : UserMetrics
        Metrics of the user.

    Attributes
    ----------
    n_batches : int
        Since the last reset.
    """

    def __init__(self, metrics: UserMetrics) -> None:
        self._metrics = metrics
        self.reset()

    def reset(self) -> None:
        """Begin again with no batch."""
        self._metrics.reset()
        self._total, self._own = Mean(), Mean()
        self._has_own, self.n_batches = False, 0

    def add(self, passed: Passed) -> None:
        """Add one batch."""
        self._total.add(on_host(passed.total), passed.weight)
        if passed.own is not None:
            self._has_own = True
            self._own.add(on_host(passed.own), passed.weight)
        self._metrics.update(passed.output, passed.target)
        self.n_batches += 1

    def values(self) -> Metrics[float]:
        """Return the means over all batches: ``loss``, ``fn_loss``, and the metrics of the user."""
        found = {"loss": self._total.value()}
        if self._has_own:
            found["fn_loss"] = self._own.value()
        own = {name: float(one) for name, one in self._metrics.values().items()}
        return Metrics({**found, **own})
