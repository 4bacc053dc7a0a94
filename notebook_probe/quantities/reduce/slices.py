"""Coordinates in a loss landscape: random directions, points of a plane, the path of a training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities.reduce.landscape import Landscape

__all__ = [
    "Normalise",
    "PathPoints",
    "SliceGrid",
    "differences",
    "evenly",
    "random_direction",
    "rounding",
]

Normalise: TypeAlias = Literal["filter", "tensor"]

PIECE = 1 << 18
"""Elements of a point that are compared at a time."""


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


class PathPoints:
    """Points of a path, a limited number, evenly spaced, including the first one.

    Parameters
    ----------
    most : int
        Maximum number of points that are kept; an even number.
    piece : int
        Elements of a point that are compared at a time.

    Examples
    --------
    >>> points = PathPoints()
    >>> for step in range(12):
    ...     points.add(torch.tensor([float(step)]))
    >>> [int(point) for point in points.points]
    [0, 2, 4, 6, 8, 10]
    """

    def __init__(self, most: int = 8, piece: int = PIECE) -> None:
        self.points: list[Tensor] = []
        self._most, self._piece = most, piece
        self._n, self._stride = 0, 1

    def add(self, point: Tensor) -> None:
        """Keep it, if it is its turn."""
        if self._n % self._stride == 0:
            if len(self.points) == self._most:
                # Every second point is dropped when there is no room: the first stays, and spacing
                # stays even.
                self.points, self._stride = self.points[::2], 2 * self._stride
            self.points.append(point.cpu())
        self._n += 1

    def products(self, origin: Tensor) -> Tensor:
        """Inner products between the differences from ``origin``, float64."""
        found = torch.zeros(len(self.points), len(self.points), dtype=torch.float64)
        for rows in differences(self.points, origin, self._piece):
            found += rows @ rows.T
        return found

    def sum(self, origin: Tensor, weights: Tensor) -> Tensor:
        """Return the differences from ``origin``, weighted and added up."""
        pieces = differences(self.points, origin, self._piece)
        return torch.cat([weights @ rows for rows in pieces]).to(origin)


def differences(points: Sequence[Tensor], origin: Tensor, piece: int = PIECE) -> Iterator[Tensor]:
    """Yield the differences of flat points from a flat origin, a row each, some columns at a time.

    In float64, and never all of it at once: there may be millions of columns.
    """
    pieces = zip(*(point.split(piece) for point in (origin, *points)), strict=True)
    for here, *there in pieces:
        yield torch.stack(there).double() - here.double()


def rounding(squares: Tensor, length: float | Tensor, dtype: torch.dtype) -> float:
    """Return the size below which an eigenvalue of inner products is only rounding.

    It is the rounding of the points, which have this ``length`` and ``dtype``, plus that of the
    decomposition, which is in float64; ``squares`` are its eigenvalues, the largest last.
    """
    eps = torch.finfo(squares.dtype).eps * len(squares)
    return float((torch.finfo(dtype).eps * length) ** 2 + eps * squares[-1])
