"""The average of every selected series: of each recorded value, then thinned to the pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notebook_probe.explorer.draw import long_lines
from notebook_probe.explorer.draw.pixel_points import NOTHING, PixelAxis, PixelPoints, points_of
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.thinning.averages import (
    AVERAGED_TOGETHER,
    Averages,
    average_between,
    holding,
)
from notebook_probe.record.views.thinning.column import Column

__all__ = ["AverageLines"]

AT_ONCE = 2**17
"""Values averaged before a click is answered: what some hundredths of a second are enough for."""
PER_FRAME = 2**21
"""Values averaged for each frame after that, until all have been."""

Streams = Mapping[str, StreamView]


class AverageLines:
    """Keeps the averages of the series on the screen and goes on with what these gain.

    Attributes
    ----------
    share : float
        Of the recorded values, how many are in the averages.
    """

    def __init__(self) -> None:
        self._look: tuple[float, bool] = (0.0, False)
        self._groups: dict[Series, Averages] = {}
        self._close: dict[Series, tuple[object, Column]] = {}
        self.share = 1.0

    def read_new(self, streams: Streams, selection: PanelSelection) -> None:
        """Bring the averages of the selected series nearer to the end of the run."""
        if (selection.smooth, selection.log_y) != self._look:
            self._look = selection.smooth, selection.log_y
            self._groups = {}
        known = {one: self._groups[one] for one in selection.series if one in self._groups}
        new = self._taken_up(streams, [one for one in selection.series if one not in known])
        self._groups = {**known, **new} if selection.smooth > 0 else {}
        self._close = {one: kept for one, kept in self._close.items() if one in known}
        groups = [*dict.fromkeys(self._groups.values())]
        left = AT_ONCE if new else PER_FRAME
        for group in groups:
            if left > 0:
                left -= group.read_new(streams, left)
        shares = [group.share(streams) for group in groups]
        self.share = sum(shares) / len(shares) if shares else 1.0

    def points(
        self,
        streams: Streams,
        series: Series,
        steps: tuple[int, int],
        selection: PanelSelection,
        axis: PixelAxis,
        n_points: int,
    ) -> PixelPoints:
        """About ``n_points`` of the averages, the smallest and largest of every two pixels.

        Parameters
        ----------
        steps : (int, int)
            The first and the last that are drawn.
        """
        group = self._groups.get(series)
        if group is None:
            return NOTHING
        column = group.columns[series[0]]
        if group.is_thin and selection.window is not None:
            first, stop = column.rows(selection.window)
            if stop - first < n_points:
                return points_of(self._close_up(streams, series, steps), None, axis, n_points)
        return points_of(column, selection.window, axis, n_points)

    def _taken_up(self, streams: Streams, series: Sequence[Series]) -> dict[Series, Averages]:
        """Averages that are begun, of those for which anything is recorded."""
        found: dict[tuple[str, bool], list[str]] = {}
        for module, quantity in series:
            if held := holding(streams, module, quantity):
                thin = sum(one.n_rows for one in held.values()) > long_lines.FAR_ROWS
                found.setdefault((quantity, thin), []).append(module)
        weight, log = self._look
        taken: dict[Series, Averages] = {}
        for (quantity, thin), modules in found.items():
            for first in range(0, len(modules), AVERAGED_TOGETHER):
                some = modules[first : first + AVERAGED_TOGETHER]
                group = Averages(quantity, some, weight, log=log, thin=thin)
                taken |= {(module, quantity): group for module in some}
        return taken

    def _close_up(self, streams: Streams, series: Series, steps: tuple[int, int]) -> Column:
        """Every average between two steps."""
        version = [(name, one.version) for name, one in holding(streams, *series).items()]
        key = steps, version
        if series not in self._close or self._close[series][0] != key:
            weight, log = self._look
            column = Column()
            column.append(*average_between(streams, *series, steps, weight, log=log))
            self._close[series] = key, column
        return self._close[series][1]
