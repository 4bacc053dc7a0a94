"""Overlay of other runs: computed in the thread in which they are read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from notebook_probe.compare import Alignment
from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.pace import Pace
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.others.divergence import RunDivergence
from notebook_probe.explorer.others.drawn_lines import Drawn, DrawnLines, beside_frame, grouped
from notebook_probe.explorer.others.shelf import Shelf
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["RunOverlay"]

LEAST_REST_S = 3.0
"""Least seconds between two updates of growing runs: a picture of a ratio is large."""


class RunOverlay:
    """Overlay of the selected runs; `offer` is called at each refresh and returns at once.

    Parameters
    ----------
    source : Source
        This run.
    shelf : Shelf
        Opens the other runs, and has the thread that reads them.

    Attributes
    ----------
    problems : mapping of str to str
        Location of a run, and the reason why it cannot be overlaid.
    """

    def __init__(
        self, source: RunSource, shelf: Shelf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source, self._shelf, self._clock = source, shelf, clock
        self._pace = Pace(clock)
        self._looked_s = -LEAST_REST_S
        # The worker makes frames, and the refresher's thread takes them.
        self._lock = threading.Lock()
        self._ready: dict[str, Frame] = {}
        self._sent: dict[str, Frame] = {}
        self._chosen: PanelSelection | None = None
        self._busy = False
        self._alignments: dict[tuple[str, str], Alignment] = {}
        self._lines: dict[str, DrawnLines] = {}
        self._records: dict[str, OpenedRecord] = {}
        self._apart: tuple[tuple[object, ...], RunDivergence] | None = None
        self.problems: Mapping[str, str] = {}

    def offer(self, selection: PanelSelection) -> None:
        """Draw the selection: at once if it has changed, else when it is time."""
        had_others = self._chosen is not None and self._chosen.others
        if self._busy or not (selection.others or had_others):
            # Nothing is queued while a drawing is under way: the next refresh offers a newer
            # selection.
            return
        rested = self._clock() - self._looked_s >= LEAST_REST_S and self._pace.rested()
        if selection != self._chosen or rested:
            self._busy, self._chosen = True, selection
            self._shelf.do(lambda: self._draw(selection))

    def frames(self) -> list[Frame]:
        """Return the new frames, each to be sent once."""
        with self._lock:
            ready, self._ready = self._ready, {}
            self._sent |= ready
        return list(ready.values())

    def forget(self) -> None:
        """Send everything next: a new view has nothing."""
        with self._lock:
            # Frames that were not fetched yet are newer than those sent, so they replace them.
            self._ready = self._sent | self._ready

    # ------------------------------------------------------------------- in the thread of the shelf

    def _draw(self, selection: PanelSelection) -> None:
        # Thread time: reading from a slow disk costs the training nothing.
        begun_s = time.thread_time()
        try:
            self.problems = self._drawn(selection)
        except Exception as error:  # the thread must survive errors of a source
            self.problems = dict.fromkeys(selection.others, _words(error))
        self._looked_s = self._clock()
        self._pace.drew(time.thread_time() - begun_s)
        self._busy = False

    def _drawn(self, selection: PanelSelection) -> dict[str, str]:
        """Draw all runs; return why some cannot be drawn."""
        problems: dict[str, str] = {}
        lines: dict[str, Mapping[Series, Drawn]] = {}
        for run in selection.others:
            try:
                lines[run] = self._lines_of(run, selection)
            # Any process may have written the record, on a disk that was removed.
            except Exception as error:
                problems[run] = _words(error)
        readable = [run for run in selection.others if run in lines]
        if selection.grouped and len(lines) > 1:
            lines = {"": grouped(list(lines.values()), log=selection.log_y is not False)}
        self._put(beside_frame(self._source, selection, lines))
        to = selection.ratio_to if selection.ratio_to in readable else next(iter(readable), "")
        if to and self._is_measured(selection.home):
            problems |= self._put_apart(readable if selection.grouped else [to], selection)
        return problems

    def _put_apart(self, whom: list[str], selection: PanelSelection) -> dict[str, str]:
        """Draw how far this run is from another, or a group; return who is left out and why."""
        records = [self._records[run] for run in whom]
        key = (selection.home, selection.aligned, selection.window, *map(id, records))
        try:
            if self._apart is None or self._apart[0] != key:
                self._apart = key, RunDivergence(self._source, records, whom[0], selection)
            for frame in self._apart[1].frames(selection):
                self._put(frame)
        except Exception as error:
            return dict.fromkeys(whom, _words(error))
        places = dict(zip(map(id, records), whom, strict=True))
        return {places[id(run)]: why for run, why in self._apart[1].lost}

    def _is_measured(self, quantity: str) -> bool:
        streams = self._source.streams.values()
        return any(one.name == quantity for stream in streams for one in stream.variables)

    def _lines_of(self, run: str, selection: PanelSelection) -> dict[Series, Drawn]:
        record = self._record(run)
        return self._lines[run].read(selection, self._alignment(run, record, selection.aligned))

    def _record(self, run: str) -> OpenedRecord:
        """Return the current record; what was read of another one in its place is dropped."""
        record = self._shelf.opened(run)
        if record is None:
            row = self._shelf.row(run)
            raise OSError(row["problem"] if row else "not read yet")
        if self._records.get(run) is not record:
            self._records[run] = record
            self._lines[run] = DrawnLines(record)
            self._alignments = {key: one for key, one in self._alignments.items() if key[0] != run}
        _ = record.revision  # looks for a newer commit
        return record

    def _alignment(self, run: str, record: OpenedRecord, by: str) -> Alignment:
        key = run, by
        if key not in self._alignments:
            self._alignments[key] = Alignment(self._source, record, by)
        return self._alignments[key]

    def _put(self, frame: Frame) -> None:
        """Send a frame, unless the views have it."""
        kind = str(frame[0]["type"])
        with self._lock:
            # An older frame of the kind that has not been fetched yet is out of date.
            self._ready.pop(kind, None)
            if not _same(self._sent.get(kind), frame):
                self._ready[kind] = frame


def _same(one: Frame | None, other: Frame) -> bool:
    if one is None or one[0] != other[0]:
        return False
    return [bytes(part) for part in one[1]] == [bytes(part) for part in other[1]]


def _words(error: Exception) -> str:
    told = isinstance(error, ProbeError | OSError)
    return str(error) if told else f"{type(error).__name__}: {error}"
