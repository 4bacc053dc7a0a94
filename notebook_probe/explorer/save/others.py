"""The runs beside one, opened for a file: their lines as the panel draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from notebook_probe.compare import Alignment, RunAxis
from notebook_probe.compare.axes import Run
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.others.drawn_lines import Drawn, DrawnLines, grouped
from notebook_probe.explorer.others.places import first_record
from notebook_probe.explorer.others.shelf import Other, stem
from notebook_probe.figures.beside import Beside
from notebook_probe.record.format.source import Source
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["OtherRun", "Others"]

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class OtherRun:
    """One of them, on the axis that is chosen."""

    location: str
    record: OpenedRecord
    alignment: Alignment

    @property
    def name(self) -> str:
        """As the panel calls it."""
        return stem(self.location)


class Others:
    """Those of a selection; they are opened anew, as a record is read in one thread.

    Attributes
    ----------
    notes : list of str
        What a file lacks: a run that cannot be read or aligned is left out, by name.
    """

    def __init__(self, source: Source, selection: PanelSelection) -> None:
        self._source = cast("Run", source)  # every source that is shown has a snapshot
        self._selection = selection
        self.notes: list[str] = []

    def each(self, read: Callable[[OtherRun], Read]) -> list[Read]:
        """What is read of each that can be."""
        found = []
        for location in self._selection.others:
            try:
                record = Other(first_record(location))
                alignment = Alignment(self._source, record, self._selection.aligned)
                found.append(read(OtherRun(location, record, alignment)))
            except Exception as error:  # a record may be anybody's, on a disk that has gone
                self.notes.append(f"without {stem(location)} ({error})")
        return found

    def lines(self, selection: PanelSelection) -> list[Beside]:
        """Of each series that is drawn, or of all runs their mean and how far they lie apart."""

        def read(run: OtherRun) -> tuple[str, dict[Series, Drawn]]:
            return run.name, DrawnLines(run.record).read(selection, run.alignment)

        runs = self.each(read)
        if selection.grouped and len(runs) > 1:
            mean = grouped([lines for _, lines in runs], log=selection.log_y is not False)
            runs = [(f"mean of {len(runs)} runs", mean)]
        return [
            self._placed(selection, name, place, series, line)
            for place, (name, lines) in enumerate(runs)
            for series, line in lines.items()
        ]

    def _placed(
        self, selection: PanelSelection, name: str, place: int, series: Series, line: Drawn
    ) -> Beside:
        """The line on the axis of the picture."""
        x = line.steps
        if selection.x_axis == "time":
            x = RunAxis(self._source, "time").places.at(x)
        band = None if line.low is None or line.high is None else (line.low, line.high)
        return Beside(x, line.values, name, selection.colour(series), place, band)
