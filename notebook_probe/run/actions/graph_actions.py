"""The graph of the network that trains."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from notebook_probe.errors import NoGraphError
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.recorded import graph_of
from notebook_probe.run.parts import RunParts

__all__ = ["GraphActions"]

PATIENCE_S = 60.0


class GraphActions(ABC):
    """What a live run tells of its network as a whole."""

    _parts: RunParts

    @property
    @abstractmethod
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""

    @property
    @abstractmethod
    def closed(self) -> bool: ...

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph of the network: its operators, what they give each other, and their modules.

        It is exported by torch, without computing anything; if it cannot be, the network is called
        once on copies; if that fails, too, it is the tree of the modules. ``how`` and ``why`` say
        which it is and what stood against a better one. Nothing of the network changes, and
        nothing is measured meanwhile. The record keeps it as an event, `graph` of an opened record
        reads it.

        Parameters
        ----------
        *args, **kwargs
            What the network is called with. Without any, the graph that is recorded; or else that
            of the batch that `probe_batch` has kept; or else the tree, which is not recorded.

        Returns
        -------
        Graph
            Also while another thread trains: built between two of its steps.

        Raises
        ------
        NoGraphError
            The run is closed and has recorded none; or the thread that trains has come to the end
            of no step for a minute.

        Examples
        --------
        >>> print(run.graph(images))  # doctest: +SKIP
        ResNet: exported, 69 operators of 61 modules
        """
        is_given = bool(args or kwargs)
        if not is_given and (self.closed or self._live.graphs.known() is not None):
            source = self._parts.source
            return graph_of(source.events, source.location)
        live = self._live
        built: list[Graph] = []
        is_over = threading.Event()

        def act() -> None:
            step = live.observer.clock.upcoming
            graphs = live.graphs
            built.append(graphs.of(args, kwargs, step) if is_given else graphs.of_kept_batch(step))
            is_over.set()

        if not (live.gate.is_elsewhere or live.state.trains_in_background):
            live.observer.between_steps(act)  # nobody begins one meanwhile
            if not built:  # this thread is amid one
                act()
            return built[0]
        live.gate.once(act)
        if not is_over.wait(PATIENCE_S):
            raise NoGraphError(f"no step has ended within {PATIENCE_S:g} s; try again")
        return built[0]
