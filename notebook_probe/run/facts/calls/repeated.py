"""Evaluations of one batch, with the same weights, whose outputs differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.run.facts.calls.batches import MOST_TENSORS, ends_of, is_plain, sum_of
from notebook_probe.run.facts.context import FactContext

__all__ = ["RepeatedEvaluations"]

RULE = "random_evaluation"
MOST_CALLS = 64
"""Evaluations of a run that are compared."""


@dataclass(frozen=True)
class _Evaluation:
    """Numbers of one evaluation.

    Attributes
    ----------
    step : int
        Step that comes next: those of one step have the same weights.
    inputs : tuple
        Shapes, sums and some elements of the inputs.
    total, size : float
        Sum of the outputs, and of their absolute values.
    """

    step: int
    inputs: tuple[Any, ...]
    total: float
    size: float


class RepeatedEvaluations:
    """Fact about outputs that are not the same for the same inputs and weights, but random.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._known: list[_Evaluation] = []
        self._given: list[Tensor] | None = None
        self._n_left = MOST_CALLS
        self.drawn = ""
        """Function and line that draws random numbers in an evaluation; empty before it is seen."""

    @property
    def is_over(self) -> bool:
        """True once no more evaluations are compared."""
        return self._n_left <= 0

    def stop(self) -> None:
        """Compare no more: it is known why outputs are random."""
        self._n_left = 0

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Take the inputs of an evaluation."""
        tensors = [one.detach() for one in tensors_of([args, dict(kwargs)])]
        is_whole = 0 < len(tensors) <= MOST_TENSORS and all(map(is_plain, tensors))
        self._given = tensors if is_whole else None

    def returned(self, model: nn.Module, output: object, step: int) -> None:
        """Read the inputs and what was made of them, unless a part of the model was training."""
        given, self._given = self._given, None
        if any(one.training for one in model.modules()):
            return
        made = [one.detach() for one in tensors_of(output) if is_plain(one)]
        made = [one for one in made if one.is_floating_point()]
        if not given or not made or len({one.device for one in (*given, *made)}) > 1:
            return
        self._n_left -= 1
        read = [sum_of(one) for one in given] + [ends_of(one) for one in given]
        total = torch.stack([one.float().sum() for one in made]).sum()
        read += [total, torch.stack([one.float().abs().sum() for one in made]).sum()]
        shapes = tuple(tuple(one.shape) for one in given)
        self._later.read(read, partial(self._judge, step, shapes))

    def _judge(self, step: int, shapes: tuple[Any, ...], read: Sequence[Any]) -> None:
        n = len(shapes)
        ends = tuple(tuple(one.reshape(-1).tolist()) for one in read[n : 2 * n])
        now = _Evaluation(step, (shapes, tuple(read[:n]), ends), *read[2 * n :])
        if not all(map(math.isfinite, (*read[:n], now.total, now.size))):
            return
        self._known = [one for one in self._known if one.step == step]
        share = self._findings.threshold(RULE, "share")
        for one in self._known:
            off = abs(one.total - now.total)
            # Without random numbers the model has a state, as a recurrent one.
            is_random = one.inputs == now.inputs and bool(self.drawn)
            if is_random and off > share * max(one.size, now.size):
                words = {"off": f"{off / max(one.size, now.size):.1%}", "where": self.drawn}
                self._findings.say(RULE, step, words=words)
        self._known.append(now)
