"""Other runs, opened for a file: their lines as the panel draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from notebook_probe.compare import Alignment, parting
from notebook_probe.compare.line_axes import line_axis
from notebook_probe.compare.ratio_grid import Ratio, ratio
from notebook_probe.explorer.draw.heat_rows import ratio_rows
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.others.drawn_lines import Drawn, DrawnLines, grouped
from notebook_probe.explorer.others.places import first_record
from notebook_probe.explorer.others.shelf import Other
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import stem
from notebook_probe.record.views.xarray_views import RunSource

if TYPE_CHECKING:
    from notebook_probe.figures.divergence import Apart
    from notebook_probe.figures.overlay import OverlaidSeries

__all__ = ["OtherRun", "Others"]

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class OtherRun:
    """One other run, on the chosen axis."""

    location: str
    record: OpenedRecord
    alignment: Alignment

    @property
    def name(self) -> str:
        """Name of the run in the panel."""
        return stem(self.location)


class Others:
    """Other runs of a selection; opened again, as a record is read in one thread.

    Attributes
    ----------
    notes : list of str
        Notes on missing parts: a run that cannot be read or aligned is left out, by name.
    """

    def __init__(self, source: RunSource, selection: PanelSelection) -> None:
        self._source = source
        self._selection = selection
        self.notes: list[str] = []

    def each(self, read: Callable[[OtherRun], Read]) -> list[Read]:
        """Apply a function to each run that can be read."""
        found = []
        for location in self._selection.others:
            try:
                record = Other(first_record(location))
                alignment = Alignment(self._source, record, self._selection.aligned)
                found.append(read(OtherRun(location, record, alignment)))
            # Any process may have written the record, on a disk that was removed.
            except Exception as error:
                self._note(f"without {stem(location)} ({error})")
        return found

    def _note(self, text: str) -> None:
        """Add a note, once per text."""
        if text not in self.notes:
            self.notes.append(text)

    def lines(self, selection: PanelSelection) -> list[OverlaidSeries]:
        """Return the lines of each run, or the mean of all runs and their spread."""

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

    def apart(self, selection: PanelSelection) -> Apart | None:
        """Return the divergence of this run from others; None if there is none to show."""
        from notebook_probe.figures.divergence import Apart  # matplotlib, for pictures alone

        if not selection.divided_by:
            return None
        read = self.each(lambda run: run)
        runs = [run.record for run in read if run.location in selection.divided_by]
        found = self._ratio(runs, selection) if runs else None
        if found is None:
            self._note("its heat map of this run alone")
            return None
        (factor, rows), by = selection.parted_by, selection.aligned
        parted = parting(self._source, runs, selection.home, factor=factor, rows=rows, by=by)
        return Apart(ratio_rows(found, selection.rows, selection.folds), parted)

    def _ratio(self, runs: Sequence[RunSource], selection: PanelSelection) -> Ratio | None:
        from notebook_probe.figures.cells import N_COLUMNS

        window, by = selection.window, selection.aligned
        home = selection.home
        return ratio(self._source, runs, home, by=by, n_columns=N_COLUMNS, window=window)

    def _placed(
        self, selection: PanelSelection, name: str, place: int, series: Series, line: Drawn
    ) -> OverlaidSeries:
        """Return the line on the axis of the picture."""
        from notebook_probe.figures.overlay import OverlaidSeries

        x = line_axis(self._source, selection.x_axis).at(line.steps)
        band = None if line.low is None or line.high is None else (line.low, line.high)
        return OverlaidSeries(
            series=series,
            x=x,
            y=line.values,
            name=name,
            colour=selection.colour(series),
            dash=place,
            band=band,
        )
