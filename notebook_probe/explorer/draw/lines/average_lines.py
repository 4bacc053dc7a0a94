"""The average of every selected series: of each recorded value, then thinned to the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from notebook_probe.explorer.draw.lines import long_lines
from notebook_probe.explorer.draw.lines.pixel_points import (
    NOTHING,
    PixelAxis,
    PixelPoints,
    points_of,
)
from notebook_probe.explorer.messages.selection import Series
from notebook_probe.record.format.source import StreamView
from notebook_probe.record.views.thinning.averages import (
    AVERAGED_TOGETHER,
    Averages,
    average_between,
    holding,
)
from notebook_probe.record.views.thinning.growing_series import GrowingSeries

__all__ = ["AverageLines", "Smoothing"]

AT_ONCE = 2**17
"""Values averaged before a click is answered: what some hundredths of a second are enough for."""
PER_FRAME = 2**21
"""Values averaged for each frame after that, until all have been."""


class Smoothing(NamedTuple):
    """Smoothing of a series: its weight, and whether logarithms are averaged."""

    weight: float
    log: bool


Streams = Mapping[str, StreamView]


class AverageLines:
    """Averages of the series on the screen, which continue when new rows are recorded.

    Attributes
    ----------
    share : float
        Fraction of the recorded values that the averages include.
    """

    def __init__(self) -> None:
        self._looks: dict[Series, Smoothing] = {}
        self._groups: dict[Series, Averages] = {}
        self._close: dict[Series, tuple[object, GrowingSeries]] = {}
        self.share = 1.0

    def read_new(self, streams: Streams, looks: Mapping[Series, Smoothing]) -> None:
        """Bring the averages of some series nearer to the end of the run."""
        wanted = {one: look for one, look in looks.items() if look.weight > 0}
        known = {
            one: self._groups[one]
            for one, look in wanted.items()
            if one in self._groups and self._looks[one] == look
        }
        new = self._taken_up(streams, {one: wanted[one] for one in wanted if one not in known})
        self._looks, self._groups = wanted, {**known, **new}
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
        window: tuple[float, float] | None,
        axis: PixelAxis,
        n_points: int,
    ) -> PixelPoints:
        """Return about ``n_points`` averages: the smallest and largest of every two pixels.

        Parameters
        ----------
        steps : (int, int)
            First and last step that are drawn.
        """
        group = self._groups.get(series)
        if group is None:
            return NOTHING
        column = group.columns[series[0]]
        # Thinned averages have too few points for a close-up: those rows are read again.
        if group.is_thin and window is not None:
            first, stop = column.rows(window)
            if stop - first < n_points:
                return points_of(self._close_up(streams, series, steps), None, axis, n_points)
        return points_of(column, window, axis, n_points)

    def _taken_up(
        self, streams: Streams, looks: Mapping[Series, Smoothing]
    ) -> dict[Series, Averages]:
        """Return new averages of the series for which anything is recorded."""
        found: dict[tuple[str, Smoothing, bool], list[str]] = {}
        for (module, quantity), look in looks.items():
            if held := holding(streams, module, quantity):
                thin = sum(one.n_rows for one in held.values()) > long_lines.FAR_ROWS
                found.setdefault((quantity, look, thin), []).append(module)
        taken: dict[Series, Averages] = {}
        for (quantity, (weight, log), thin), modules in found.items():
            for first in range(0, len(modules), AVERAGED_TOGETHER):
                some = modules[first : first + AVERAGED_TOGETHER]
                group = Averages(quantity, some, weight, log=log, thin=thin)
                taken |= {(module, quantity): group for module in some}
        return taken

    def _close_up(self, streams: Streams, series: Series, steps: tuple[int, int]) -> GrowingSeries:
        """Every average between two steps."""
        # With the streams' versions, as a resumed or rewound stream has other rows.
        version = [(name, one.version) for name, one in holding(streams, *series).items()]
        key = steps, version
        if series not in self._close or self._close[series][0] != key:
            weight, log = self._looks[series]
            column = GrowingSeries()
            column.append(*average_between(streams, *series, steps, weight, log=log))
            self._close[series] = key, column
        return self._close[series][1]
