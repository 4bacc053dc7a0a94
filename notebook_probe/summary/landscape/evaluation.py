"""The loss at every point of a plane, and what is told meanwhile."""

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
from notebook_probe.summary.landscape.progress import Progress, Tell, nobody
from notebook_probe.summary.landscape.snapshot import Snapshot

__all__ = ["Evaluated", "evaluate"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Losses of a plane; NaN where a loss is NaN, and where it was cancelled before.

    Attributes
    ----------
    losses : array (y, x)
    at_origin : float
    along_path : array (number,)
        Where the training was, which the plane comes near.
    n_done, n_points : int
        How many points of the plane were evaluated, a column after the other, and how many it has.
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
    """How much is done of how much, told after each loss."""

    what: str
    total: int
    tell: Tell
    begun: float = field(default_factory=time.perf_counter)
    done: int = 0

    def count(self) -> None:
        self.done += 1
        self.tell(Progress(self.what, self.done, self.total, self.seconds))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun


def evaluate(
    plane: Plane,
    loss: MeanLoss,
    path: Iterable[Snapshot] = (),
    *,
    what: str = "loss landscape",
    tell: Tell = nobody,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Evaluated:
    """The loss over a plane, at its origin, and where the snapshots of its path really were.

    The model's own parameters, buffers, modes and gradients, and the random generators, are as
    they were afterwards, whatever is raised inside, an interrupt too: other tensors stand in for
    them. A loss over the plane has the buffers of its origin, one of the path those of its own
    snapshot. Beside the plane there is one more copy of the parameters at a time.

    Parameters
    ----------
    plane : Plane
    loss : MeanLoss
    path : iterable of Snapshot
    what : str
        Called so in what is told.
    tell : callable
        Told the `Progress` after each loss; the first time what all will take.
    is_cancelled : callable
        Asked before each loss; what is not evaluated then stays NaN.

    Raises
    ------
    CheckpointError
        The snapshots are not of such a model.
    """
    path = [*path]
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
    across = losses.reshape(len(plane.grid.xs), -1).T
    return Evaluated(across, at_origin, along, n_done, n_points, work.seconds)


def _placed(plane: Plane, loss: MeanLoss) -> tuple[Landscape, _Moved]:
    """The landscape round an origin where the model is, and the parameters at its points."""
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


def _state(snapshot: Snapshot, loss: MeanLoss) -> dict[str, Tensor]:
    """The parameters and buffers of a snapshot as the model has its own; copies of buffers."""
    own = {**dict(loss.model.named_parameters()), **dict(loss.model.named_buffers())}
    saved = {**snapshot.parameters, **snapshot.buffers}
    with torch.no_grad():
        return {
            name: value.to(own[name].device, own[name].dtype, copy=name in snapshot.buffers)
            for name, value in saved.items()
        }
