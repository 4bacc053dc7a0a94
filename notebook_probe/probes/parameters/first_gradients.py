"""Parameters that have a gradient in the first updates of a training."""

from __future__ import annotations

from torch import Tensor
from torch.optim import Optimizer

__all__ = ["FirstGradients"]

MOST_UPDATES = 1000
"""Maximum number of updates that are noted, where `end` is not called."""


class FirstGradients:
    """Record of the parameters that have a gradient as an update applies it, until `end`.

    Parameters are known by identity while an optimizer holds them, as weak references would keep
    torch from swapping their contents.

    Attributes
    ----------
    n_left : int
        Updates that will be noted.
    """

    def __init__(self) -> None:
        self._reached: set[int] = set()
        self.n_left = MOST_UPDATES

    def note(self, optimizer: Optimizer) -> None:
        """Note an update."""
        if self.n_left:
            self.n_left -= 1
            self._reached |= {
                id(value)
                for group in optimizer.param_groups
                for value in group["params"]
                if value.grad is not None
            }

    def has_reached(self, parameter: Tensor) -> bool:
        """Return whether any update so far had a gradient for it."""
        return id(parameter) in self._reached

    def end(self) -> None:
        """Note no more."""
        self.n_left = 0
        self._reached.clear()
