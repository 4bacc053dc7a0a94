"""Points of the way that parameters have come, and what their differences say of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

__all__ = ["PathPoints", "differences", "rounding"]

PIECE = 1 << 18
"""Elements of a point that are compared at a time."""


class PathPoints:
    """Points of a path, at most so many and evenly spaced, the first one among them.

    Parameters
    ----------
    most : int
        How many are kept; an even number.
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
    """Up to where an eigenvalue of inner products of differences says nothing.

    Of the points themselves, which are as long as ``length`` and of ``dtype``, and of the
    decomposition, which is in float64; ``squares`` are its eigenvalues, the largest last.
    """
    eps = torch.finfo(squares.dtype).eps * len(squares)
    return float((torch.finfo(dtype).eps * length) ** 2 + eps * squares[-1])
