"""Facts about batches: they repeat, their rows are equal, their numbers are tiny."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.alerts.rule import Severity
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.run.facts.context import FactContext

__all__ = ["MOST_TENSORS", "GivenBatches", "ends_of", "is_plain", "sum_of"]

MOST_TENSORS, MOST_SAMPLED = 4, 64
"""Inputs that are looked at, and elements of each row that are compared first."""
FEWEST_ROWS = 4
"""Rows of a batch that may all be equal by chance, such as those of two episodes, are fewer."""
ENOUGH, REPEATED = 12, 2
"""Batches in a row whose rows must be equal, and batches that must be equal to the first one."""
NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm if hasattr(nn, "RMSNorm") else nn.LayerNorm,
)


@dataclass(frozen=True)
class _Batch:
    """Numbers that were read of a batch.

    Attributes
    ----------
    step : int
    shapes : tuple
        Shape of each tensor.
    sums : tuple of float
        Sum of each tensor.
    rows : tuple
        Elements of the first and the last row of each tensor.
    is_flat : bool
        All rows of all tensors are equal, and there are some.
    largest : float
        Largest absolute value among floating-point inputs; NaN without any.
    """

    step: int
    shapes: tuple[tuple[int, ...], ...]
    sums: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    is_flat: bool
    largest: float

    @property
    def n_rows(self) -> int:
        """Length of the first tensor that has one."""
        return next((shape[0] for shape in self.shapes if shape), 0)

    def equals(self, other: _Batch) -> bool:
        """Return whether both are of the same numbers; NaN is equal to nothing."""
        mine, theirs = ((one.shapes, one.sums, [*map(list, one.rows)]) for one in (self, other))
        return mine == theirs and not any(map(math.isnan, self.sums))


class GivenBatches:
    """Facts about what the model is given, in the first steps and at rare ones later.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules, self._steps = context.modules, context.observer.steps
        self._findings, self._later = context.findings, context.later
        self._first: _Batch | None = None
        self._last: _Batch | None = None
        self._n_same = self._n_flat = self._n_tiny = self._n_constant = 0
        self._n_rows = 0
        self._varies = self._has_numbers = False
        self.is_over = False
        """Nothing more can be found."""

    def given(self, step: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Read a batch, on the training thread."""
        tensors = [one.detach() for one in tensors_of([args, dict(kwargs)]) if is_plain(one)]
        tensors = tensors[:MOST_TENSORS]
        if not tensors or len({one.device for one in tensors}) > 1:
            return
        shapes = tuple(tuple(one.shape) for one in tensors)
        rowed = [one for one in tensors if one.ndim and len(one) >= FEWEST_ROWS]
        self._n_rows = len(rowed[0]) if rowed else 0
        try:
            read = [sum_of(one) for one in tensors] + [ends_of(one) for one in tensors]
            read += [_are_equal(one) for one in rowed]
            if all(one.is_floating_point() for one in tensors):
                read += [one.abs().amax() for one in tensors]
        except (RuntimeError, TypeError):  # of a type that torch cannot add or compare
            return
        self._later.read(read, partial(self._judge, step, shapes, len(rowed)))

    def returned(self, output: object) -> None:
        """Read what the model returned for the batch, on the training thread."""
        made = next(iter(tensors_of(output)), None)
        if made is None or not is_plain(made) or not made.is_floating_point():
            return
        if made.ndim and made.numel() > 1 and len(made) == self._n_rows:
            self._later.read([_are_equal(made.detach())], self._judge_output)

    def _judge_output(self, read: Sequence[Any]) -> None:
        """Count outputs that are the same for all rows of inputs that differ."""
        batch = self._last
        is_constant = bool(read[0]) and batch is not None and not batch.is_flat
        self._n_constant = self._n_constant + 1 if is_constant else 0
        if batch is not None and self._n_constant >= ENOUGH:
            # Of several calls the first one is read: a spiking network is still silent in it.
            severity: Severity | None = "remark" if self._steps.most_forwards > 1 else None
            words = {"n": batch.n_rows}
            self._findings.say("constant_outputs", batch.step, severity=severity, words=words)

    def _judge(
        self, step: int, shapes: tuple[tuple[int, ...], ...], n_rowed: int, read: Sequence[Any]
    ) -> None:
        """Compare a batch with those before; on the writer's thread."""
        n = len(shapes)
        rows = tuple(tuple(one.reshape(-1).tolist()) for one in read[n : 2 * n])
        flat, floats = read[2 * n : 2 * n + n_rowed], read[2 * n + n_rowed :]
        largest = max(floats, default=math.nan)
        batch = _Batch(step, shapes, tuple(read[:n]), rows, bool(flat) and all(flat), largest)
        first, self._first = self._first, self._first or batch
        self._last = batch
        if first is not None:
            is_same = first.equals(batch)
            self._varies |= not is_same
            self._n_same = self._n_same + 1 if is_same and not self._varies else 0
        self._n_flat = self._n_flat + 1 if batch.is_flat else 0
        self._n_tiny = self._n_tiny + 1 if 0 < largest < self._number("tiny_inputs", "below") else 0
        self._say(batch)
        self._has_numbers |= batch.largest > 0

    def _say(self, batch: _Batch) -> None:
        if self._has_numbers and batch.largest == 0:
            self._findings.say("blank_batch", batch.step)
        if self._n_flat >= ENOUGH:
            severity: Severity = "warning" if self._varies else "remark"
            words: dict[str, object] = {"n": batch.n_rows}
            self._findings.say("collapsed_batch", batch.step, severity=severity, words=words)
        elif self._n_same >= REPEATED and not batch.is_flat:
            words = {"n": self._n_same + 1}
            self._findings.say("repeated_batch", batch.step, since=0, words=words)
        if self._n_tiny >= ENOUGH and not self._is_normalized():
            words = {"largest": f"{batch.largest:.2g}"}
            self._findings.say("tiny_inputs", batch.step, words=words)

    def _number(self, rule: str, name: str) -> float:
        return self._findings.threshold(rule, name) if self._findings.follows(rule) else 0.0

    def _is_normalized(self) -> bool:
        """Return whether the first layer with parameters brings any scale to 1."""
        layers = (one for one in self._modules().values() if one._parameters)
        return isinstance(next(layers, None), NORMS)


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is a dense one of real numbers."""
    if type(tensor) is not Tensor or tensor.layout != torch.strided or tensor.is_nested:
        return False
    return not tensor.is_meta and not tensor.is_complex() and tensor.numel() > 0


def sum_of(tensor: Tensor) -> Tensor:
    """Return the sum of all elements, exact of whole numbers."""
    return tensor.sum() if tensor.is_floating_point() else tensor.sum(dtype=torch.int64)


def _sampled(rows: Tensor) -> Tensor:
    """Return a few elements of each row, without a copy of the others."""
    n_dims = max(1, rows.ndim - 1)
    most = max(2, int(MOST_SAMPLED ** (1 / n_dims)))
    steps = [slice(None, None, -(-size // most)) for size in rows.shape[1:]]
    return rows[(slice(None), *steps)]


def ends_of(tensor: Tensor) -> Tensor:
    """Return elements of the first and the last row."""
    if not tensor.ndim:
        return tensor.reshape(1)
    return torch.cat([_sampled(tensor[:1]).reshape(-1), _sampled(tensor[-1:]).reshape(-1)])


def _are_equal(rows: Tensor) -> Tensor:
    """Return whether all rows are equal; on the host few elements are nearly always enough."""
    if rows.is_cpu:
        sampled = _sampled(rows)
        found = (sampled == sampled[:1]).all()
        if not found:
            return found
    return (rows == rows[:1]).all()
