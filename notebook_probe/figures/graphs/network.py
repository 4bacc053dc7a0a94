"""The graph of a network as boxes and links, folded by module, from above to below."""

from __future__ import annotations

from typing import Protocol

from matplotlib.figure import Figure

from notebook_probe.checks import whole_number
from notebook_probe.figures.graphs import boxes
from notebook_probe.figures.style import drawing, number, shortened
from notebook_probe.graph.folding import Flow, Folded, FoldedCall, fold
from notebook_probe.graph.graph import Graph

__all__ = ["graph"]

MOST_BOXES = 300
LONGEST = 32


class HasGraph(Protocol):
    """A run or an opened record."""

    def graph(self) -> Graph: ...


def graph(source: HasGraph | Graph, depth: int = 1) -> Figure:
    """Picture of a network's graph, its modules folded at a depth.

    A box is a call of a module, with its class and number of parameters, or a single operator; a
    link has the shape of the tensor. A module called twice has two boxes.

    Parameters
    ----------
    source : Graph, Run or OpenedRun
        Graph, or a run with a recorded one; `Run.graph` builds it.
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
    depth = whole_number("depth", depth)
    shown = source if isinstance(source, Graph) else source.graph()
    folded = fold(shown, depth)
    if len(folded.boxes) > MOST_BOXES:
        raise ValueError(
            f"depth={depth} gives {len(folded.boxes)} boxes; at most {MOST_BOXES} can be looked at"
        )
    with drawing:
        return boxes.boxes(str(shown), [_box(one) for one in folded.boxes], _links(folded))


def _box(box: FoldedCall) -> boxes.Box:
    params = f"{number(box.n_params)} parameters" if box.n_params else ""
    place = shortened(box.path, LONGEST) if box.is_module else ""
    below = "  ".join(filter(None, [place, params]))
    return boxes.Box(shortened(box.label, LONGEST), below, box.is_module)


def _links(folded: Folded) -> dict[tuple[int, int], str]:
    """Return the label of each link; each is written once per box and shape."""
    links: dict[tuple[int, int], str] = {}
    told: set[tuple[int, str]] = set()
    for flow in folded.flows:
        label = _flow_text(flow)
        links[flow.start, flow.end] = "" if (flow.start, label) in told else label
        told.add((flow.start, label))
    return links


def _flow_text(flow: Flow) -> str:
    """``"8×64×56×56"``, of several tensors the first and how many more."""
    known = [shape for shape in flow.shapes if shape is not None]
    if not known:
        return ""
    text = "×".join(map(str, known[0])) or "scalar"
    return text if len(flow.shapes) == 1 else f"{text} + {len(flow.shapes) - 1}"
