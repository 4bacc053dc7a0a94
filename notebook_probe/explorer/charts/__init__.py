"""Charts of a panel as its user arranges them."""

from notebook_probe.explorer.charts.chosen_chart import (
    HEIGHTS,
    ChartMessage,
    ChosenChart,
    Series,
    chart_message,
    chosen_charts,
)

__all__ = ["HEIGHTS", "ChartMessage", "ChosenChart", "Series", "chart_message", "chosen_charts"]
