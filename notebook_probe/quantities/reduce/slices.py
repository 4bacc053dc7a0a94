"""Slices of a loss landscape: random directions, and the points of a plane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities.reduce.landscape import Landscape

__all__ = ["Normalise", "SliceGrid", "evenly", "random_direction"]

Normalise: TypeAlias = Literal["filter", "tensor"]


def evenly(n: int, low: float = -1.0, high: float = 1.0) -> tuple[float, ...]:
    """``n`` places from ``low`` to ``high``.

    Examples
    --------
    >>> evenly(5)
    (-1.0, -0.5, 0.0, 0.5, 1.0)
    """
    # Rounded, so that a coordinate is what is typed: 0.3, not 0.30000000000000004.
    return tuple(np.linspace(low, high, n).round(9).tolist())


@dataclass(frozen=True, slots=True)
class SliceGrid:
    """Places along two directions; its points go row by row, and a row is of one ``x``.

    Examples
    --------
    >>> [*SliceGrid((0.0, 1.0), (2.0, 3.0))]
    [(0.0, 2.0), (0.0, 3.0), (1.0, 2.0), (1.0, 3.0)]
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return ((x, y) for x in self.xs for y in self.ys)

    def __len__(self) -> int:
        return len(self.xs) * len(self.ys)

    def axis(self, name: str, prefix: str, group: str) -> Axis:
        """Return one axis of all points, with coordinates that give the position of each."""
        points = [*self]
        return Axis(
            name,
            {
                name: tuple(map(float, range(len(points)))),
                f"{prefix}_x": tuple(x for x, _ in points),
                f"{prefix}_y": tuple(y for _, y in points),
            },
            group,
        )

    def losses(self, landscape: Landscape, first: Tensor, second: Tensor) -> Tensor:
        """``L(w + x d1 + y d2)`` at every point, flat."""
        return torch.stack([landscape.loss_at(x * first + y * second) for x, y in self])


def random_direction(
    point: Iterable[Tensor], seed: int, normalise: Normalise = "filter"
) -> Iterator[Tensor]:
    """Yield a normal direction, tensor by tensor, rescaled to the length of the parameters.

    By ``"filter"`` each filter (entry of the first axis) is as long as the weight's, and zero for
    vectors, such as biases and what normalisation layers learn (Li et al.). By ``"tensor"`` each
    tensor is, vectors too.
    """
    generator = torch.Generator().manual_seed(seed)
    for own in point:
        # Drawn on the host: the same direction on every device.
        drawn = torch.randn(own.shape, generator=generator).to(own.device)
        if normalise == "filter" and own.dim() < 2:
            yield torch.zeros_like(drawn)
            continue
        axes = tuple(range(1 if normalise == "filter" else 0, own.dim()))
        lengths = torch.linalg.vector_norm(drawn, dim=axes, keepdim=True)
        # float32 at least, as norms in half precision overflow beyond 65504.
        wanted = torch.linalg.vector_norm(own.detach().float(), dim=axes, keepdim=True)
        yield drawn * wanted / lengths
