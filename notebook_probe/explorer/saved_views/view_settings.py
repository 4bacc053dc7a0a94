"""Settings of a saved view: quantity, series by module globs, scales; independent of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, cast, get_type_hints

from notebook_probe.compare.line_axes import LineAxisName
from notebook_probe.errors import ProbeError
from notebook_probe.explorer.charts import ChosenChart, chart_message, chosen_charts
from notebook_probe.explorer.declared import read_declared
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import SelectionMessage
from notebook_probe.record.format.source import ROOT, Source

__all__ = ["MOST_LINES", "ViewSettings"]

_HINTS = get_type_hints(SelectionMessage)

MOST_LINES = 100
"""A glob that matches every module of a large model draws this many lines at most."""


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """Settings of a panel, without those of one run: its zoom, its colors, other runs.

    Attributes
    ----------
    home : str
        Quantity of the heat map.
    series : tuple of (str, str)
        Module and quantity of each line; a module may be a glob, such as ``"blocks.*.attn"``.
    charts : tuple of ChosenChart
        Charts as arranged; their series are drawn, too, and may have globs as well.
    rows, folds : tuple of str
        Rows of the heat map, and folded modules.
    chosen_colors : tuple of (str, str, int)
        Module, quantity and color; a module may be a glob.

    Examples
    --------
    >>> chosen = PanelSelection(home="grad_norm").with_series(("fc1", "grad_norm"))
    >>> ViewSettings.of(chosen).to_json()["series"]
    [['fc1', 'grad_norm']]
    """

    home: str = ""
    series: tuple[tuple[str, str], ...] = ()
    log_heat: bool | None = None
    cells: str = "max"
    log_y: bool | None = None
    y_limits: tuple[float, float] | None = None
    outliers: bool = False
    charts: tuple[ChosenChart, ...] = ()
    log_x: bool = False
    smooth: float = 0.9
    x_axis: LineAxisName = "step"
    rows: tuple[str, ...] = ()
    folds: tuple[str, ...] = ()
    chosen_colors: tuple[tuple[str, str, int], ...] = ()

    @classmethod
    def of(cls, selection: PanelSelection) -> ViewSettings:
        """Return the settings of what is looked at."""
        return cls(**{one.name: getattr(selection, one.name) for one in fields(cls)})

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> ViewSettings:
        """Return the settings in a file; what it leaves out is as in a new panel.

        Raises
        ------
        ProbeError
            An unknown setting, or one of another type.
        """
        known = {one.name for one in fields(cls)}
        if unknown := sorted({*settings} - known):
            allowed = ", ".join(sorted(known))
            raise ProbeError(f"a view has no setting {unknown[0]!r}; allowed: {allowed}")
        given = {**settings, "charts": _filled(settings.get("charts", []))}
        read = {
            name: read_declared(value, _HINTS[name], f"{name!r} of a saved view")
            for name, value in given.items()
        }
        message = cast("SelectionMessage", {**PanelSelection().message(), **read})
        charts = chosen_charts(message["charts"])
        return replace(cls.of(PanelSelection().chosen(message)), charts=charts)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as they are written to a file."""
        return {
            **asdict(self),
            "series": [list(one) for one in self.series],
            "charts": [_plain(one) for one in self.charts],
            "rows": list(self.rows),
            "folds": list(self.folds),
            "chosen_colors": [list(one) for one in self.chosen_colors],
            "y_limits": None if self.y_limits is None else list(self.y_limits),
        }

    def applied(self, selection: PanelSelection, source: Source) -> PanelSelection:
        """Return the selection with these settings, for the modules of this run."""
        known = axis_order(source)
        charts = tuple(
            replace(one, series=_expanded(one.series, known)[:MOST_LINES]) for one in self.charts
        )
        arranged = [pair for one in charts for pair in one.series]
        series = [*dict.fromkeys([*_expanded(self.series, known), *arranged])][:MOST_LINES]
        drawn = selection.without(*selection.series).with_series(*series)
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "series"}
        own["charts"] = chosen_charts([*map(chart_message, charts)], series)
        own["home"] = self.home or selection.home
        own["rows"] = tuple(one for one in self.rows if one in known)
        own["chosen_colors"] = tuple(
            (*series, index)
            for module, quantity, index in self.chosen_colors
            for series in _expanded([(module, quantity)], known)
        )
        own["folds"] = tuple(one for one in self.folds if one in known)
        return replace(drawn, **own)


def _filled(charts: Any) -> Any:
    """Return the charts of a file with everything that they leave out, as in a new chart."""
    if not isinstance(charts, list):
        return charts
    plain = chart_message(ChosenChart())
    for one in charts:
        if isinstance(one, dict) and (unknown := sorted({*one} - {*plain})):
            allowed = ", ".join(sorted(plain))
            raise ProbeError(f"a chart has no setting {unknown[0]!r}; allowed: {allowed}")
    return [{**plain, **one} if isinstance(one, dict) else one for one in charts]


def _plain(chart: ChosenChart) -> dict[str, Any]:
    """Return a chart as it is written to a file."""
    limits = chart.y_limits
    return {
        **chart_message(chart),
        "series": [list(one) for one in chart.series],
        "y_limits": None if limits is None else list(limits),
    }


def _expanded(series: Iterable[tuple[str, str]], known: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the series of these modules of a run, with globs replaced by what they match."""
    return tuple(
        (module, quantity) for pattern, quantity in series for module in _matching(pattern, known)
    )


def _matching(pattern: str, known: list[str]) -> list[str]:
    """Return the entry of this name, else those that match it as a glob; the root by its name."""
    # `cell[0]` is the name of a call, and as a glob it would match `cell0`.
    if pattern in known:
        return [pattern]
    return [one for one in known if one != ROOT and fnmatchcase(one, pattern)]
