"""Learning rates as functions of the step."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.errors import near
from notebook_probe.train.loop.loop import Loop

__all__ = ["LearningRate", "exponential_decay"]


def exponential_decay(
    global_step: int,
    learning_rate: float = 0.01,
    decay_steps: float = 1,
    decay_rate: float = 1.0,
    staircase: bool = False,
) -> float:
    """``learning_rate · decay_rate^(global_step / decay_steps)``.

    Parameters
    ----------
    global_step : int
        Updates completed.
    learning_rate : float
        Learning rate of the first update.
    decay_steps : float
        Number of updates after which the rate is multiplied by `decay_rate`.
    decay_rate : float
        1 keeps the rate.
    staircase : bool
        Take the whole part of the exponent, so that the rate falls in jumps.

    Examples
    --------
    >>> [exponential_decay(step, 0.4, decay_steps=2, decay_rate=0.25) for step in (0, 1, 2)]
    [0.4, 0.2, 0.1]
    >>> [exponential_decay(step, 0.4, 2, 0.25, staircase=True) for step in (0, 1, 2)]
    [0.4, 0.4, 0.1]
    """
    if not decay_steps > 0:
        raise ValueError(f"decay_steps={decay_steps!r}; allowed: a positive number")
    exponent = global_step / decay_steps
    return learning_rate * decay_rate ** (math.floor(exponent) if staircase else exponent)


class LearningRate:
    """Sets the rate of every group to ``func(global_step, **rest)`` before each update.

    A scheduler of a `Trainer`; added to its loop it also logs the rate of every update as
    ``learning_rate``.

    Parameters
    ----------
    optimizer : Optimizer
    func : callable
        ``func(global_step, **rest)``, a number; of several optimizers, such as
        ``ClipOptimizer([SGD, Adam], ...)``, also a list with one for each group.
    **rest
        Other arguments of ``func``.

    Attributes
    ----------
    global_step : int
        Updates completed.
    used : float or list of float
        The rate of the last update; before it, that of the first.

    Raises
    ------
    ValueError
        ``func`` returns no rate: a negative number, NaN, or lists of another length.
    TypeError
        The function does not take one of its other arguments.

    Examples
    --------
    >>> import torch
    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> rate = LearningRate(optimizer, exponential_decay, learning_rate=0.4, decay_rate=0.5)
    >>> rate.step()
    >>> rate.used, optimizer.param_groups[0]["lr"]
    (0.4, 0.2)
    """

    def __init__(
        self, optimizer: Optimizer, func: Callable[..., Any] = exponential_decay, **rest: Any
    ) -> None:
        if not callable(func):
            raise TypeError(f"func={func!r}: a function of global_step is expected")
        self.optimizer, self.global_step = optimizer, 0
        _check_keys(func, rest)
        self._func, self._rest = func, rest
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])  # by which others know it is scheduled
        self._now = self._set()
        self.used = self._now

    def step(self) -> None:
        """Set the rate of the next update, after one."""
        self.used = self._now
        self.global_step += 1
        self._now = self._set()

    def get_last_lr(self) -> list[float]:
        """Return the present rate of each group, as torch's schedulers do."""
        return self._of_groups(self._now)

    def state_dict(self) -> dict[str, Any]:
        """Return the step; functions are not part of a checkpoint."""
        return {"global_step": self.global_step}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.global_step = state["global_step"]
        # The checkpoint has the step only: the rate follows from the function, which may be
        # changed.
        self._now = self.used = self._set()

    def on_step(self, loop: Loop, metrics: Mapping[str, Any]) -> None:
        """Log the rate of the last update; a callback of the loop."""
        if isinstance(self.used, list):
            logged = {f"learning_rate_{i}": rate for i, rate in enumerate(self.used)}
        else:
            logged = {"learning_rate": self.used}
        loop.last_metrics.update(logged)
        if loop.run is not None and not loop.run.closed:
            loop.run.log(logged)

    def _set(self) -> float | list[float]:
        found = self._func(self.global_step, **self._rest)
        rate = (
            [*map(self._checked, found)]
            if isinstance(found, list | tuple)
            else self._checked(found)
        )
        for group, value in zip(self.optimizer.param_groups, self._of_groups(rate), strict=True):
            if isinstance(group["lr"], Tensor):  # a captured or compiled step reads it there
                group["lr"].fill_(value)
            else:
                group["lr"] = value
        return rate

    def _checked(self, value: Any) -> float:
        rate = float(value)
        # Written so that NaN is refused as well.
        if not 0.0 <= rate < math.inf:
            name = getattr(self._func, "__name__", "func")
            raise ValueError(f"{name}(global_step={self.global_step}) is {rate}: no learning rate")
        return rate

    def _of_groups(self, rate: float | list[float]) -> list[float]:
        n = len(self.optimizer.param_groups)
        if not isinstance(rate, list):
            return [rate] * n
        if len(rate) != n:
            raise ValueError(f"{len(rate)} learning rates for {n} groups of parameters")
        return rate


def _check_keys(func: Callable[..., Any], rest: Mapping[str, Any]) -> None:
    """Refuse a key that a function does not take, and name those that are close."""
    try:
        takes = inspect.signature(func).parameters
    except (TypeError, ValueError):  # one that does not tell
        return
    if any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        return
    for key in rest:
        if key not in takes:
            known = sorted(takes.keys() - {"global_step"})
            name = getattr(func, "__name__", "func")
            raise TypeError(f"{name} takes no {key!r}; {near(key, known)}")
