"""The lines that make the view of a panel again, from the record alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from notebook_probe.compare.line_axes import LineAxisName
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.value_scale import LineChart

__all__ = ["CODE_AXES", "TEMPLATES", "code"]

HEAD = """\
import matplotlib.pyplot as plt
import numpy as np
import notebook_probe as nbp

record = nbp.open_run({location!r})
"""

HEAD_BESIDE = HEAD.replace(
    "import notebook_probe as nbp\n",
    "import notebook_probe as nbp\n"
    "from notebook_probe.figures import LineOptions, compared, ratio\n",
)

HEAT = """
# {home}: module x step, NaN = not measured
{name} = record.data[{home!r}]{window}
{name} = {name}.dropna("module", how="all").dropna("step", how="all")
figure, axes = plt.subplots(figsize=(9, 1 + 0.25 * {name}.sizes["module"]), layout="constrained")
rows = np.arange({name}.sizes["module"])
image = axes.pcolormesh(
    {name}.step, rows, {name}{drawn}, shading="nearest", norm={norm!r}
)
axes.set_yticks(rows, {name}.module.values)
axes.invert_yaxis()
axes.set_xlabel("step")
figure.colorbar(image, label={home!r})
"""

BESIDE = """
# {explored} shows the same in a panel
others = [nbp.open_run(one) for one in {others!r}]
"""

RATIO = """
# {home}: this run over another, orange is more; flags where they part
ratio(
    record, {whom}, {home!r}, by={by!r}, factor={factor!r}, rows={rows!r}, window={window!r}
).savefig("ratio.png")
"""

COMPARED = """
# {title}: each series of this run, and of the others dashed
compared(
    record,
    others,
    {series!r},
    by={by!r},
    x_axis={x_axis!r},
    window={window!r},
    grouped={grouped!r},
    look=LineOptions(
        log_y={log_y!r},
        log_x={log_x!r},
        smooth={smooth!r},
        y_limits={y_limits!r},
        outliers={outliers!r},
    ),{colors}
).savefig({file!r})
"""

LINES = """{setup}{colors}
figure, charts = plt.subplots(
    {n}, figsize=(9, {height}), sharex=True, squeeze=False, layout="constrained"
)
for axes, yscale, shown in zip(charts.flat, {yscales!r}, {series!r}):
    for module, quantity in shown:
        series = record.series(module, quantity){window}
        axes.plot({x}, series, label=f"{{module}} · {{quantity}}")
{colored}    axes.set(yscale=yscale)
    axes.legend()
charts[-1, 0].set(xscale={xscale!r}, xlabel={xlabel!r})
{limits}"""

COLORS = """
from notebook_probe.figures.style import line_style

colors = {{(module, quantity): color for module, quantity, color in {chosen!r}}}
"""

COLORED = """\
        if (color := colors.get((module, quantity))) is not None:
            axes.lines[-1].set(**line_style(color))
"""

LIMITS = """\
charts[{number}, 0].set_ylim({low}, {high})
"""

SMOOTHED = """
import pandas as pd


def average(series, log, weight):
    # exponential, of every value, over at most a tenth of them
    drawn = np.log(series.where(series > 0)) if log else series.where(np.isfinite(series))
    most = 1 - 1.1 ** -np.floor(np.log(len(series) / 10) / np.log(1.1))
    weight = min(weight, max(0.0, most))
    mean = pd.Series(drawn.values).ewm(alpha=1 - weight, ignore_na=True).mean()
    mean = mean.where(drawn.notnull().values).values
    return drawn.copy(data=np.exp(mean) if log else mean)

""" + LINES.replace(
    """label=f"{{module}} · {{quantity}}")
""",
    """color=f"C{{len(axes.lines)}}", alpha=0.35)
{faint}        color = axes.lines[-1].get_color()
        series = average(record.series(module, quantity), yscale == "log", weights[axes]){window}
        axes.plot({x}, series, color=color, label=f"{{module}} · {{quantity}}")
