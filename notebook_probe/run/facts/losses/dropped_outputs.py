"""Dropout behind the last layer, which sets some of the outputs that a loss takes to zero."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.loss_ends import saved_tensor

__all__ = ["DroppedOutputs"]

RULE = "dropout_before_loss"
TAKERS = ("LogSoftmaxBackward0", "BinaryCrossEntropyWithLogitsBackward0", "MseLossBackward0")
FUSED, BY_FACTOR = "NativeDropoutBackward0", "MulBackward0"
"""Nodes of dropout on an accelerator, and on the host, where it is a product."""


class DroppedOutputs:
    """Fact about a loss that takes the result of a dropout.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._say, self._later = context.findings.say, context.later

    def read(self, taken: Sequence[tuple[Node, Node]], step: int) -> None:
        """Read what a loss takes, on the training thread."""
        for above, below in taken:
            if above.name() in TAKERS and below.name() == FUSED:
                self._say(RULE, step)
            elif above.name() in TAKERS and below.name() == BY_FACTOR:
                factors = saved_tensor(below, "other")
                if factors is not None and factors.is_floating_point() and factors.numel() > 1:
                    read = _numbers(factors.detach())
                    self._later.read(read, partial(self._judge, step))

    def _judge(self, step: int, read: Sequence[Any]) -> None:
        """Judge factors: those of dropout are 0 and one number above 1."""
        share_zero, share_highest, highest = read
        if share_zero > 0 and share_zero + share_highest == 1 and highest > 1:
            self._say(RULE, step)


def _numbers(factors: Tensor) -> list[Tensor]:
    highest = factors.amax()
    is_zero, is_highest = factors == 0, factors == highest
    return [is_zero.double().mean(), is_highest.double().mean(), highest.double()]
