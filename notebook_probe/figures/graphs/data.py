"""The data of a training as boxes and links: samples above, the loader of batches below."""

from __future__ import annotations

from typing import Protocol

from matplotlib.figure import Figure

from notebook_probe.figures.graphs.boxes import Box, boxes
from notebook_probe.figures.style import drawing, number, shortened
from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph

__all__ = ["dataset_graph"]

GIVES_SAMPLES = {"dataset", "loader"}
LONGEST = 56


class HasDatasetGraph(Protocol):
    """A run or an opened record."""

    def dataset_graph(self) -> DatasetGraph: ...


def dataset_graph(source: HasDatasetGraph | DatasetGraph) -> Figure:
    """Picture of a training's input pipeline, from its datasets down to its loader.

    A box is an object, with its class, its length and its settings; at a link stands what it is to
    the one below. Boxes that provide samples are filled; boxes that choose or change them are not.

    Parameters
    ----------
    source : DatasetGraph, Run or OpenedRun
        Graph, or a run with a recorded one; a summary collector records it.

    Raises
    ------
    NotLookedError
        There is none in the record.

    Examples
    --------
    >>> dataset_graph(run)  # doctest: +SKIP
    >>> dataset_graph(describe(loader)).savefig("data.pdf")  # doctest: +SKIP
    """
    shown = source if isinstance(source, DatasetGraph) else source.dataset_graph()
    drawn: list[Box] = []
    links: dict[tuple[int, int], str] = {}
    _gather(shown.root, drawn, links)
    parts = "1 part" if len(drawn) == 1 else f"{len(drawn)} parts"
    with drawing:
        return boxes(f"{shortened(shown.root.name, LONGEST)}: {parts}", drawn, links)


def _gather(part: DataPart, drawn: list[Box], links: dict[tuple[int, int], str]) -> int:
    """Add a part's inner parts, then the part itself; what is taken is above."""
    taken = [(_gather(inner, drawn, links), inner.role) for inner in part.parts]
    length = "" if part.length is None else f"  {number(part.length)}"
    name = f"{shortened(part.name, LONGEST)}{length}"
    drawn.append(Box(name, _begun(part.told), part.kind in GIVES_SAMPLES))
    links |= {(one, len(drawn) - 1): shortened(role, LONGEST) for one, role in taken}
    return len(drawn) - 1


def _begun(text: str) -> str:
    """Return the first line of a text; it has what readers mostly look for."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST + 1 else text[:LONGEST] + "…"
