"""The graph that a record keeps: the newest of its events of that kind; without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence

from notebook_probe.errors import NoGraphError, RecordFormatError
from notebook_probe.graph.graph import Graph
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event

__all__ = ["detail_of", "graph_of", "recorded_graph"]


def detail_of(graph: Graph) -> str:
    """Return the detail of its event, JSON for programs."""
    return json.dumps({"graph": graph.to_json()}, separators=(",", ":"))


def recorded_graph(events: Sequence[Event]) -> Graph | None:
    """Return the graph that was recorded last; None if there is none.

    Raises
    ------
    RecordFormatError
        It is damaged.
    """
    for event in reversed(events):
        if event.kind == MODEL_GRAPH:
            try:
                detail = json.loads(event.detail)
            # json gives up on brackets nested too deep by a RecursionError.
            except (ValueError, RecursionError) as error:
                raise RecordFormatError(f"graph: the detail of its event: {error}") from None
            return Graph.from_json(detail.get("graph") if isinstance(detail, dict) else detail)
    return None


def graph_of(events: Sequence[Event], location: str) -> Graph:
    """Return the graph that was recorded last.

    Raises
    ------
    NoGraphError
        There is none.
    RecordFormatError
        It is damaged.
    """
    graph = recorded_graph(events)
    if graph is None:
        raise NoGraphError(
            f"{location} has no graph of its network; run.graph(inputs) builds and records "
            f"it while the run is live"
        )
    return graph
