"""The two directions in which a path extends farthest, and its coordinates along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.slices import rounding
from notebook_probe.summary.landscape.rows import PathRows

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
    def by_svd(cls, rows: PathRows) -> Components:
        """Return the first two right singular vectors of ``D``; the path is ``U S``."""
        squares, vectors = _leading(rows.products(), rows)
        vectors = torch.where(vectors[0] < 0, -vectors, vectors)  # begins at positive x and y
        # The right singular vectors are D' u / s.
        lengths = squares[:2].sqrt()
        pairs = [
            _as_kept(pair, own)
            for pair, own in zip(rows.combined((vectors / lengths).T), rows.origin, strict=True)
        ]
        return cls._of(pairs, vectors * lengths, squares)

    @classmethod
    def by_mindspore(cls, rows: PathRows) -> Components:
        """Components of the rows less their means, as long as the origin's tensors."""
        means = rows.means()
        squares, vectors = _leading(rows.products(means), rows)
        pairs, largest = [], torch.zeros(2, dtype=torch.float64)
        for pair, own in zip(rows.combined(vectors.T, means), rows.origin, strict=True):
            largest = _larger(largest, pair)
            pairs.append(_as_kept(_lengthened(pair, own), own))
        for pair in pairs:  # the element of largest size is negative
            pair.mul_(-largest.sign().to(pair).reshape(2, *(1 for _ in pair.shape[1:])))
        # Directions are not orthogonal after they were lengthened, so coordinates need the inverse.
        inner = torch.stack([_inner(pair) for pair in pairs]).sum(dim=0)
        places = rows.along(pairs) @ torch.linalg.pinv(inner, hermitian=True)
        return cls._of(pairs, places, squares)

    @classmethod
    def _of(cls, pairs: Sequence[Tensor], places: Tensor, squares: Tensor) -> Components:
        places[-1] = 0.0  # the origin, which rounding may have moved
        first, second = zip(*pairs, strict=True)
        shares = (squares[:2] / squares.sum()).tolist()
        return cls(first, second, places.numpy(), (shares[0], shares[1]))


def _leading(products: Tensor, rows: PathRows) -> tuple[Tensor, Tensor]:
    """All eigenvalues, the largest first, and the vectors of the first two.

    Raises
    ------
    UnreadableError
        There are no two directions.
    """
    squares, vectors = torch.linalg.eigh(products)
    wide = all(own.dtype == torch.float64 for own in rows.origin)
    dtype = torch.float64 if wide else torch.float32  # halves move by what they are rounded to
    if not squares[-2] > rounding(squares, rows.length, dtype):
        moved = "do not move" if squares[-1] <= 0 else "move along a line"
        raise UnreadableError(f"the parameters {moved} between the snapshots: there is no plane")
    return squares.flip(0).clamp(min=0), vectors.flip(1)[:, :2]


def _lengthened(pair: Tensor, origin: Tensor) -> Tensor:
    """Scale both to the norm of the origin's tensor; zero tensors stay zero."""
    flat = pair.flatten(1)
    lengths = flat.norm(dim=1, keepdim=True)
    scales = torch.where(lengths > 0, origin.double().norm() / lengths, 0.0)
    return (flat * scales).reshape(pair.shape)


def _larger(largest: Tensor, pair: Tensor) -> Tensor:
    """Return the element of largest size so far, of both."""
    if not pair.numel():
        return largest
    flat = pair.flatten(1)
    found = flat.gather(1, flat.abs().argmax(dim=1, keepdim=True)).squeeze(1)
    return torch.where(found.abs() > largest.abs(), found, largest)


def _as_kept(pair: Tensor, origin: Tensor) -> Tensor:
    """Return the pair in the precision in which it is used."""
    return pair.to(torch.promote_types(origin.dtype, torch.float32))


def _inner(pair: Tensor) -> Tensor:
    flat = pair.flatten(1).double()
    return flat @ flat.T
