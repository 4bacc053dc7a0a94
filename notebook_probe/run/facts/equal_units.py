"""Fact about layers whose units have the same weights, and so learn the same."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.rates import known_rate

__all__ = ["EqualUnits"]

RULE = "equal_units"


class EqualUnits:
    """Fact about layers all of whose units still have the same weights after some updates.

    Weights of zeros are common at the start, in the last layer of a branch: they differ from the
    first update on that has a gradient.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules, self._last_call = context.modules, context.observer.taps.last_call
        self._findings, self._later = context.findings, context.later
        self._first_step: int | None = None
        self._is_over = False

    def look(self, step: int, optimizers: Sequence[Optimizer]) -> None:
        """Look at the weights some steps after the first, once."""
        self._first_step = step if self._first_step is None else self._first_step
        if self._is_over or step - self._first_step < self._findings.threshold(RULE, "after"):
            return
        self._is_over = True
        groups = [group for one in optimizers for group in one.param_groups]
        trained = {id(one) for group in groups if known_rate(group) > 0 for one in group["params"]}
        called = {path: one for path, one in self._modules().items() if self._last_call(path) >= 0}
        found = [
            (path, weight)
            for path, module in called.items()
            for weight in _weights(module, trained)
            if _may_be_equal(weight)
        ]
        if found and len({weight.device for _, weight in found}) == 1:
            read = [(weight == weight[:1]).all() for _, weight in found]
            self._later.read(read, partial(self._judge, step, [path for path, _ in found]))

    def _judge(self, step: int, paths: Sequence[str], are_equal: Sequence[Any]) -> None:
        equal = [path for path, is_equal in zip(paths, are_equal, strict=True) if is_equal]
        if equal:
            self._findings.say(RULE, step, [*dict.fromkeys(equal)], since=self._first_step)


def _weights(module: nn.Module, trained: Container[int]) -> Iterator[Tensor]:
    """Yield the trained weights of a layer that has several units and several inputs."""
    for name, one in module._parameters.items():
        if one is None or id(one) not in trained or not name.startswith("weight") or one.dim() < 2:
            continue
        plain = one.detach()
        if type(plain) is Tensor and len(plain) > 1 and plain[0].numel() > 1:
            yield plain


def _may_be_equal(weight: Tensor) -> bool:
    """Return whether the first two units are equal; True where reading this would take a wait."""
    return not weight.is_cpu or torch.equal(weight[0], weight[1])
