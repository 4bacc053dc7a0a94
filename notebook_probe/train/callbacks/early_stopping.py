"""Early stopping of a training that no longer improves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from notebook_probe.checks import whole_number
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.printable import counted
from notebook_probe.train.callbacks.best import Best, Mode
from notebook_probe.train.loop.loop import Loop

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """Stop a loop after several evaluations in a row without an improvement.

    Parameters
    ----------
    monitor : str
        Recorded name of a number of the evaluations.
    patience : int
        Number of evaluations without an improvement, at least 1.
    mode : "min" or "max"
    min_delta : float
        Smallest change that counts as an improvement.

    Attributes
    ----------
    best, best_step
        Best value and its step; NaN and -1 before the first evaluation.
    reason : str
        Reason why the loop was stopped; empty if it was not.

    Examples
    --------
    >>> stopping = loop.add(EarlyStopping("eval_loss", patience=5))  # doctest: +SKIP
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        patience: int = 3,
        mode: Mode = "min",
        min_delta: float = 0.0,
    ) -> None:
        self.monitor, self.patience = monitor, whole_number("patience", patience, least=1)
        self._best = Best(mode, min_delta)
        self._names: set[str] = set()
        self._has_looked = False
        self.best_step, self.n_waited, self.reason = -1, 0, ""

    @property
    def best(self) -> float:
        """The best value so far."""
        return self._best.value

    def on_eval(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Handle an evaluation; evaluations of other data have other names."""
        self._names.update(metrics)
        if self.monitor not in metrics:
            if self.monitor not in loop.last_metrics:
                raise UnknownNameError(
                    f"EarlyStopping({self.monitor!r}): an evaluation gave no such number; "
                    f"{near(self.monitor, loop.last_metrics)}"
                )
            return
        self._has_looked = True
        value = float(metrics[self.monitor])
        if self._best.is_better(value):
            self.best_step, self.n_waited = loop.n_updates, 0
            return
        self.n_waited += 1
        if self.n_waited >= self.patience:
            self.reason = (
                f"{self.monitor} was {value:.4g} and not better than {self.best:.4g}, of step "
                f"{self.best_step}, in {counted(self.n_waited, 'evaluation')}"
            )
            loop.stop(self.reason)

    def on_end(self, loop: Loop, metrics: Any) -> None:
        """Warn once if there was nothing to monitor."""
        if self._has_looked:
            return
        self._has_looked = True
        if self._names:
            why = f"no evaluation gave it; {near(self.monitor, self._names)}"
        else:
            why = "nothing was evaluated; loop.eval_every(data) does after each epoch"
        warnings.warn(f"EarlyStopping({self.monitor!r}) stops nothing: {why}", stacklevel=2)

    def state_dict(self) -> dict[str, Any]:
        """Return the best value so far, its step, and the number of evaluations since."""
        return {"best": self.best, "best_step": self.best_step, "n_waited": self.n_waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._best.value = state["best"]
        self.best_step, self.n_waited = state["best_step"], state["n_waited"]
