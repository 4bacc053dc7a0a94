"""The reading side of a live run: the record, and the step that is still open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.record.export.exports import Exports
from notebook_probe.record.format.kinds import NAMED, NUMBERS, RAGGED
from notebook_probe.record.format.schema import BLOBS
from notebook_probe.record.format.source import Event, ModuleRow, StreamView, VectorView
from notebook_probe.record.views.xarray_views import Snapshot
from notebook_probe.record.write.recorded_source import RecordedSource
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.rows.layout import AnyRow
from notebook_probe.run.rows.open_step import with_open_step
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["LiveSource"]


class LiveSource(Exports):
    """A Source over what a writer has recorded and an observer still holds.

    Parameters
    ----------
    writer : RecordWriter
    rows : RowKeeper
    steps : ClosedSteps
    observer : Observer
    """

    def __init__(
        self, writer: RecordWriter, rows: RowKeeper, steps: ClosedSteps, observer: Observer
    ) -> None:
        self._writer, self._rows, self._steps, self._observer = writer, rows, steps, observer
        self.await_end: Callable[[], None] = lambda: None
        """Waits until a run that is being closed has recorded its last step."""

    @property
    def location(self) -> str:
        return self._writer.location

    @property
    def revision(self) -> int:
        return self._recorded.revision

    @property
    def finished(self) -> bool:
        return self._writer.source.finished

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        return self._writer.source.modules

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return self._recorded.streams

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        """Streams of vectors, by path: ``"hist/every_1"``."""
        return self._recorded.vectors

    @property
    def elements(self) -> Mapping[str, StreamView]:
        """Streams of vectors of every kind, a column for each element: ``conv1[3/64]``."""
        return self._recorded.elements

    @property
    def events(self) -> tuple[Event, ...]:
        return self._writer.source.events

    @property
    def all_events(self) -> tuple[Event, ...]:
        """Events on every branch, in the order in which they were written."""
        return self._writer.source.all_events

    def snapshot(self) -> Snapshot:
        self.await_end()
        self._steps.drain()  # the first array of a name says how large all are, not the open step's
        open_steps = [self._open_frames(), self._coming_frames()]
        rows = [[*self._rows_of(frames)] for frames in open_steps]
        now = self._recorded.snapshot()  # after them: a step that closes meanwhile is not missed
        for some in filter(None, rows):
            now = _with_rows(now, some)
        return now

    def _rows_of(self, frames: Iterable[StepFrame]) -> Iterator[AnyRow]:
        for frame in frames:
            one = self._steps.measured(frame, is_final=False)
            yield from self._rows.rows(one)
            yield from self._rows.loss_row(one)

    @property
    def _recorded(self) -> RecordedSource:
        """The writer's view, with all steps that are closed."""
        self.await_end()
        self._steps.drain()
        return self._writer.source

    def _open_frames(self) -> list[StepFrame]:
        observer = self._observer
        frame = self._steps.apart.provisional(observer.steps.frame, observer.clock.has_stepped)
        frames = (frame, observer.evaluation.frame, self._steps.apart.state)
        return [one for one in frames if one is not None]

    def _coming_frames(self) -> list[StepFrame]:
        """Return the values that were logged for the step after the open one."""
        frame = self._observer.steps.frame
        coming = None if frame is None else self._steps.apart.coming(frame.step + 1)
        return [] if coming is None else [coming]


def _with_rows(now: Snapshot, rows: Sequence[AnyRow]) -> Snapshot:
    """Return a snapshot with these rows at the end of their streams."""
    return replace(
        now,
        streams=with_open_step(now.streams, rows, NUMBERS.group),
        vectors=[with_open_step([view], rows, view.axis.group)[0] for view in now.vectors],
        ragged=with_open_step(now.ragged, rows, RAGGED.group),
        named=with_open_step(now.named, rows, NAMED.group),
        blobs=[
            with_open_step([view], rows, f"{BLOBS}/{view.variables[0].name}")[0]
            for view in now.blobs
        ],
    )
