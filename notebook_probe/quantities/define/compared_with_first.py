"""Base of quantities of several steps that compare a tensor with the first one."""

from __future__ import annotations

from torch import Tensor

__all__ = ["ComparedWithFirst"]


class ComparedWithFirst:
    """Keep the first tensor, and compare later ones with it; another shape begins again.

    A subclass has ``update``, whose argument names what is measured, and calls `take`.
    """

    first: Tensor | None = None
    is_lost = False
    """The first one was seen by an earlier run."""

    def reset(self) -> None:
        """Keep the first one, and forget the last comparison."""
        self.value: Tensor | None = None

    def begin_late(self) -> None:
        """Give no value without the first tensor."""
        self.is_lost = True

    def take(self, now: Tensor) -> None:
        """Compare a tensor with the first one."""
        if self.first is None or self.first.shape != now.shape:
            self.first = now.clone()
        self.value = self.compare(self.first, now)

    def compare(self, first: Tensor, now: Tensor) -> Tensor:
        """Return the value; both tensors have the same shape."""
        raise NotImplementedError

    def compute(self) -> Tensor | None:
        return self.value
