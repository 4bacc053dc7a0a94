"""An optimizer of groups of minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.checks import whole_number
from notebook_probe.experiment.optimizers.clip import ClipOptimizer
from notebook_probe.experiment.optimizers.making import OptimizerClass, make
from notebook_probe.experiment.optimizers.wrapper import Closure, Wrapper

__all__ = ["MinibatchOptimizer", "num_minibatches"]


def num_minibatches(batch_size: int, minibatch_size: int) -> int:
    """Return the number of minibatches of a batch, ``batch_size / minibatch_size``.

    Raises
    ------
    ValueError
        Unless they divide it.

    Examples
    --------
    >>> num_minibatches(128, 32)
    4
    """
    for name, size in (("batch_size", batch_size), ("minibatch_size", minibatch_size)):
        whole_number(name, size, least=1)
    if batch_size % minibatch_size:
        raise ValueError(f"minibatch_size={minibatch_size} does not divide batch_size={batch_size}")
    return batch_size // minibatch_size


class MinibatchOptimizer(Wrapper):
    """Sums gradients of k minibatches, each divided by k, in order, and updates once by the sum.

    Without `accumulate_gradients` it updates by ``.grad`` as it is, as any optimizer. After an
    update all is zero.

    Parameters
    ----------
    optimizer : Optimizer, class, or list of classes
        Around which it stands, by default a `ClipOptimizer`.
    *args, **kwargs
        Arguments of the class, as of `ClipOptimizer`.
    clip_each_minibatch : bool
        Have the `ClipOptimizer` inside clip the gradients of each minibatch, not their mean.

    Attributes
    ----------
    optimizer : Optimizer
        The one inside.
    n_skipped : int
        Updates that were left out.

    Raises
    ------
    ValueError
        `clip_each_minibatch` and nothing inside that clips, or lists that are not of one length.

    Examples
    --------
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> optimizer = MinibatchOptimizer(torch.optim.SGD, model.parameters(), lr=0.1)
    >>> for x in (1.0, 3.0):
    ...     model(torch.tensor([[x]])).sum().backward()
    ...     optimizer.accumulate_gradients(2)
    >>> optimizer.step()
    >>> round(model.weight.item(), 4)
    -0.2
    """

    _sums: list[Tensor | None]
    _of: list[Tensor]
    _n_taken: int
    _n_expected: int

    def __init__(
        self,
        optimizer: OptimizerClass | Optimizer | list[OptimizerClass] = ClipOptimizer,
        *args: Any,
        clip_each_minibatch: bool = False,
        **kwargs: Any,
    ) -> None:
        if not isinstance(clip_each_minibatch, bool):
            raise TypeError(f"clip_each_minibatch={clip_each_minibatch!r}; allowed: True, False")
        super().__init__(make(optimizer, args, kwargs, {}))
        if clip_each_minibatch and not any(one.clips for one in self._clipping()):
            raise ValueError("clip_each_minibatch=True, and there is no ClipOptimizer that clips")
        self.clip_each_minibatch = clip_each_minibatch
        self._forget()

    def accumulate_gradients(
        self, num_minibatches: int, gradients: Sequence[Tensor | None] | None = None
    ) -> None:
        """Take in the gradients of a minibatch; ``.grad`` is free for the next one.

        After the last one it holds the sum.

        Parameters
        ----------
        num_minibatches : int
            k, of how many the update is made.
        gradients : list of Tensor or None, optional
            For each parameter its gradient; by default what is in ``.grad``.

        Raises
        ------
        ValueError
            Parameters are others than in the first minibatch, or there are more minibatches than k.
        """
        self._count(num_minibatches)
        if gradients is not None:
            self._put(gradients)
        if self.clip_each_minibatch:
            self._is_left_out |= not all(one.clip_gradients() for one in self._clipping())
        with torch.no_grad():
            for i, value in enumerate(self.parameters()):
                if value.grad is not None:
                    # Division makes a new tensor, so adding in place below changes no gradient of
                    # the user's.
                    part, before = value.grad / num_minibatches, self._sums[i]
                    self._sums[i] = part if before is None else before.add_(part)
                    value.grad = None
        if self._n_taken == num_minibatches:
            for value, found in zip(self._of, self._sums, strict=True):
                value.grad = found
            # Held in `.grad` alone from here on, so that the memory is freed with it.
            self._sums = []

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, and the accumulated ones."""
        super().zero_grad(set_to_none)
        self._forget()

    def prepare(self) -> bool:
        """Clip the sum, unless each part was clipped; False where the update is left out."""
        if self._n_taken:
            self._check_whole()
        is_clipped = self._n_taken > 0 and self.clip_each_minibatch
        # Clipped parts have a clipped sum already; clipping again would weaken it.
        is_ready = not self._is_left_out and (is_clipped or super().prepare())
        if not is_ready:
            # The group is over even if it was left out: the next minibatch begins another.
            self.zero_grad()
        return is_ready

    def apply(self, closure: Closure | None = None) -> Any:
        """Update, then zero."""
        loss = super().apply(closure)
        self.zero_grad()
        return loss

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy, which starts a new group."""
        # Half a group is not copied: its sums belong to the parameters of the original.
        own = {"_sums": [], "_of": [], "_n_taken": 0, "_n_expected": 0, "_is_left_out": False}
        return {**super().__getstate__(), **own}

    def _forget(self) -> None:
        self._sums, self._of = [], []
        self._n_taken = self._n_expected = 0
        self._is_left_out = False

    def _clipping(self) -> list[ClipOptimizer]:
        return [one for one in self.inside() if isinstance(one, ClipOptimizer)]

    def _count(self, n: int) -> None:
        whole_number("num_minibatches", n, least=1)
        if not self._n_taken:
            self._of, self._n_expected = [*self.parameters()], n
            self._sums = [None] * len(self._of)
        self._check_parameters()
        if n != self._n_expected or self._n_taken == n:
            raise ValueError(
                f"minibatch {self._n_taken + 1} of {n}, in a group of {self._n_expected}; step() "
                f"or zero_grad() begins another"
            )
        self._n_taken += 1

    def _check_whole(self) -> None:
        self._check_parameters()
        if self._n_taken < self._n_expected:
            raise ValueError(
                f"step() after {self._n_taken} of {self._n_expected} minibatches: their mean needs "
                f"all of them"
            )

    def _check_parameters(self) -> None:
        now = [*self.parameters()]
        # By identity: tensors compare element by element.
        if len(now) != len(self._of) or any(a is not b for a, b in zip(now, self._of, strict=True)):
            raise ValueError(
                f"{len(now)} parameters, which are not the {len(self._of)} of the group's first "
                f"minibatch"
            )

    def _put(self, gradients: Sequence[Tensor | None]) -> None:
        if len(gradients) != len(self._of):
            raise ValueError(f"{len(gradients)} gradients for {len(self._of)} parameters")
        for value, gradient in zip(self._of, gradients, strict=True):
            value.grad = gradient