""",
).replace("\nfor axes", "\nweights = dict(zip(charts.flat, {smooth!r}))\nfor axes")

FAINT = COLORED.replace("**line_style(color)", "color=line_style(color)['color']")
"""Color of the values behind an average, which are solid."""

TEMPLATES = {
    "head": HEAD,
    "heat": HEAT,
    "lines": LINES,
    "smoothed": SMOOTHED,
    "limits": LIMITS,
    "colors": COLORS,
    "colored": COLORED,
    "faint": FAINT,
}
"""Templates for a panel without a kernel, which fills them itself."""


class CodeAxis(TypedDict):
    """Code of a horizontal axis."""

    setup: str
    """Lines before the plot."""
    x: str
    """Positions of ``series``."""
    log: str
    """Scale of matplotlib for a logarithmic axis."""


CODE_AXES: Mapping[LineAxisName, CodeAxis] = {
    "step": {"setup": "", "x": "series.step", "log": "symlog"},
    # Dates have no logarithm.
    "time": {"setup": "", "x": "series.time", "log": "linear"},
    "epoch": {
        "setup": "\nfrom notebook_probe.compare import EpochAxis\n\nepochs = EpochAxis(record)\n",
        "x": "epochs.at(series.step)",
        "log": "symlog",
    },
}
"""Code of each axis, for a panel without a kernel, too."""


def code(
    location: str, selection: PanelSelection, charts: Sequence[LineChart] | None = None
) -> str:
    """Return a few lines of xarray and matplotlib that draw what the panel shows.

    Without ``charts`` all series share one.

    Examples
    --------
    >>> print(code("runs/first.zarr", PanelSelection(home="grad_norm")).splitlines()[4])
    record = nbp.open_run('runs/first.zarr')
    """
    window = _window(selection)
    parts = [HEAD.format(location=location)]
    if selection.others:
        parts = [HEAD_BESIDE.format(location=location), _code_of_others(selection)]
    if selection.ratio_to and selection.home:
        parts.append(_ratio(selection))
    elif selection.home:
        parts.append(
            HEAT.format(
                home=selection.home,
                name=selection.home,
                window=window,
                norm="log" if selection.log_heat else "linear",
                drawn=f".where({selection.home} > 0)" if selection.log_heat else "",
            )
        )
    alone = LineChart(selection.series, bool(selection.log_y), selection.chart(0))
    shown = [alone] if charts is None else [one for one in charts if one.series]
    if selection.series and selection.others:
        parts += [_compared(selection, one, number) for number, one in enumerate(shown)]
    elif selection.series:
        parts.append(_lines(selection, shown))
    return "".join(parts)


def _lines(selection: PanelSelection, charts: Sequence[LineChart]) -> str:
    axis = CODE_AXES[selection.x_axis]
    chosen = _chosen_colors(selection, [pair for one in charts for pair in one.series])
    smooth = [one.chosen.smooth for one in charts]
    return (SMOOTHED if any(smooth) else LINES).format(
        n=len(charts),
        height=1 + 2.5 * len(charts),
        series=[list(one.series) for one in charts],
        yscales=["log" if one.log_y else "linear" for one in charts],
        limits="".join(_limits(number, one) for number, one in enumerate(charts)),
        smooth=smooth,
        window=_window(selection),
        setup=axis["setup"],
        colors=COLORS.format(chosen=[list(one) for one in chosen]) if chosen else "",
        colored=COLORED if chosen else "",
        faint=FAINT if chosen else "",
        x=axis["x"],
        xscale=axis["log"] if selection.log_x else "linear",
        xlabel=selection.x_axis,
    )


def _chosen_colors(
    selection: PanelSelection, shown: Sequence[Series]
) -> list[tuple[str, str, int]]:
    """Return the chosen colors of these series."""
    return [one for one in selection.chosen_colors if one[:2] in shown]


def _limits(number: int, chart: LineChart) -> str:
    if chart.chosen.y_limits is None:
        return ""
    low, high = chart.chosen.y_limits
    return LIMITS.format(number=number, low=low, high=high)


def _code_of_others(selection: PanelSelection) -> str:
    """Return the code that shows the other runs of a selection."""
    others = list(selection.others)
    grouped = ", grouped=True" if selection.grouped else ""
    return BESIDE.format(others=others, explored=f"record.explore(others={others!r}{grouped})")


def _ratio(selection: PanelSelection) -> str:
    place = selection.others.index(selection.ratio_to)
    factor, rows = selection.apart
    return RATIO.format(
        home=selection.home,
        whom="others" if selection.grouped else f"others[{place}]",
        by=selection.aligned,
        factor=factor,
        rows=rows,
        window=selection.window,
    )


def _compared(selection: PanelSelection, chart: LineChart, number: int) -> str:
    chosen = _chosen_colors(selection, chart.series)
    colors = {(module, quantity): index for module, quantity, index in chosen}
    names = ", ".join(dict.fromkeys(quantity for _, quantity in chart.series))
    return COMPARED.format(
        title=names,
        series=list(chart.series),
        by=selection.aligned,
        x_axis=selection.x_axis,
        window=selection.window,
        grouped=selection.grouped,
        log_y=chart.log_y,
        log_x=selection.log_x,
        smooth=chart.chosen.smooth,
        y_limits=chart.chosen.y_limits,
        outliers=chart.chosen.outliers,
        colors=f"\n    colors={colors!r}," if colors else "",
        file="lines.png" if number == 0 else f"lines-{number + 1}.png",
    )


def _window(selection: PanelSelection) -> str:
    if selection.window is None:
        return ""
    first, last = selection.window
    return f".sel(step=slice({math.ceil(first)}, {math.floor(last)}))"
