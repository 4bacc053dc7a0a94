"""The ways to look at a record, written once for whoever holds one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xarray as xr

from notebook_probe.record import joined
from notebook_probe.record.branches import Branches
from notebook_probe.record.source import StreamView, VectorView

__all__ = ["Snapshot", "Views"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a source holds now."""

    streams: Sequence[StreamView]
    """As they lie in the record, those of every branch."""
    vectors: Sequence[VectorView]
    modules: Sequence[str]
    """Names in definition order."""
    attrs: Mapping[str, Any]
    branches: Branches

    @property
    def history(self) -> tuple[list[StreamView], list[VectorView]]:
        """Streams and vectors of the newest branch, what came before it included."""
        return self.branches.history(self.streams), self.branches.history(self.vectors)


class Views(ABC):
    """Everything a Source derives from its streams; each look is of one moment."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """What there is to look at now."""

    @property
    def data(self) -> xr.Dataset:
        """Everything recorded, dims (module, step), a variable per quantity; NaN = not measured.

        The streams of all schedules are joined on the union of their steps; vectors have their
        axis as a third dimension. Values are read where they are looked at. Of a live run, the
        open step is part of it once its optimizer has stepped.
        """
        now = self.snapshot()
        streams, vectors = now.history
        return joined.join(streams, now.modules, vectors).assign_attrs(now.attrs)

    @property
    def cube(self) -> xr.DataArray:
        """Numbers of ``data`` stacked: dims (module, quantity, step); select before loading."""
        return joined.stack(self.data)

    @property
    def tree(self) -> xr.DataTree:
        """Every schedule's own step axis, of every branch, exact, nothing joined."""
        now = self.snapshot()
        return joined.tree(now.streams, now.vectors)

    def series(self, module: str, quantity: str) -> xr.DataArray:
        """One quantity of one module over the steps at which it was measured, dims (step,).

        A vector has its axis as a second dimension.

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        """
        now = self.snapshot()
        streams, vectors = now.history
        return joined.series(streams, now.modules, module, quantity, vectors)
