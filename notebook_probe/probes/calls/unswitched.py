"""Evaluations in training mode, and training in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from notebook_probe.probes.step.phase import Phase

__all__ = ["Unswitched", "dropping", "switched_off"]

APART = 5
"""Least number of updates since the last call without gradients for a call to be an evaluation;
one in each step, by a model that is its own teacher or an acting agent, is none."""


class Unswitched:
    """Counter of the evaluations of a model in training mode, if parts of it drop at random.

    Calls between two updates are one: an evaluation may have many batches. It also counts
    the updates in a row before which the model was called with gradients in evaluation mode alone.

    Attributes
    ----------
    n : int
    first, last : int
        The updates before the first of them, and before the last call without gradients.
    modules : tuple of str
        Layers that were active in the last evaluation.
    n_trained : int
        Updates in a row before which it was called with gradients in evaluation mode alone.
    """

    def __init__(self) -> None:
        self.n, self.first, self.last = 0, 0, -APART
        self.modules: tuple[str, ...] = ()
        self.n_trained, self._newest = 0, -1

    def called(self, root: nn.Module, phase: Phase | None, n_updates: int) -> None:
        """Note a call of the model after a number of updates."""
        if phase == "training":
            self.n_trained = 0
        elif phase == "evaluation" and root.training:
            self._evaluated(root, n_updates)
        elif phase == "evaluation" and torch.is_grad_enabled() and n_updates != self._newest:
            follows, self._newest = n_updates == self._newest + 1, n_updates
            self.n_trained = self.n_trained + 1 if follows else 1

    def _evaluated(self, root: nn.Module, n_updates: int) -> None:
        is_apart, self.last = n_updates - self.last >= APART, n_updates
        if is_apart and (modules := tuple(dropping(root))):
            self.first = self.first if self.n else n_updates
            self.n, self.modules = self.n + 1, modules


def dropping(model: nn.Module) -> Iterator[str]:
    """Yield the paths of modules that drop random parts of their input, in their present mode.

    Examples
    --------
    >>> [*dropping(nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.0), nn.Dropout(0.1).eval()))]
    ['0']
    """
    for path, module in model.named_modules():
        if module.training and _drops(module):
            yield path


def switched_off(model: nn.Module) -> Iterator[str]:
    """Yield the paths of modules in evaluation mode, which is wrong while all is trained.

    None where a part of the model is in training mode, or frozen: then it is intended.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))
    >>> [*switched_off(model)], [*switched_off(model.eval())]
    ([], ['1', '2'])
    """
    is_all = all(parameter.requires_grad for parameter in model.parameters())
    if not is_all or any(module.training for module in model.modules()):
        return
    for path, module in model.named_modules():
        has_statistics = isinstance(module, nn.modules.batchnorm._BatchNorm)
        if has_statistics or _drops(module):
            yield path


def _drops(module: nn.Module) -> bool:
    """Return whether it drops random parts of its input in training mode."""
    is_random = isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0
    is_random |= isinstance(module, nn.MultiheadAttention) and module.dropout > 0
    is_random |= isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1
    return is_random
