"""The reading side of a live run: the record, and the step that is still open."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.observer import Observer
from notebook_probe.record.joined import join, series, stack, tree
from notebook_probe.record.source import Event, ModuleRow, StreamView, VectorView
from notebook_probe.record.writer import RecordWriter
from notebook_probe.run.open_step import with_open_step
from notebook_probe.run.rows import RowKeeper

__all__ = ["LiveSource"]


class LiveSource:
    """A Source over what a writer has recorded and an observer still holds.

    Parameters
    ----------
    writer : RecordWriter
    rows : RowKeeper
    observer : Observer
    """

    def __init__(self, writer: RecordWriter, rows: RowKeeper, observer: Observer) -> None:
        self._writer, self._rows, self._observer = writer, rows, observer

    @property
    def location(self) -> str:
        return self._writer.location

    @property
    def revision(self) -> int:
        return self._writer.source.revision

    @property
    def finished(self) -> bool:
        return self._writer.source.finished

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        return self._writer.source.modules

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return self._writer.source.streams

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        """Streams of vectors, by path: ``"hist/every_1"``."""
        return self._writer.source.vectors

    @property
    def events(self) -> tuple[Event, ...]:
        return self._writer.source.events

    @property
    def data(self) -> xr.Dataset:
        """Everything recorded, dims (module, step), a variable per quantity; NaN = not measured.

        The streams of all schedules are joined on the union of their steps. The open step is
        part of it once its optimizer has stepped.
        """
        streams, vectors = self._now()
        return join(streams, self._definition_order(), vectors)

    @property
    def cube(self) -> xr.DataArray:
        """``data`` stacked: dims (module, quantity, step)."""
        return stack(self.data)

    @property
    def tree(self) -> xr.DataTree:
        """Every schedule's own step axis, nothing joined."""
        return tree(*self._now())

    def series(self, module: str, quantity: str) -> xr.DataArray:
        """One quantity of one module over the steps at which it was measured, dims (step,).

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        """
        streams, vectors = self._now()
        return series(streams, self._definition_order(), module, quantity, vectors)

    def _now(self) -> tuple[list[StreamView], list[VectorView]]:
        self._rows.drain()
        rows = [row for frame in self._open_frames() for row in self._rows.preview(frame)]
        vectors = with_open_step(self.vectors.values(), rows)
        return with_open_step(self.streams.values(), rows), vectors

    def _open_frames(self) -> list[StepFrame]:
        observer = self._observer
        frame = self._rows.provisional(observer.frame, observer.clock.has_stepped)
        return [one for one in (frame, observer.evaluation.frame) if one is not None]

    def _definition_order(self) -> list[str]:
        return [row.name for row in self.modules]
