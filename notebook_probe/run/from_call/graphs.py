"""The graph of the watched model: built on request between two steps, and kept in the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from notebook_probe.errors import QuantityError
from notebook_probe.graph.building import build, build_tree
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.recorded import detail_of, recorded_graph
from notebook_probe.probes.observer import Observer
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import BuildGraph
from notebook_probe.run.from_call.next_call import AwaitedCall, NextCall

__all__ = ["NO_BATCH", "Graphs"]

NO_BATCH = (
    "no batch is known: run.graph(inputs) builds it of these, run.probe_batch(...) keeps a batch"
)
GIVE_INPUTS = "run.graph(inputs) builds it of these inputs"


class Graphs:
    """Requested and stored graphs of the model.

    Parameters
    ----------
    probes : ProbeSet
    observer : Observer
    record : RecordWriter
    events : callable
        Events of the record so far.
    excuse : callable
        Called with the seconds for which building blocked training.
    is_moving : callable
        Returns whether a step has ended lately.
    """

    def __init__(
        self,
        probes: ProbeSet,
        observer: Observer,
        record: RecordWriter,
        events: Callable[[], Sequence[Event]],
        excuse: Callable[[float], None],
        is_moving: Callable[[], bool],
    ) -> None:
        self._probes, self._observer, self._record = probes, observer, record
        self._events, self._excuse, self._is_moving = events, excuse, is_moving
        self._next = AwaitedCall(observer)

    def apply(self, request: BuildGraph, step: int) -> str:
        """Build it now, or from the first call in ``step``; return which, as text.

        Raises
        ------
        QuantityError
            Nothing more is recorded.
        """
        if self._record.stopped:
            raise QuantityError(self._record.stopped)
        batch = self._observer.replay.batch
        if batch is not None:
            return str(
                self._make_while_waiting(step, lambda: build(self.model, batch.args, batch.kwargs))
            )
        shapes = self._observer.calls.shapes
        if shapes is not None and not self._is_moving():
            # Nothing calls the model now, and only shapes of its last inputs are known: zeros do.
            return str(self._make_while_waiting(step, lambda: build(self.model, *shapes.zeros())))
        self._next.begin(self.model, step)
        return "the graph is built from the next call of the model, after that step"

    def finish(self, step: int) -> bool:
        """Build the requested graph, once a step has called the model; between steps only.

        Return whether a call is still awaited.
        """
        call = self._next.take(step)
        if call is not None:
            self._make_while_waiting(step, lambda: self._of_call(call))
        return self._next.is_awaited

    def forget(self) -> None:
        """Wait for no call any more."""
        self._next.forget()

    @property
    def model(self) -> nn.Module:
        return self._probes.model

    def known(self) -> Graph | None:
        """Return the recorded graph, if it still matches the model."""
        graph = recorded_graph(self._events())
        modules = self._probes.model_map.modules
        if graph is None or any(one.path not in modules for one in graph.modules):
            return None
        return graph

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any], step: int) -> Graph:
        """Build it of these arguments, and keep it."""
        return self._keep(build(self.model, args, kwargs), step)

    def of_kept_batch(self, step: int) -> Graph:
        """Build it of the batch that is kept; without one the tree, which is not recorded."""
        batch = self._observer.replay.batch
        if batch is None:
            return build_tree(self.model, NO_BATCH)
        return self.of(batch.args, batch.kwargs, step)

    def _of_call(self, call: NextCall) -> Graph:
        """Return the graph of the observed call; without a call, the tree of modules."""
        if call.given is not None:
            return build(self.model, *call.given)
        return build_tree(self.model, f"{call.why_none}: {GIVE_INPUTS}")

    def _make_while_waiting(self, step: int, make: Callable[[], Graph]) -> Graph:
        """Make and keep a graph while training waits."""
        begun = time.perf_counter()
        try:
            return self._keep(make(), step)
        finally:
            # Not counted as a cost of watching: it was requested.
            self._excuse(time.perf_counter() - begun)

    def _keep(self, graph: Graph, step: int) -> Graph:
        if not self._record.stopped and graph != recorded_graph(self._events()):
            self._record.event(step, MODEL_GRAPH, str(graph), detail_of(graph))
        return graph
