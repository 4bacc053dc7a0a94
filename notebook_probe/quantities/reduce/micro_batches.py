"""Gradients of a step's micro-batches, kept until all of them have arrived."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from notebook_probe.quantities.reduce.arrays import components

__all__ = ["MicroBatchGradients", "added"]


class MicroBatchGradients:
    """A window that keeps what each backward has added to the gradient of a parameter, or several.

    Relations between micro-batches are known only after the last one: there are ``k`` copies of the
    gradient until the step is over.
    """

    def reset(self) -> None:
        self.parameters: list[list[Tensor]] = [[]]
        """One after the other, the gradient of each micro-batch."""

    def update(self, each_grad_micro: Tensor) -> None:
        row = components(each_grad_micro).reshape(-1)
        if row.numel():
            self.parameters[0].append(row.clone())

    def merge(self, other: Self) -> Self:
        both = type(self)()
        both.parameters = [rows for rows in (*self.parameters, *other.parameters) if rows]
        return both

    @property
    def k(self) -> int:
        """Number of micro-batches; 0 of fewer than two, and where some parameter had no part."""
        counts = {len(rows) for rows in self.parameters}
        return max(counts) if len(counts) == 1 and counts.isdisjoint({0, 1}) else 0


def added(parts: list[Tensor]) -> Tensor:
    """Add tensors of one shape, on any devices."""
    home = parts[0].device
    return torch.stack([part.to(home) for part in parts]).sum(0)
