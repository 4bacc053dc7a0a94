"""Path of the parameters: how straight it is, and the loss over its plane.

Some points of it are kept, from the first due step on and evenly spaced: eight copies of the
parameters at most for each of these quantities, on the host. Its principal directions are those of
the differences from where the parameters are now, as in Li et al.
"""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.slices import PathPoints, SliceGrid, evenly, rounding
from notebook_probe.quantities.reduce.solvers import eigvalsh

__all__ = ["DIRECTIONS", "MOST", "PATH_PLANE", "LossLandscapePath", "PathPoints", "PathShares"]

MOST = 8
"""Earlier points that are kept."""

PIECE = 1 << 18
"""Elements of a point that are compared at a time."""

N_ACROSS = 11
GRID = SliceGrid(*2 * (evenly(N_ACROSS, -1.25, 1.25),))

DIRECTIONS = Axis("direction", {"direction": tuple(map(float, range(1, MOST + 1)))}, "path")
"""Principal directions, the longest first."""

PATH_PLANE = GRID.axis("path_plane", "path", "landscape_path")
"""The points of a grid, row by row, in units of how far the path reaches along each direction."""


class _Path:
    """Value of the points so far at each due step, whose point is then added."""

    def __init__(self) -> None:
        self._points = PathPoints(MOST, PIECE)
        self._is_lost = False

    def reset(self) -> None:
        """The points stay."""
        self._value: Tensor | None = None

    def begin_late(self) -> None:
        """Give no value without the beginning of the path."""
        self._is_lost = True

    def update(self, landscape: Landscape) -> None:
        # On the host: eight more copies of the parameters may not fit on the device.
        here = landscape.position.cpu()
        if any(len(point) != len(here) for point in self._points.points):  # others are trained now
            self._points = PathPoints(MOST, PIECE)
        if len(self._points.points) > 1:
            products = self._points.products(here)
            if products.isfinite().all():
                self._value = self.value_at(products, self._points, here, landscape)
        self._points.add(here)

    def value_at(
        self, products: Tensor, points: PathPoints, here: Tensor, landscape: Landscape
    ) -> Tensor | None:
        """The value, by the inner products between the differences of the points from here."""
        raise NotImplementedError

    def compute(self) -> Tensor | None:
        return None if self._is_lost else self._value


@window_quantity(
    samples="due",
    axis=DIRECTIONS,
    source="https://arxiv.org/abs/1712.09913",
    question=questions.PROGRESS,
)
class PathShares(_Path):
    """Straightness of the parameters' path, ``s_i^2 / sum s^2`` of each principal direction.

    ``s`` are the singular values of the differences between earlier points and where the
    parameters are now. A first one near 1 is a straight way; the first two together say how much of
    the path `loss_landscape_path` shows. Missing before the third due step, and where nothing has
    moved.

    Warnings
    --------
    Even a random walk in many dimensions has most in its first two directions: compare runs. It
    keeps up to eight copies of the parameters.
    """

    def value_at(
        self, products: Tensor, points: PathPoints, here: Tensor, landscape: Landscape
    ) -> Tensor | None:
        # Rounding may leave eigenvalues just below 0.
        squares = eigvalsh(products).clamp(min=0).flip(0)
        if not squares[0] > 0:
            return None
        shares = torch.zeros(MOST, dtype=torch.float64)
        shares[: len(squares)] = squares / squares.sum()
        return shares


@window_quantity(
    samples="due",
    axis=PATH_PLANE,
    source="https://arxiv.org/abs/1712.09913",
    question=questions.PROGRESS,
)
class LossLandscapePath(_Path):
    """Loss on the probe batch over the plane of the path, ``L(w + x r1 d1 + y r2 d2)``.

    ``d1`` and ``d2`` are the first two principal directions of the way from earlier points, turned
    so that it begins at positive ``x`` and ``y``; ``r1`` and ``r2`` how far it reaches along them.
    ``w``, where the parameters are now, is in the middle of the 11 x 11 points, whose coordinates
    ``path_x`` and ``path_y`` go from -1.25 to 1.25. A valley along ``x`` is the way down. Missing
    before the third due step, and where the path is straight.

    Warnings
    --------
    121 evaluations of the loss, and up to eight copies of the parameters. `path_shares` tells how
    much of the path is in the plane; off it the loss may look quite different.
    """

    def value_at(
        self, products: Tensor, points: PathPoints, here: Tensor, landscape: Landscape
    ) -> Tensor | None:
        squares, vectors = torch.linalg.eigh(products)
        # A path along a line has no second direction; what is found there is rounding.
        if not squares[-2] > rounding(squares, here.norm(), here.dtype):
            return None
        device = landscape.point[0].device
        first, second = (_reach(points, here, own).to(device) for own in vectors.T.flip(0)[:2])
        return GRID.losses(landscape, first, second)


def _reach(points: PathPoints, here: Tensor, own: Tensor) -> Tensor:
    """Return the reach of the path along a direction, times that direction.

    With the differences ``D = U S V'``, the coordinates are ``s u``, and the direction is
    ``D' u / s``.
    """
    # The sign of an eigenvector is arbitrary; fixed, so that the picture does not flip between
    # steps.
    begins_above = own if own[0] >= 0 else -own
    return points.sum(here, begins_above * own.abs().max())
