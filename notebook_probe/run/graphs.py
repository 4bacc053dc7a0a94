"""The graph of the watched model: built on request between two steps, and kept in the record."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from notebook_probe.errors import QuantityError
from notebook_probe.graph.building import build, build_tree
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.recorded import detail_of, recorded_graph
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.requests import BuildGraph
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["NO_BATCH", "Graphs"]

NO_BATCH = (
    "no batch is known: run.graph(inputs) builds it of these, run.probe_batch(...) keeps a batch"
)
NOT_CALLED = (
    "the model itself was not called in step {} and the next, or as compiled code, which runs no "
    "hooks: run.graph(inputs) builds it of these inputs"
)


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
        self._awaited: _NextCall | None = None

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
        if self._awaited is None:
            self._awaited = _NextCall(self.model, self._observer, step)
        return "the graph is built from the next call of the model, after that step"

    def finish(self, step: int) -> bool:
        """Build the requested graph, once a step has called the model; between steps only.

        A hook added while a call starts is not called before the next one. Return whether one is
        still awaited.
        """
        awaited = self._awaited
        # A hook added during a call is called from the next one on: one more step is waited for.
        if awaited is None:
            return False
        if step <= awaited.step or (awaited.given is None and step == awaited.step + 1):
            return True
        self.forget()
        self._make_while_waiting(step, lambda: self._of_call(awaited))
        return False

    def forget(self) -> None:
        """Wait for no call any more."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.remove()

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

    def _of_call(self, awaited: _NextCall) -> Graph:
        """Return the graph of the observed call; without a call, the tree of modules."""
        if awaited.given is not None:
            return build(self.model, *awaited.given)
        return build_tree(self.model, NOT_CALLED.format(awaited.step))

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


class _NextCall:
    """First call of the model in a step, with its arguments.

    Parameters
    ----------
    model : nn.Module
        Held weakly, and hooked until `remove`.
    observer : Observer
        Distinguishes calls of the training.
    step : int
    """

    def __init__(self, model: nn.Module, observer: Observer, step: int) -> None:
        self.step, self._observer = step, observer
        self.given: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        hook = _OnCall(self)
        # An interrupt after registering would leave a hook without a handle.
        with uninterrupted:
            self._handle = UncopiedHandle(model.register_forward_pre_hook(hook, with_kwargs=True))

    def called(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the arguments of a training call."""
        is_training = self._observer.phase.now == "training"
        if self.given is None and is_training and self._observer.watches(module):
            self.given = _detached(args), _detached(kwargs)

    def remove(self) -> None:
        """Remove the hook."""
        self._handle.remove()


class _OnCall(WeakHook):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, kwargs: Any = None) -> None:
        """Notify the owner; torch calls a hook removed at call start again, without keywords."""
        if torch.compiler.is_compiling() or (awaited := self.owner()) is None or is_traced():
            return
        awaited.called(module, args, kwargs or {})


def _detached(value: Any) -> Any:
    """Return the same values, detached from their graphs."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach(), value)
