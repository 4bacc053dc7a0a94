"""The planes over which a loss is drawn: the plane of a path, and a random one around its end.

A plane has an origin, the parameters of one snapshot, and two directions; a point of it is
``origin + x first + y second``. Only weights and biases are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.slices import SliceGrid, evenly, random_direction
from notebook_probe.summary.landscape.components import Components
from notebook_probe.summary.landscape.rows import PathRows
from notebook_probe.summary.landscape.settings import Method, Normalise
from notebook_probe.summary.landscape.snapshot import ModelSnapshot

__all__ = ["Path", "Plane", "result_plane", "train_plane"]

MARGIN = 0.2
"""Margin of the axes, as a fraction of the path's range."""

SEEDS = (0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Coordinates of an interval's snapshots in their plane.

    Attributes
    ----------
    numbers : tuple of int
    places : array (number, 2)
        The origin, which is the last, is at 0, 0.
    shares : (float, float)
        Fractions of the squared distances from the origin that each axis shows; by ``"mindspore"``,
        of the centered ones.
    """

    numbers: tuple[int, ...]
    places: npt.NDArray[np.float64]
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Plane over which a loss is evaluated.

    Attributes
    ----------
    origin : ModelSnapshot
    first, second : tuple of Tensor
        The directions, a tensor for each of ``origin.moved``, at least float32.
    grid : SliceGrid
    path : Path or None
    """

    origin: ModelSnapshot
    first: tuple[Tensor, ...]
    second: tuple[Tensor, ...]
    grid: SliceGrid
    path: Path | None = None


def train_plane(snapshots: Sequence[ModelSnapshot], size: int, method: Method = "svd") -> Plane:
    """Return the plane that best fits the path of an interval.

    With ``D`` the differences from the last snapshot, a row each, and ``D = U S V'``, the
    directions are the first two columns of ``V`` and the path is ``D V``; it starts at positive
    ``x`` and ``y``. By ``"mindspore"`` each row is first centered over its elements, the directions
    are the negative of the first two components (whose element of largest size is positive), each
    tensor of them scaled to the norm of the origin's, and the path is ``D`` by least squares.

    Parameters
    ----------
    snapshots : sequence of ModelSnapshot
        Three or more; the last one is the origin.
    size : int
        Points along each axis, which go 0.2 of the path's range beyond it.
    method : "svd" or "mindspore"

    Raises
    ------
    ValueError
        For fewer snapshots.
    CheckpointError
        They are not of one model.
    UnreadableError
        The path is straight, or holds values that are not finite: it has no plane.
    """
    if len(snapshots) < 3:
        numbers = ", ".join(str(one.number) for one in snapshots) or "none"
        raise ValueError(f"a path needs three snapshots or more; there are: {numbers}")
    rows = PathRows(snapshots)
    found = (Components.by_svd if method == "svd" else Components.by_mindspore)(rows)
    path = Path(tuple(one.number for one in snapshots), found.places, found.shares)
    low, high = found.places.min(axis=0), found.places.max(axis=0)
    margin = MARGIN * (high - low)
    xs, ys = zip(*np.linspace(low - margin, high + margin, size).tolist(), strict=True)
    return Plane(snapshots[-1], found.first, found.second, SliceGrid(xs, ys), path)


def result_plane(origin: ModelSnapshot, size: int, normalise: Normalise = "filter") -> Plane:
    """Return a random plane around one snapshot, as in Li et al.; the same at each call.

    Raises
    ------
    UnreadableError
        No parameter is a weight or a bias.
    """
    own = [*origin.moved.values()]
    if not own:
        raise UnreadableError("no parameter is a weight or a bias: there is nothing to move")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in own):
        raise UnreadableError(f"snapshot {origin.number} holds values that are not finite")
    first, second = (tuple(random_direction(own, seed, normalise)) for seed in SEEDS)
    return Plane(origin, first, second, SliceGrid(evenly(size), evenly(size)))
