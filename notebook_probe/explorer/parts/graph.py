"""The graph of the network: built by a click, and sent to the views that show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.graph import Graph
from notebook_probe.graph.recorded import recorded_graph
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import BuildGraph, Request
from notebook_probe.run.controls import Controls

__all__ = ["BuildGraphClick", "NetworkGraph", "ShowGraph", "shown_graph"]

NOT_BUILT = (
    "The graph of the network is not built yet. It takes one extra call of the network, "
    "between two steps, and does not change the training."
)
NOT_RECORDED = "This record has no graph of its network: run.graph(inputs) records one."


class BuildGraphClick(TypedDict):
    """Build the graph and record it."""

    v: int
    type: Literal["build_graph"]
    id: str


class ShowGraph(TypedDict):
    """A view shows the graph; it is answered with `shown_graph`."""

    v: int
    type: Literal["show_graph"]
    view: str


def _build(click: BuildGraphClick) -> Request:
    return BuildGraph()


class NetworkGraph(Part):
    """Graph of the network: its outline, and all of it for each view that requests it."""

    name: ClassVar = "graph"
    clicks: ClassVar = {"build_graph": Click(BuildGraphClick, _build)}
    heard: ClassVar = {"show_graph": ShowGraph}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._n_events = 0
        self._revision = 0
        self._is_wanted = False

    def state(self, seen: Seen) -> Mapping[str, Any]:
        self._look()
        none = NOT_RECORDED if self._controls is None else NOT_BUILT
        return {"revision": self._revision, "why": "" if self._revision else none}

    def hear(self, message: ShowGraph) -> None:
        self._is_wanted = True

    def frames(self) -> list[Frame]:
        wanted, self._is_wanted = self._is_wanted, False
        if not wanted or not self._revision:
            return []
        try:
            graph = recorded_graph(self._source.events)
        except RecordFormatError as error:
            nothing = Graph("tree", "", (), (), ())
            return [({**shown_graph(nothing, self._revision), "error": str(error)}, [])]
        return [] if graph is None else [(shown_graph(graph, self._revision), [])]

    def _look(self) -> None:
        """Find the number of the newest graph, counted by its event."""
        events = self._source.events
        for place in range(self._n_events, len(events)):
            if events[place].kind == MODEL_GRAPH:
                self._revision = place + 1
        self._n_events = len(events)


def shown_graph(graph: Graph, revision: int) -> dict[str, Any]:
    """Return the message for a view: a row for each node, edge and module."""
    return {
        "v": VERSION,
        "type": "shown_graph",
        "revision": revision,
        "how": graph.how,
        "why": graph.why,
        "error": "",
        "nodes": [
            (one.name, one.kind, one.op, one.module, one.shape, one.dtype) for one in graph.nodes
        ],
        "edges": graph.edges,
        "modules": [(one.path, one.class_name, one.n_params, one.calls) for one in graph.modules],
    }
