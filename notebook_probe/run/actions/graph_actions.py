"""The graph of the network that trains."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, wait
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from notebook_probe.errors import NoGraphError
from notebook_probe.graph.building import in_words
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.onnx_file import check_onnx, to_onnx
from notebook_probe.graph.recorded import graph_of
from notebook_probe.run.parts import RunParts

__all__ = ["GraphActions"]

PATIENCE_S = 60.0
TURN_S = 0.25
NO_INPUTS = "no batch is known: give inputs, or keep a batch with run.probe_batch(...)"

Made = TypeVar("Made")


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

    @property
    @abstractmethod
    def kept_batch(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None: ...

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

        def built() -> Graph:
            step = live.observer.clock.upcoming
            graphs = live.graphs
            return graphs.of(args, kwargs, step) if is_given else graphs.of_kept_batch(step)

        return _between_steps(live, built)

    def to_onnx(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> Path:
        """Write the network, as it is between two steps, into an ONNX file.

        In evaluation mode, with its weights; more than 1 GiB of them lie beside it, in
        ``....data``. Nothing of the network changes.

        Parameters
        ----------
        path : path
            Of the file; one that is there is written over.
        *args, **kwargs
            What the network is called with, whose sizes the file has; without any, the batch that
            `probe_batch` has kept.

        Returns
        -------
        Path
            The same.

        Raises
        ------
        MissingExtraError
            onnx or onnxscript is not installed: ``pip install 'notebook-probe[onnx]'``.
        NoGraphError
            No batch is known, or the network cannot be exported; the message says why.
        ClosedRunError

        Examples
        --------
        >>> run.to_onnx("network.onnx", images)  # doctest: +SKIP
        PosixPath('network.onnx')
        """
        live = self._live
        check_onnx()
        given = (args, kwargs) if args or kwargs else self.kept_batch
        if given is None:
            raise NoGraphError(f"to_onnx({str(path)!r}): {NO_INPUTS}")
        try:
            return _between_steps(live, lambda: to_onnx(live.graphs.model, path, *given))
        except OSError:
            raise
        except Exception as error:
            raise NoGraphError(f"to_onnx({str(path)!r}): {in_words(error)}") from error


def _between_steps(live: RunParts, act: Callable[[], Made]) -> Made:
    """Do it while no step is open, or this thread is amid its own; let another thread do it."""
    done: Future[Made] = Future()

    def do() -> None:
        if done.done():
            return
        try:
            done.set_result(act())
        except BaseException as error:
            done.set_exception(error)

    if _trains_elsewhere(live):
        live.gate.once(do)
        deadline = time.monotonic() + PATIENCE_S
        while _trains_elsewhere(live) and not done.done():
            if time.monotonic() > deadline:
                raise NoGraphError(f"no step has ended within {PATIENCE_S:g} s; try again")
            wait([done], TURN_S)  # the training may end meanwhile
    live.observer.between_steps(do)  # nobody begins one meanwhile
    do()
    return done.result()


def _trains_elsewhere(live: RunParts) -> bool:
    return live.gate.is_elsewhere or live.state.trains_in_background
