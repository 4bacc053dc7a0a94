"""Evaluations of a model that was left in training mode."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

__all__ = ["Unswitched", "dropping"]

APART = 5
"""Updates since the last call without gradients; what is so called in each step, as the teacher of
itself or an agent that acts, is no evaluation."""


class Unswitched:
    """Counts the evaluations of a model in training mode, while some of it drops at random.

    Calls between two updates are one: an evaluation may have many batches.

    Attributes
    ----------
    n : int
    first, last : int
        The updates before the first of them, and before the last call without gradients.
    modules : tuple of str
        What was active in the last.
    """

    def __init__(self) -> None:
        self.n, self.first, self.last = 0, 0, -APART
        self.modules: tuple[str, ...] = ()

    def evaluated(self, root: nn.Module, n_updates: int) -> None:
        """The model is called without gradients, after so many updates."""
        if not root.training:
            return
        is_apart, self.last = n_updates - self.last >= APART, n_updates
        if is_apart and (modules := tuple(dropping(root))):
            self.first = self.first if self.n else n_updates
            self.n, self.modules = self.n + 1, modules


def dropping(model: nn.Module) -> Iterator[str]:
    """The paths of modules that leave out at random what they are given, as they are now.

    Examples
    --------
    >>> [*dropping(nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.0), nn.Dropout(0.1).eval()))]
    ['0']
    """
    for path, module in model.named_modules():
        is_random = isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0
        is_random |= isinstance(module, nn.MultiheadAttention) and module.dropout > 0
        is_random |= isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1
        if is_random and module.training:
            yield path
