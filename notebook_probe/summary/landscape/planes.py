"""The planes over which a loss is drawn: that of a path, and a random one round its end.

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
from notebook_probe.quantities.reduce.slices import Grid, evenly, random_direction
from notebook_probe.summary.landscape.components import Components
from notebook_probe.summary.landscape.rows import Rows
from notebook_probe.summary.landscape.settings import Method, Normalise
from notebook_probe.summary.landscape.snapshot import Snapshot

__all__ = ["Path", "Plane", "result_plane", "train_plane"]

MARGIN = 0.2
"""Of the path's range, that the axes go beyond it."""

SEEDS = (0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Where the snapshots of an interval lie in their plane.

    Attributes
    ----------
    numbers : tuple of int
    places : array (number, 2)
        The origin, which is the last, is at 0, 0.
    shares : (float, float)
        Of the squared distances from the origin, what each axis shows; by ``"mindspore"`` of the
        centred ones.
    """

    numbers: tuple[int, ...]
    places: npt.NDArray[np.float64]
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Where a loss is evaluated.

    Attributes
    ----------
    origin : Snapshot
    first, second : tuple of Tensor
        The directions, a tensor for each of ``origin.moved``, at least float32.
    grid : Grid
    path : Path or None
    """

    origin: Snapshot
    first: tuple[Tensor, ...]
    second: tuple[Tensor, ...]
    grid: Grid
    path: Path | None = None


def train_plane(snapshots: Sequence[Snapshot], size: int, method: Method = "svd") -> Plane:
    """The plane in which the path of an interval lies, as far as a path lies in a plane.

    With ``D`` the differences from the last snapshot, a row each, and ``D = U S V'``, the
    directions are the first two columns of ``V`` and the path is ``D V``; it begins at positive
    ``x`` and ``y``. By ``"mindspore"`` each row is first centred over its elements, the directions
    are the negative of the first two components (whose element of largest size is positive), each
    tensor of them as long as that of the origin, and the path is ``D`` by least squares.

    Parameters
    ----------
    snapshots : sequence of Snapshot
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
    rows = Rows(snapshots)
    found = (Components.by_svd if method == "svd" else Components.by_mindspore)(rows)
    path = Path(tuple(one.number for one in snapshots), found.places, found.shares)
    low, high = found.places.min(axis=0), found.places.max(axis=0)
    margin = MARGIN * (high - low)
    xs, ys = zip(*np.linspace(low - margin, high + margin, size).tolist(), strict=True)
    return Plane(snapshots[-1], found.first, found.second, Grid(xs, ys), path)


def result_plane(origin: Snapshot, size: int, normalise: Normalise = "filter") -> Plane:
    """A random plane round one snapshot, as Li et al. draw it; the same at each call.

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
    return Plane(origin, first, second, Grid(evenly(size), evenly(size)))
