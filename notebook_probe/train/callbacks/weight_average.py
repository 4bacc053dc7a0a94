"""Averages of the weights over the steps: exponential (EMA) or plain (SWA)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from notebook_probe.train.loop.loop import Loop
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["WeightAverage"]


class WeightAverage:
    """Moving average of the weights, updated after every update.

    Exponential, a ← d·a + (1 − d)·w, or with ``decay=None`` the plain mean of the weights from
    ``start`` on (stochastic weight averaging, Izmailov et al. 2018). It is
    `torch.optim.swa_utils.AveragedModel`, in a loop.

    Parameters
    ----------
    model : nn.Module
        The trainer's, or a part of it.
    decay : float or None
        Between 0 and 1.
    start : int
        Step whose update is the first that counts.

    Examples
    --------
    >>> average = loop.add(WeightAverage(model, decay=0.999))  # doctest: +SKIP
    >>> with average.applied():  # doctest: +SKIP
    ...     loop.eval(test_data)
    """

    def __init__(self, model: nn.Module, decay: float | None = 0.999, start: int = 0) -> None:
        if decay is not None and not (isinstance(decay, float) and 0 < decay < 1):
            raise ValueError(f"decay={decay!r}; allowed: a number between 0 and 1, or None")
        average = None if decay is None else get_ema_multi_avg_fn(decay)
        self.averaged = AveragedModel(model, multi_avg_fn=average)
        """`averaged.module` is a copy of the model, with the averaged weights."""
        self._model, self._start = model, start

    def on_start(self, loop: Loop, data: Any) -> None:
        """Take part in the updates from now on.

        Raises
        ------
        ValueError
            The loop trains another model.
        """
        # By identity: `in` would compare elements, and the names differ if it is a part.
        trained = {id(value) for value in loop.trainer.model.parameters()}
        if not all(id(value) in trained for value in self._model.parameters()):
            raise ValueError(
                f"WeightAverage({type(self._model).__name__}): this is not the model that the loop "
                f"trains, nor a part of it; WeightAverage(loop.trainer.model) is of that one"
            )
        loop.trainer.add_per_step_update(lambda: self._update(loop), scope=f"average {id(self)}")

    def _update(self, loop: Loop) -> None:
        if loop.loop_step >= self._start:
            self.averaged.update_parameters(self._model)

    @contextmanager
    def applied(self) -> Iterator[nn.Module]:
        """Give the trained model the averaged weights inside the context, then restore its own."""
        pairs = [*zip(self._model.parameters(), self.averaged.module.parameters(), strict=True)]
        own = [value.detach().clone() for value, _ in pairs]
        # An interrupt in between would leave some of the weights averaged.
        with uninterrupted, torch.no_grad():
            for value, averaged in pairs:
                value.copy_(averaged)
        try:
            yield self._model
        finally:
            with uninterrupted, torch.no_grad():
                for (value, _), kept in zip(pairs, own, strict=True):
                    value.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """Return the averaged weights, and the number of averaged updates."""
        return self.averaged.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.averaged.load_state_dict(state)
