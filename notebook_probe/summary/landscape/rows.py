"""Differences of snapshots from the last one, a row each, never all of them in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from notebook_probe.errors import CheckpointError, UnreadableError
from notebook_probe.quantities.reduce.slices import differences
from notebook_probe.summary.landscape.snapshot import ModelSnapshot

__all__ = ["PathRows"]


class PathRows:
    """``D``, tensor by tensor and some columns at a time, in float64.

    Parameters
    ----------
    snapshots : sequence of ModelSnapshot

    Attributes
    ----------
    origin : list of Tensor
        The moved parameters of the last one.
    """

    def __init__(self, snapshots: Sequence[ModelSnapshot]) -> None:
        last = snapshots[-1].moved
        if not last:
            raise UnreadableError("no parameter is a weight or a bias: there is nothing to move")
        for one in snapshots[:-1]:
            if _shapes(one.moved) != _shapes(last):
                raise CheckpointError(
                    f"snapshots {one.number} and {snapshots[-1].number} are not of one model: "
                    f"names or shapes of their parameters differ"
                )
        self.origin = [*last.values()]
        self._points = [[one.moved[name] for name in last] for one in snapshots]
        self.n_columns = sum(own.numel() for own in self.origin)

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[Tensor]:
        """All columns, some at a time."""
        for place in range(len(self.origin)):
            yield from self.of_tensor(place)

    def of_tensor(self, place: int) -> Iterator[Tensor]:
        """Return the columns of one tensor."""
        points = [own[place].reshape(-1) for own in self._points]
        return differences(points, points[-1])

    def products(self, centre: Tensor | float = 0.0) -> Tensor:
        """``(D - centre) (D - centre)'``.

        Raises
        ------
        UnreadableError
            A product is not finite.
        """
        found = torch.zeros(len(self), len(self), dtype=torch.float64)
        for columns in self:
            own = columns - centre
            # One small matrix is all that is kept of millions of columns.
            found += own @ own.T
        if not found.isfinite().all():
            raise UnreadableError("the snapshots hold values that are not finite: no plane")
        return found

    def means(self) -> Tensor:
        """Return the mean of each row, as a column."""
        total = torch.zeros(len(self), 1, dtype=torch.float64)
        for columns in self:
            total += columns.sum(dim=1, keepdim=True)
        return total / self.n_columns

    def combined(self, weights: Tensor, centre: Tensor | float = 0.0) -> Iterator[Tensor]:
        """``weights (D - centre)`` for several rows of weights, tensor by tensor; float64."""
        for place, own in enumerate(self.origin):
            parts = [weights @ (columns - centre) for columns in self.of_tensor(place)]
            yield torch.cat(parts, dim=1).reshape(len(weights), *own.shape)

    def along(self, pairs: Sequence[Tensor]) -> Tensor:
        """``D`` times several directions, which are given as `combined` gives them."""
        found = torch.zeros(len(self), len(pairs[0]), dtype=torch.float64)
        for place, pair in enumerate(pairs):
            start, flat = 0, pair.flatten(1)
            for columns in self.of_tensor(place):
                end = start + columns.shape[1]
                found += columns @ flat[:, start:end].double().T
                start = end
        return found

    @property
    def length(self) -> Tensor:
        """Norm of the origin, 0-d float64."""
        return torch.stack([own.double().square().sum() for own in self.origin]).sum().sqrt()


def _shapes(moved: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: own.shape for name, own in moved.items()}
