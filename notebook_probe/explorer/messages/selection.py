"""Selection of a panel: one frozen value, shared by all its views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from notebook_probe.compare.line_axes import LineAxisName
from notebook_probe.explorer.charts import ChosenChart, Series, chart_message, chosen_charts
from notebook_probe.explorer.charts.chosen_chart import MOST_SMOOTH
from notebook_probe.explorer.messages.wire import VERSION, Alignment, SelectionMessage

__all__ = ["MOST_OTHERS", "N_COLOURS", "PanelSelection", "Series"]

N_COLOURS = 7
"""Distinguishable colors; the dash pattern changes after them."""

N_STYLES = 28
"""Colors with all their dash patterns."""

N_ROWS = 10
"""Default number of successive rows after which runs count as diverged."""

MOST_OTHERS = 4
"""Number of other runs that their dashes can distinguish."""


@dataclass(frozen=True, slots=True)
class PanelSelection:
    """Home quantity, series, step window and drawing options of one panel.

    Examples
    --------
    >>> chosen = PanelSelection().with_series(("fc1", "grad_norm"), ("fc2", "grad_norm"))
    >>> chosen.colour(("fc2", "grad_norm"))
    1
    >>> chosen.without(("fc1", "grad_norm")).colour(("fc2", "grad_norm"))
    1
    """

    home: str = ""
    series: tuple[Series, ...] = ()
    window: tuple[float, float] | None = None
    log_heat: bool | None = None
    cells: Literal["max", "mean"] = "max"
    log_y: bool | None = None
    """Scale of the y axis; None chooses: linear for shares and for values of both signs."""
    y_limits: tuple[float, float] | None = None
    outliers: bool = False
    """False leaves single values far beyond all others out of the scale of the y axis."""
    charts: tuple[ChosenChart, ...] = ()
    """Charts as arranged; if empty, they are made automatically, with the settings above."""
    log_x: bool = False
    smooth: float = 0.9
    x_axis: LineAxisName = "step"
    rows: tuple[str, ...] = ()
    folds: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Locations of the runs that are compared with this one."""
    ratio_to: str = ""
    """Run by which the heat map is divided; empty for this run's own values."""
    aligned: Alignment = "step"
    apart: tuple[float, int] = (2.0, N_ROWS)
    """Two runs diverge where their ratio is beyond the factor for this number of successive rows.
    """
    grouped: bool = False
    """True to draw the others as a group, with their mean and spread."""
    chosen_colors: tuple[tuple[str, str, int], ...] = ()
    """Module, quantity and color of the series whose color a user chose."""
    colours: Mapping[Series, int] = field(default_factory=lambda: MappingProxyType({}))
    """Every color ever assigned in this panel, including series no longer on the screen.

    A series with a chosen color keeps its automatic one, for when the choice is withdrawn.
    """

    @property
    def divided_by(self) -> tuple[str, ...]:
        """The runs whose values are in the heat map, too."""
        if not self.ratio_to:
            return ()
        return self.others if self.grouped else (self.ratio_to,)

    def chart(self, number: int) -> ChosenChart:
        """Return the settings of a chart by its number; those after the arranged ones share some.

        Limits by hand are those of the first chart.
        """
        if number < len(self.charts):
            return self.charts[number]
        limits = None if number else self.y_limits
        return ChosenChart((), self.log_y, limits, self.outliers, self.smooth)

    def with_series(self, *added: Series) -> PanelSelection:
        """Draw these series too; one that is on the screen already is not changed."""
        return self._drawing([*self.series, *added])

    def without(self, *removed: Series) -> PanelSelection:
        """Stop drawing these; their colors stay reserved while others are free."""
        return self._drawing([one for one in self.series if one not in removed])

    def chosen(self, message: SelectionMessage) -> PanelSelection:
        """Return the selection a view requests, with the colors assigned here."""
        others = tuple(dict.fromkeys(message["others"]))[:MOST_OTHERS]
        factor, n_rows = message["apart"]
        return replace(
            self._drawing(message["series"]),
            home=message["home"] or self.home,
            window=_forward(message["window"]),
            log_heat=message["log_heat"],
            cells=message["cells"],
            log_y=message["log_y"],
            y_limits=_forward(message["y_limits"]),
            outliers=message["outliers"],
            charts=chosen_charts(message["charts"], message["series"]),
            log_x=message["log_x"],
            # A weight of 1 would be a constant line.
            smooth=min(max(message["smooth"], 0.0), MOST_SMOOTH),
            x_axis=message["x_axis"],
            rows=tuple(message["rows"]),
            folds=tuple(message["folds"]),
            others=others,
            ratio_to=message["ratio_to"] if message["ratio_to"] in others else "",
            aligned=message["aligned"],
            apart=(factor, n_rows) if factor > 1 and n_rows > 0 else self.apart,
            grouped=message["grouped"],
            chosen_colors=_known_colors(message["chosen_colors"]),
        )

    def moved(self, window: tuple[float, float] | None) -> PanelSelection:
        """Return the selection with another step window."""
        return replace(self, window=_forward(window))

    def looking_at(self, name: str, value: Any) -> PanelSelection:
        """Return the selection with one trait changed."""
        if name == "series":
            return self._drawing(value)
        changed = replace(self, **{name: value})
        # The heat map cannot be divided by a run that is no longer overlaid.
        gone = changed.ratio_to not in changed.others
        return replace(changed, ratio_to="") if gone else changed

    @property
    def parted_by(self) -> tuple[float, int | None]:
        """The same, without a number of rows that nobody has chosen: steps are counted then."""
        factor, n_rows = self.apart
        return factor, None if n_rows == N_ROWS else n_rows

    def colour(self, series: Series) -> int:
        """Index of the color of a series on the screen: the chosen one, else the automatic one."""
        return self.drawn_colors[series]

    @property
    def drawn_colors(self) -> Mapping[Series, int]:
        """Color of each series that has one."""
        chosen = {(module, quantity): index for module, quantity, index in self.chosen_colors}
        return {**self.colours, **chosen}

    def message(self) -> SelectionMessage:
        """Return the message with the selection."""
        return {
            "v": VERSION,
            "type": "selection",
            "home": self.home,
            "series": list(self.series),
            "window": self.window,
            "log_heat": self.log_heat,
            "cells": self.cells,
            "log_y": self.log_y,
            "y_limits": self.y_limits,
            "outliers": self.outliers,
            "charts": [*map(chart_message, self.charts)],
            "log_x": self.log_x,
            "smooth": self.smooth,
            "x_axis": self.x_axis,
            "rows": list(self.rows),
            "folds": list(self.folds),
            "others": list(self.others),
            "ratio_to": self.ratio_to,
            "aligned": self.aligned,
            "apart": self.apart,
            "grouped": self.grouped,
            "chosen_colors": list(self.chosen_colors),
        }

    def _drawing(self, wanted: Iterable[Series]) -> PanelSelection:
        series = tuple(dict.fromkeys(wanted))
        colours = dict(self.colours)
        for one in series:
            if one not in colours:
                chosen = [index for _, _, index in self.chosen_colors]
                on_screen = [colours[other] for other in series if other in colours]
                bound = {*colours.values(), *chosen}
                colours = _bound_to(colours, one, _free(bound, [*on_screen, *chosen]))
        return replace(self, series=series, colours=MappingProxyType(colours))


def _forward(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return a range, None unless it has a length."""
    return ends if ends is not None and ends[1] > ends[0] else None


def _known_colors(
    chosen: Iterable[tuple[str, str, int]],
) -> tuple[tuple[str, str, int], ...]:
    """Return the last choice for each series, without colors that there are not."""
    last = {(module, quantity): index for module, quantity, index in chosen}
    known = {series: index for series, index in last.items() if 0 <= index < N_STYLES}
    return tuple((*series, index) for series, index in known.items())


def _free(bound: Set[int], on_screen: Sequence[int]) -> int:
    """Return a color that was never used; if there is none, the first not on the screen."""
    unused = next((index for index in range(N_COLOURS) if index not in bound), None)
    if unused is not None:
        return unused
    # On the screen are fewer than len + 1 colors, so one below that is always free.
    return next(index for index in range(len(on_screen) + 1) if index not in on_screen)


def _bound_to(colours: Mapping[Series, int], series: Series, index: int) -> dict[Series, int]:
    """Return the bindings with ``index`` moved to ``series`` from a removed series."""
    others = {other: bound for other, bound in colours.items() if bound != index}
    return {**others, series: index}
