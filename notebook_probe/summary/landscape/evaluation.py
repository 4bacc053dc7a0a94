"""Loss at every point of a plane, with progress reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.quantities.reduce.landscape import Landscape
from notebook_probe.summary.landscape.mean_loss import MeanLoss
from notebook_probe.summary.landscape.planes import Plane
from notebook_probe.summary.landscape.progress import LandscapeProgress, Tell, ignore
from notebook_probe.summary.landscape.snapshot import ModelSnapshot

__all__ = ["Evaluated", "evaluate"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Losses of a plane; NaN where a loss is NaN, and where it was canceled before.

    Attributes
    ----------
    losses : array (y, x)
    at_origin : float
    along_path : array (number,)
        Losses at the training's own positions, which the plane approximates.
    n_done, n_points : int
        Number of evaluated points of the plane, column by column, and of all its points.
    seconds : float
    """

    losses: Floats
    at_origin: float
    along_path: Floats
    n_done: int
    n_points: int
    seconds: float


@dataclass(slots=True)
class _Work:
    """Progress of an evaluation, reported after each loss."""

    what: str
    total: int
    tell: Tell
    begun: float = field(default_factory=time.perf_counter)
    done: int = 0

    def count(self) -> None:
        self.done += 1
        self.tell(LandscapeProgress(self.what, self.done, self.total, self.seconds))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun


def evaluate(
    plane: Plane,
    loss: MeanLoss,
    path: Iterable[ModelSnapshot] = (),
    *,
    what: str = "loss landscape",
    tell: Tell = ignore,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Evaluated:
    """Return the loss over a plane, at its origin, and at the true positions of its path.

    The model's own parameters, buffers, modes and gradients, and the random generators, are
    restored afterwards, also after an error or an interrupt: other tensors are used instead. A loss
    over the plane has the buffers of its origin, one of the path has those of its snapshot. The
    plane needs memory for one more copy of the parameters.

    Parameters
    ----------
    plane : Plane
    loss : MeanLoss
    path : iterable of ModelSnapshot
    what : str
        Name of the evaluation in reports.
    tell : callable
        Called with the `LandscapeProgress` after each loss; the first time with the total.
    is_cancelled : callable
        Called before each loss; losses that are not evaluated stay NaN.

    Raises
    ------
    CheckpointError
        The snapshots are not of such a model.
    """
    path = [*path]
    # Before the first loss: a model that does not fit would fail after minutes.
    for one in (plane.origin, *path):
        one.check(loss.model)
    n_points = len(plane.grid)
    work = _Work(what, 1 + len(path) + n_points, tell)
    losses, along = np.full(n_points, np.nan), np.full(len(path), np.nan)
    with loss.untouched():
        landscape, moved = _placed(plane, loss)
        at_origin = float(landscape.value)
        work.count()
        for place, one in enumerate(path):
            if is_cancelled():
                break
            along[place] = float(loss(_state(one, loss)))
            work.count()
        n_done = 0
        for x, y in plane.grid:
            if is_cancelled():
                break
            losses[n_done] = float(landscape.loss_of(moved(x, y)))
            n_done += 1
            work.count()
    # The grid goes along y for each x; a picture has y first.
    across = losses.reshape(len(plane.grid.xs), -1).T
    return Evaluated(across, at_origin, along, n_done, n_points, work.seconds)


def _placed(plane: Plane, loss: MeanLoss) -> tuple[Landscape, _Moved]:
    """Return the landscape around an origin on the model's device, and its parameters."""
    state = _state(plane.origin, loss)
    names = [*plane.origin.moved]
    fixed = {name: value for name, value in state.items() if name not in names}

    def at(point: Iterable[Tensor]) -> Tensor:
        others = {name: value.clone() for name, value in fixed.items()}  # a call may write there
        return loss({**others, **dict(zip(names, point, strict=True))})

    point = [state[name] for name in names]
    return Landscape(at, point), _Moved(point, plane)


class _Moved:
    """The parameters at a point of a plane, computed in float32 or wider; a copy at a time."""

    def __init__(self, point: Sequence[Tensor], plane: Plane) -> None:
        self._parts = [
            (own, first.to(own.device), second.to(own.device))
            for own, first, second in zip(point, plane.first, plane.second, strict=True)
        ]

    def __call__(self, x: float, y: float) -> list[Tensor]:
        with torch.no_grad():
            return [
                torch.add(own, first, alpha=x).add_(second, alpha=y).to(own.dtype)
                for own, first, second in self._parts
            ]


def _state(snapshot: ModelSnapshot, loss: MeanLoss) -> dict[str, Tensor]:
    """Return a snapshot's parameters and buffers in the model's dtypes; copies of buffers."""
    own = {**dict(loss.model.named_parameters()), **dict(loss.model.named_buffers())}
    saved = {**snapshot.parameters, **snapshot.buffers}
    with torch.no_grad():
        return {
            name: value.to(own[name].device, own[name].dtype, copy=name in snapshot.buffers)
            for name, value in saved.items()
        }
