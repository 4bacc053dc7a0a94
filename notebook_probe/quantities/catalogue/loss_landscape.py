"""Slices of the loss landscape along random directions, as Li et al. draw them."""

from __future__ import annotations

import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.quantities.reduce.slices import SliceGrid, evenly, random_direction

__all__ = ["DISTANCE", "PLANE", "filter_normalised", "loss_landscape_1d", "loss_landscape_2d"]

N_ALONG, N_ACROSS = 21, 11

DISTANCE = Axis("distance", {"distance": evenly(N_ALONG)}, "landscape_1d")
"""Along one direction, in units of each filter's own norm."""

GRID = SliceGrid(evenly(N_ACROSS), evenly(N_ACROSS))

PLANE = GRID.axis("plane", "plane", "landscape_2d")
"""The points of a square grid, row by row; units as above."""


@quantity(axis=DISTANCE, source="https://arxiv.org/abs/1712.09913", question=questions.PROGRESS)
def loss_landscape_1d(landscape: Landscape) -> Tensor:
    """Loss on the probe batch along a random direction, ``L(w + a d)``, ``a`` from -1 to 1.

    The direction is the same at every step; each of its filters has the norm of the weight's own,
    biases and other vectors stay where they are. A wide valley is a flat minimum.

    Warnings
    --------
    Nearly every random direction leads uphill and shows nothing of the sharpest ones: see
    `sharpness`.
    """
    direction = filter_normalised(landscape, 0)
    return torch.stack([landscape.loss_at(a * direction) for a in DISTANCE.coords["distance"]])


@quantity(axis=PLANE, source="https://arxiv.org/abs/1712.09913", question=questions.PROGRESS)
def loss_landscape_2d(landscape: Landscape) -> Tensor:
    """Loss on the probe batch over a plane, ``L(w + x d1 + y d2)``, ``x`` and ``y`` from -1 to 1.

    Directions as in `loss_landscape_1d`; 11 x 11 points along one axis, with the coordinates
    ``plane_x`` and ``plane_y``.

    Warnings
    --------
    121 evaluations of the loss. Two random directions say little of the millions there are.
    """
    first, second = (filter_normalised(landscape, seed) for seed in (0, 1))
    return GRID.losses(landscape, first, second)


def filter_normalised(landscape: Landscape, seed: int) -> Tensor:
    """A random direction, flat: each filter (entry of the first axis) as long as the weight's.

    Zero for vectors, such as biases and what normalisation layers learn.
    """
    return landscape.join([*random_direction(landscape.point, seed)])
