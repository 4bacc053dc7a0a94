"""Graphs that a backend refuses to compile with readings are compiled without them.

Backends are many, and few were tried. A refusal would be raised in the user's own call of the
model, where nothing of ours may raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch._dynamo.exc import RestartAnalysis
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch.fx import GraphModule

__all__ = ["drop_if_refused"]


def drop_if_refused(reading: Callable[..., Any], note: Callable[[str, Exception], object]) -> bool:
    """Compile the graph that is being traced without readings if its backend refuses them.

    Parameters
    ----------
    reading : callable
        Function that the graph calls for a reading.
    note : callable
        Called with the last argument of each reading that is dropped, and the error.

    Returns
    -------
    bool
        Dynamo traces a graph now, which will be compiled.
    """
    try:
        graph = InstructionTranslator.current_tx().output
    except AttributeError:
        return False
    if not isinstance(graph.compiler_fn, _Backend) and graph.compiler_fn is not None:
        graph.compiler_fn = _Backend(graph.compiler_fn, reading, note)
    return True


class _Backend:
    """A compiler that drops the readings of a graph that it cannot compile with them."""

    def __init__(
        self,
        backend: Callable[..., Any],
        reading: Callable[..., Any],
        note: Callable[[str, Exception], object],
    ) -> None:
        self._backend, self._reading, self._note = backend, reading, note
        self.__name__ = getattr(backend, "__name__", type(backend).__name__)

    def __call__(self, graph: GraphModule, inputs: Any, **options: Any) -> Any:
        try:
            return self._backend(graph, inputs, **options)
        except RestartAnalysis:  # by which Dynamo begins again
            raise
        except Exception as error:
            dropped = [*self._drop(graph)]
            if not dropped:
                raise
            refusal = error
        compiled = self._backend(graph, inputs, **options)  # an error is the user's own
        for reading in dropped:
            self._note(reading, refusal)
        return compiled

    def _drop(self, graph: GraphModule) -> Iterator[str]:
        for part in graph.modules():
            if isinstance(part, GraphModule):
                for node in part.graph.find_nodes(op="call_function", target=self._reading):
                    yield str(node.args[-1])
                    part.graph.erase_node(node)
                part.recompile()
