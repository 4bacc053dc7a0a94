"""Which parameters the first updates of a training had a gradient for."""

from __future__ import annotations

from torch import Tensor
from torch.optim import Optimizer

__all__ = ["FirstGradients"]

MOST_UPDATES = 1000
"""Where nobody takes stock."""


class FirstGradients:
    """Notes what has a gradient as an update applies it, until somebody has taken stock.

    Parameters are known by identity while an optimizer holds them, as weak references would keep
    torch from swapping their contents.
    """

    def __init__(self) -> None:
        self._reached: set[int] = set()
        self._n_left = MOST_UPDATES

    def note(self, optimizer: Optimizer) -> None:
        """An update comes."""
        if self._n_left:
            self._n_left -= 1
            self._reached |= {
                id(value)
                for group in optimizer.param_groups
                for value in group["params"]
                if value.grad is not None
            }

    def has_reached(self, parameter: Tensor) -> bool:
        """Whether any update so far had a gradient for it."""
        return id(parameter) in self._reached

    def end(self) -> None:
        """Note no more."""
        self._n_left = 0
        self._reached.clear()
