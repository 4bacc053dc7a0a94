"""Scale of a quantity: linear for shares and cosines, logarithmic for sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from notebook_probe.compare.line_axes import LineAxes
from notebook_probe.explorer.charts import ChosenChart
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.record.format.ranges import charts_of, is_bounded, is_share
from notebook_probe.record.format.source import Source, StreamView, Variable
from notebook_probe.record.formulas import with_formulas

__all__ = ["LineChart", "bounded", "line_charts", "settled", "shares"]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Series that share a value axis."""

    series: tuple[Series, ...]
    log_y: bool
    chosen: ChosenChart = field(default=ChosenChart(), compare=False)
    """Settings of its axis and its averages."""


def line_charts(source: Source, selection: PanelSelection) -> list[LineChart]:
    """Return the charts of the selected series, as the panel draws them."""
    series = [one for one in selection.series if "[" not in one[1]]  # an element is no quantity
    arranged = [one.series for one in selection.charts]
    streams = with_formulas(source.streams, series)
    chart_of = charts_of(streams.values(), series, arranged)
    linear = bounded(source)
    charts = []
    for number in sorted(set(chart_of.values())):
        shown = tuple(one for one in series if chart_of[one] == number)
        chosen = selection.chart(number)
        log_y = chosen.log_y
        if log_y is None:
            # One series of sizes is enough: a linear scale would hide its small values.
            sizes = any(quantity not in linear for _, quantity in shown)
            log_y = sizes and not any(_is_signed(streams, one) for one in shown)
        charts.append(LineChart(shown, log_y, chosen))
    return charts


def _is_signed(streams: Mapping[str, StreamView], series: Series) -> bool:
    """Return whether some value is negative, so that a logarithmic axis does not suit."""
    module, quantity = series
    return any(
        bool((stream.values(quantity, 0, stream.n_rows, [module]) < 0).any())
        for stream in streams.values()
        if module in stream.modules and any(one.name == quantity for one in stream.variables)
    )


def bounded(source: Source) -> frozenset[str]:
    """Return the recorded quantities with bounds."""
    return frozenset(one.name for one in _variables(source) if is_bounded(one))


def shares(source: Source) -> frozenset[str]:
    """Return the recorded quantities that are shares."""
    return frozenset(one.name for one in _variables(source) if is_share(one))


def settled(source: Source, selection: PanelSelection) -> PanelSelection:
    """Return the selection, with scales chosen from the data where the user has not chosen.

    Its x axis is steps if the run does not have the chosen one.
    """
    log_heat, log_y, linear = selection.log_heat, selection.log_y, bounded(source)
    if log_heat is None:
        log_heat = selection.home not in linear
    if log_y is None:
        # One series of sizes is enough: a linear scale would hide its small values.
        log_y = any(quantity not in linear for _, quantity in selection.series)
    series = [one for one in selection.series if "[" not in one[1]]  # an element is no quantity
    axis = LineAxes().drawn(source, selection.x_axis).name
    shown = selection.looking_at("series", series)
    return replace(shown, log_heat=log_heat, log_y=log_y, x_axis=axis)


def _variables(source: Source) -> Iterator[Variable]:
    for stream in source.streams.values():
        yield from stream.variables
