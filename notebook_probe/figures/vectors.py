"""Vectors of all modules as a static picture: a small one for each, and the vector at a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from notebook_probe.checks import step_window
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.figures.cells import N_COLUMNS
from notebook_probe.figures.colour_maps import MAPS, draw_bar, masked, norm_of
from notebook_probe.figures.labels import extra_inches, title_lines
from notebook_probe.figures.style import (
    BRAND,
    EDGE,
    FONT,
    HEADING,
    INK,
    LOST_COLOUR,
    SOFT,
    Picture,
    colour,
    drawing,
    number,
    plain_axes,
    short_path,
    text_inches,
    ticks,
)
from notebook_probe.record.format.source import Source, check_opened
from notebook_probe.record.views.thinning.colour_scale import ColourScale
from notebook_probe.record.views.thinning.vector_pictures import (
    Cells,
    VectorPictures,
    VectorReader,
    VectorRow,
)

__all__ = ["vectors"]

WIDTH, TOP, BOTTOM = 9.0, 0.45, 0.72
SLICE, RIGHT = 0.9, 0.75
GAP = 0.05
ROW, LEAST, ENLARGED = 0.3, 0.1, 2.2
ROWS = 4.2
"""Height that the rows share before each has its least."""
LINE = 0.14
"""Height of a line of text."""
LONGEST_NAME = 26
HATCH = "////"


def vectors(
    source: Source,
    quantity: str,
    *,
    enlarged: str | None = None,
    step: int | None = None,
    window: tuple[float, float] | None = None,
    log: bool | None = None,
) -> Figure:
    """Vectors of all modules: steps to the right, elements upwards, on one color scale.

    Histograms are shares of a step's elements, without the bins that no module ever fills. Hatched
    columns were not measured; NaN and infinity have a separate color. To the right of each picture
    is its vector at a step, on a separate scale. Columns are equal numbers of steps.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    quantity : str
        A histogram, quantiles, a spectrum, channels or heads.
    enlarged : str, optional
        A module whose picture is tall; its vector is labeled.
    step : int, optional
        At which the vectors stand, or the nearest earlier one that was measured; the last by
        default.
    window : (float, float), optional
        First and last step shown.
    log : bool, optional
        Logarithmic colors, or linear ones; by default logarithmic except for shares and for values
        of both signs.

    Raises
    ------
    UnknownNameError
        No vector of ``quantity`` is recorded in the window, or none at ``enlarged``.
    ValueError
        A step that is not shown, or a window whose first step is above the last.

    Examples
    --------
    >>> vectors(run, "output_histogram", enlarged="fc1", step=300)  # doctest: +SKIP
    """
    step_window(window)
    check_opened(source)
    quantity = source.recorded_name(quantity)
    order = [row.name for row in source.modules]
    found = VectorReader().read(source, quantity, lambda _: N_COLUMNS, window, order)
    if found is None:
        known = sorted({one.name for held in source.elements.values() for one in held.variables})
        why = f"no vector of {quantity!r} is recorded"
        raise UnknownNameError(why if quantity in known else f"{why}; {near(quantity, known)}")
    modules = [row.module for row in found.rows]
    if enlarged is not None and enlarged not in modules:
        raise UnknownNameError(f"no {quantity} of {enlarged!r} is there; {near(enlarged, modules)}")
    if step is not None and not found.first <= step <= found.end:
        raise ValueError(f"step={step!r}: shown are {found.first} to {found.end}")
    with drawing:
        return _drawn(found, quantity, found.colours(log), _places(found.rows, enlarged), step)


@dataclass(frozen=True, slots=True)
class RowPosition:
    """Position of a row, in inches from the top."""

    row: VectorRow
    top: float
    high: float
    is_enlarged: bool


def _places(rows: Sequence[VectorRow], enlarged: str | None) -> list[RowPosition]:
    each = min(ROW, max(LEAST, ROWS / len(rows)))
    places, top = [], 0.0
    for row in rows:
        high = ENLARGED if row.module == enlarged else each
        places.append(RowPosition(row, top, high, row.module == enlarged))
        top += high + GAP
    return places


def _drawn(
    found: VectorPictures,
    quantity: str,
    scale: ColourScale,
    places: Sequence[RowPosition],
    step: int | None,
) -> Figure:
    names = [short_path(place.row.module, LONGEST_NAME) for place in places]
    left, tall = 0.25 + max(map(text_inches, names)), places[-1].top + places[-1].high
    wide = WIDTH - left - SLICE - RIGHT - 0.15
    title = title_lines(quantity, wide)
    height = TOP + extra_inches(title) + tall + BOTTOM
    figure = Picture(figsize=(WIDTH, height))

    def axes_at(begin: float, width: float, bottom: float = BOTTOM, high: float = tall) -> Axes:
        return figure.add_axes((begin / WIDTH, bottom / height, width / WIDTH, high / height))

    axes = axes_at(left, wide)
    for place in places:
        _draw_picture(axes, found, place, scale)
    plain_axes(axes, grid=False)
    axes.set_xlim(found.first, found.end + 1)
    ticks(axes.xaxis, log=False)
    _name_rows(axes, places, names)
    axes.set_title("\n".join(title), loc="left", color=SOFT, pad=8, fontproperties=HEADING)
    beside = axes_at(left + wide + 0.15, SLICE)
    for place in places:
        _draw_slice(beside, found, place, step)
    beside.set_xlim(0, 1)
    beside.set_axis_off()
    at = "last step" if step is None else f"step {number(step)}"
    beside.set_title(at, loc="left", color=SOFT, pad=8, fontproperties=HEADING)
    if step is not None:
        axes.axvline(step, color=INK, linestyle=(0, (3, 2)), linewidth=1)
    for one in (axes, beside):
        one.set_ylim(tall, 0)
    bar = axes_at(left + wide + 0.15, SLICE, 0.4, 0.09)
    draw_bar(bar, scale, across=True)
    if found.edges is not None:
        bar.set_xlabel("share of elements", color=SOFT, loc="left", fontproperties=HEADING)
    return figure


def _draw_picture(
    axes: Axes, found: VectorPictures, place: RowPosition, scale: ColourScale
) -> None:
    top, bottom = place.top, place.top + place.high
    box = (found.first, top), found.end + 1 - found.first, place.high
    axes.add_patch(Rectangle(*box, hatch=HATCH, fill=False, edgecolor=EDGE, linewidth=0, zorder=-1))
    axes.add_patch(Rectangle(*box, fill=False, edgecolor=EDGE, linewidth=0.8, zorder=3))
    cells = _upright(found, found.shown(place.row))
    norm = norm_of(scale)
    extent = (found.first, found.last + 1, bottom, top)
    common: dict[str, Any] = {"extent": extent, "aspect": "auto", "interpolation": "none"}
    shown = masked(cells, np.isfinite(cells), norm)
    axes.imshow(shown, cmap=MAPS[scale.colours], norm=norm, **common)
    if np.isinf(cells).any():
        lost = np.ma.masked_where(~np.isinf(cells), np.ones(cells.shape))
        axes.imshow(lost, cmap=ListedColormap([LOST_COLOUR]), **common)


def _upright(found: VectorPictures, cells: Cells) -> Cells:
    """Return cells upwards along an axis; numbered elements are in reading order."""
    return cells if found.axis is None else cells[::-1]


def _name_rows(axes: Axes, places: Sequence[RowPosition], names: Sequence[str]) -> None:
    """Name as many rows as fit."""
    at, labels, clear = [], [], -np.inf
    for place, name in zip(places, names, strict=True):
        middle = place.top + (LINE / 2 if place.is_enlarged else place.high / 2)
        # Positions are sums of floats: rows that touch must not exclude each other by rounding.
        if middle - LINE / 2 >= clear - 1e-9:
            clear = middle + LINE / 2
            at.append(middle)
            labels.append(name)
    axes.set_yticks(at, labels)
    for label, middle in zip(axes.get_yticklabels(), at, strict=True):
        if any(one.is_enlarged and one.top <= middle <= one.top + one.high for one in places):
            label.set(color=BRAND, weight="bold")


def _draw_slice(axes: Axes, found: VectorPictures, place: RowPosition, step: int | None) -> None:
    """Draw bars next to their elements, scaled to the largest."""
    vector = _vector_at(found, place.row, step)
    finite = np.where(np.isfinite(vector), vector, 0.0)
    low, high = min(0.0, float(finite.min())), max(0.0, float(finite.max()))
    one = place.high / len(vector)
    middles = place.top + one * (np.arange(len(vector)) + 0.5)
    shown, zero = _upright(found, finite) / (high - low or 1), -low / (high - low or 1)
    axes.barh(middles, shown, 0.85 * one, zero, color=colour(0), linewidth=0)
    if place.is_enlarged:
        _label(axes, found, place.row, _upright(found, middles))


def _vector_at(found: VectorPictures, row: VectorRow, step: int | None) -> Cells:
    cells = found.shown(row)
    if step is None:
        last = row.last.astype(float)
        return last / np.nansum(last) if found.edges is not None else last
    width = (found.last + 1 - found.first) / found.columns
    until = int((step - found.first) / width) + 1
    known = np.flatnonzero(~np.isnan(cells[:, :until]).all(axis=0))
    return cells[:, known[-1]] if known.size else np.zeros(len(cells), np.float32)


def _label(axes: Axes, found: VectorPictures, row: VectorRow, middles: Cells) -> None:
    """Draw the names of the elements that fit."""
    clear = np.inf
    for name, middle in sorted(
        zip(_names(found, row), middles, strict=True), key=lambda one: -one[1]
    ):
        if middle + LINE / 2 <= clear:
            clear = middle - LINE / 2
            axes.text(1.06, middle, name, color=SOFT, va="center", **FONT)


def _names(found: VectorPictures, row: VectorRow) -> list[str]:
    if found.axis is None:
        return [str(element) for element in row.elements]
    at = found.axis.coords[found.axis.name]
    is_lane = np.zeros(len(at), bool) if found.edges is None else np.isnan(found.edges[0])
    return [
        "not finite" if is_lane[place] else number(at[place] * row.scale) for place in row.elements
    ]
