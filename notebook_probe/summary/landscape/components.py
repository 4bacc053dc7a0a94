"""The two directions in which a path reaches farthest, and where it lies along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.path import rounding
from notebook_probe.summary.landscape.rows import Rows

__all__ = ["Components"]


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Two directions, tensor by tensor, and the places of a path along them.

    The decomposition is of the products between the few rows, not of the many columns.
    """

    first: tuple[Tensor, ...]
    second: tuple[Tensor, ...]
    places: npt.NDArray[np.float64]
    shares: tuple[float, float]

    @classmethod
    def by_svd(cls, rows: Rows) -> Components:
        """The first two right singular vectors of ``D``; the path is ``U S``."""
        squares, vectors = _leading(rows.products(), rows)
        vectors = torch.where(vectors[0] < 0, -vectors, vectors)  # begins at positive x and y
        lengths = squares[:2].sqrt()
        directions = [rows.combined(own) for own in (vectors / lengths).T]
        first, second = (_as_kept(one, rows.origin) for one in directions)
        return cls(first, second, _from_origin(vectors * lengths), _shares(squares))

    @classmethod
    def by_mindspore(cls, rows: Rows) -> Components:
        """Components of the rows less their means, as long as the origin's tensors."""
        means = rows.means()
        squares, vectors = _leading(rows.products(means), rows)
        components = [rows.combined(own, means) for own in vectors.T]
        directions = [_lengthened(_turned(one), rows.origin) for one in components]
        first, second = (_as_kept(one, rows.origin) for one in directions)
        along = torch.stack([rows.along(first), rows.along(second)], dim=1)
        inner = [[_dot(one, other) for other in (first, second)] for one in (first, second)]
        inverse = torch.linalg.pinv(torch.tensor(inner, dtype=torch.float64), hermitian=True)
        return cls(first, second, _from_origin(along @ inverse), _shares(squares))


def _leading(products: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """All eigenvalues, the largest first, and the vectors of the first two.

    Raises
    ------
    UnreadableError
        Where there are no two.
    """
    squares, vectors = torch.linalg.eigh(products)
    wide = all(own.dtype == torch.float64 for own in rows.origin)
    dtype = torch.float64 if wide else torch.float32  # halves move by what they are rounded to
    if not squares[-2] > rounding(squares, rows.length, dtype):
        moved = "do not move" if squares[-1] <= 0 else "move along a line"
        raise UnreadableError(f"the parameters {moved} between the snapshots: there is no plane")
    return squares.flip(0).clamp(min=0), vectors.flip(1)[:, :2]


def _shares(squares: Tensor) -> tuple[float, float]:
    first, second = (squares[:2] / squares.sum()).tolist()
    return first, second


def _from_origin(places: Tensor) -> npt.NDArray[np.float64]:
    """The last of them is the origin, which rounding may have moved."""
    places[-1] = 0.0
    return places.numpy()


def _lengthened(component: Sequence[Tensor], origin: Sequence[Tensor]) -> list[Tensor]:
    """Each tensor as long as the origin's; what does not move stays where it is."""
    lengthened = []
    for part, own in zip(component, origin, strict=True):
        length = part.norm()
        lengthened.append(part * (own.double().norm() / length) if length > 0 else part)
    return lengthened


def _turned(component: Sequence[Tensor]) -> list[Tensor]:
    """So that its element of largest size is negative."""
    flat = [part.reshape(-1) for part in component if part.numel()]
    largest = max((float(part[part.abs().argmax()]) for part in flat), key=abs)
    return [-part if largest > 0 else part for part in component]


def _as_kept(direction: Sequence[Tensor], origin: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """In the precision in which it is used."""
    return tuple(
        part.to(torch.promote_types(own.dtype, torch.float32))
        for part, own in zip(direction, origin, strict=True)
    )


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    pairs = zip(one, other, strict=True)
    return sum(float((a.double() * b.double()).sum()) for a, b in pairs)
