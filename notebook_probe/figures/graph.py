"""The graph of a network as boxes and links, folded by module, from above to below."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from notebook_probe.figures.layered import Layout, layered
from notebook_probe.figures.style import (
    BRAND,
    EDGE,
    FONT,
    INK,
    SOFT,
    Picture,
    drawing,
    number,
    shortened,
    text_inches,
)
from notebook_probe.graph.folding import Box, Flow, Folded, fold
from notebook_probe.graph.graph import Graph

__all__ = ["graph"]

MOST_BOXES = 300
# Inches: a box, what lies between two layers, round the picture, and above it for the heading.
TALL, BETWEEN, MARGIN, HEADING = 0.42, 0.34, 0.25, 0.4
PADDING = 0.22
LONGEST = 32
FILLED = "#eef3fb"
SMALL: dict[str, Any] = {**FONT, "size": 7.5}


class HasGraph(Protocol):
    """A run or an opened record."""

    def graph(self) -> Graph: ...


def graph(source: HasGraph | Graph, depth: int = 1) -> Figure:
    """Picture of a network's graph, its modules folded at a depth.

    A box is a call of a module, with its class and number of parameters, or a single operator; at a
    link stands the shape of what flows. What is called twice is there twice.

    Parameters
    ----------
    source : Graph, Run or OpenedRun
        Of a run the graph that is recorded; `Run.graph` builds it.
    depth : int
        Modules so far below the network are boxes; 0 opens all, down to single operators.

    Raises
    ------
    NoGraphError
        There is none in the record.
    ValueError
        For more boxes than can be looked at, and another depth.

    Examples
    --------
    >>> graph(run)  # doctest: +SKIP
    >>> graph(run, depth=2).savefig("network.pdf")  # doctest: +SKIP
    """
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
        raise ValueError(f"depth={depth!r}; a whole number from 0 is expected")
    shown = source if isinstance(source, Graph) else source.graph()
    folded = fold(shown, depth)
    if len(folded.boxes) > MOST_BOXES:
        raise ValueError(
            f"depth={depth} gives {len(folded.boxes)} boxes; at most {MOST_BOXES} can be looked at"
        )
    with drawing:
        return _drawn(shown, folded)


def _drawn(shown: Graph, folded: Folded) -> Figure:
    texts = [_texts(box) for box in folded.boxes]
    widths = [max(text_inches(one) for one in (name, below)) + PADDING for name, below in texts]
    links = [(flow.start, flow.end) for flow in folded.flows]
    layout = layered(widths, links or [*pairwise(range(len(widths)))])  # unlinked: in a column
    left, right = _bounds(layout, widths)
    n_layers = max(layout.layer, default=0) + 1
    wide = max(right - left, text_inches(str(shown))) + 2 * MARGIN
    high = n_layers * (TALL + BETWEEN) - BETWEEN + HEADING + 2 * MARGIN
    figure = Picture(figsize=(wide, high))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    middle = (left + right) / 2
    axes.set_xlim(middle - wide / 2, middle + wide / 2)
    axes.set_ylim(-high + HEADING + MARGIN, HEADING + MARGIN)
    axes.text(
        middle - wide / 2 + MARGIN,
        HEADING / 2 + MARGIN / 2,
        str(shown),
        color=INK,
        va="center",
        **FONT,
    )
    told: set[tuple[int, str]] = set()
    for flow in folded.flows:
        label = _flow_text(flow)
        is_new = (flow.start, label) not in told
        _draw_flow(axes, layout.routes[flow.start, flow.end], label if is_new else "")
        told.add((flow.start, label))
    for box, text, x, layer, width in zip(
        folded.boxes, texts, layout.x, layout.layer, widths, strict=True
    ):
        _draw_box(axes, box, text, x, _top(layer), width)
    return figure


def _texts(box: Box) -> tuple[str, str]:
    """What stands in a box: what it is, and softer below which one."""
    params = f"{number(box.n_params)} parameters" if box.n_params else ""
    place = shortened(box.path, LONGEST) if box.is_module else ""
    return shortened(box.label, LONGEST), "  ".join(filter(None, [place, params]))


def _top(layer: int) -> float:
    return -layer * (TALL + BETWEEN)


def _bounds(layout: Layout, widths: list[float]) -> tuple[float, float]:
    ends = [(x - width / 2, x + width / 2) for x, width in zip(layout.x, widths, strict=True)]
    passed = [x for route in layout.routes.values() for x, _ in route]
    every = [*passed, *(one for pair in ends for one in pair)]
    return min(every, default=0.0), max(every, default=1.0)


def _draw_box(
    axes: Axes, box: Box, text: tuple[str, str], x: float, top: float, width: float
) -> None:
    name, below = text
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2 + 0.06, top - TALL + 0.06),
            width - 0.12,
            TALL - 0.12,
            boxstyle="round,pad=0.06",
            facecolor=FILLED if box.is_module else "white",
            edgecolor=BRAND if box.is_module else EDGE,
            linewidth=0.9,
            zorder=3,
        )
    )
    centred: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}
    middle = top - TALL / 2
    axes.text(x, middle + (0.075 if below else 0), name, color=INK, **centred, **FONT)
    if below:
        axes.text(x, middle - 0.095, below, color=SOFT, **centred, **SMALL)


def _draw_flow(axes: Axes, route: list[tuple[float, int]], label: str) -> None:
    (x_start, above), *passed, (x_end, below) = route
    points = [(x_start, _top(above) - TALL)]
    for x, layer in passed:  # straight down beside the boxes of the layer
        points += [(x, _top(layer)), (x, _top(layer) - TALL)]
    points.append((x_end, _top(below)))
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y0 + y1) / 2
        vertices += [(x0, half), (x1, half), (x1, y1)]
        codes += [Path.CURVE4] * 3
    axes.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes),
            arrowstyle="-|>,head_length=3,head_width=1.6",
            color=SOFT,
            linewidth=0.8,
            zorder=1,
            shrinkA=0,
            shrinkB=0,
        )
    )
    if label:
        (x0, y0), (x1, _) = points[0], points[1]
        axes.text(
            x0 + (x1 - x0) * 0.15 + 0.05,
            y0 - BETWEEN * 0.36,
            label,
            color=SOFT,
            va="center",
            zorder=2,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.6},
            **SMALL,
        )


def _flow_text(flow: Flow) -> str:
    """``"8×64×56×56"``, of several tensors the first and how many more."""
    known = [shape for shape in flow.shapes if shape is not None]
    if not known:
        return ""
    text = "×".join(map(str, known[0])) or "scalar"
    return text if len(flow.shapes) == 1 else f"{text} + {len(flow.shapes) - 1}"
