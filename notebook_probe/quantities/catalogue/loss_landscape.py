"""Slices of the loss landscape along random directions, as Li et al. draw them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from notebook_probe.axis import Axis
from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.decorator import quantity
from notebook_probe.quantities.reduce.landscape import Landscape

__all__ = ["DISTANCE", "PLANE", "filter_normalised", "loss_landscape_1d", "loss_landscape_2d"]

N_ALONG, N_ACROSS = 21, 11


def _line(n: int) -> tuple[float, ...]:
    return tuple(np.linspace(-1, 1, n).round(9).tolist())


DISTANCE = Axis("distance", {"distance": _line(N_ALONG)}, "landscape_1d")
"""Along one direction, in units of each filter's own norm."""

PLANE = Axis(
    "plane",
    {
        "plane": tuple(map(float, range(N_ACROSS**2))),
        "plane_x": tuple(np.repeat(_line(N_ACROSS), N_ACROSS).tolist()),
        "plane_y": tuple(np.tile(_line(N_ACROSS), N_ACROSS).tolist()),
    },
    "landscape_2d",
)
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

    Directions as in `loss_landscape_1d`; 11 x 11 points along one axis, whose coordinates
    ``plane_x`` and ``plane_y`` tell where each lies.

    Warnings
    --------
    121 evaluations of the loss. Two random directions say little of the millions there are.
    """
    first, second = (filter_normalised(landscape, seed) for seed in (0, 1))
    points = zip(PLANE.coords["plane_x"], PLANE.coords["plane_y"], strict=True)
    return torch.stack([landscape.loss_at(x * first + y * second) for x, y in points])


def filter_normalised(landscape: Landscape, seed: int) -> Tensor:
    """A random direction, flat: each filter (entry of the first axis) as long as the weight's.

    Zero for vectors, such as biases and what normalisation layers learn.
    """
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for own in landscape.point:
        direction = torch.randn(own.shape, generator=generator).to(own.device)
        if own.dim() > 1:
            weight = own.detach().float()
            axes = tuple(range(1, own.dim()))
            lengths = torch.linalg.vector_norm(direction, dim=axes, keepdim=True)
            wanted = torch.linalg.vector_norm(weight, dim=axes, keepdim=True)
            parts.append(direction * wanted / lengths)
        else:
            parts.append(torch.zeros_like(direction))
    return landscape.join(parts)
