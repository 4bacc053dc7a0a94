"""Graphs with readings, changed between Dynamo, which has traced them, and their backend.

Readings hand out their sums together. Where the backend refuses them the graph is compiled without
them: backends are many, and few were tried. A refusal would be raised in the user's own call of the
model, where nothing of ours may raise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch._dynamo.exc import RestartAnalysis
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch.fx import Graph, GraphModule, Node

__all__ = ["ReadingNodes", "change_graph"]


def change_graph(nodes: ReadingNodes, note: Callable[[str, Exception], object]) -> bool:
    """Change the graph that is being traced before its backend compiles it.

    Parameters
    ----------
    nodes : ReadingNodes
    note : callable
        Called with the text of each reading that is dropped, as the backend has refused it, and
        with the error.

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
        graph.compiler_fn = _Backend(graph.compiler_fn, nodes, note)
    return True


class ReadingNodes(NamedTuple):
    """Functions that a graph calls for readings."""

    read: Callable[..., Any]
    """Function that reads and hands out at once: tensors, a row, and a text that says what."""
    at_once: Callable[..., Any]
    """Function that does what ``read`` does, and returns what it has found."""
    add_up: Callable[..., Any]
    """Function that reads, and returns what is to be handed out."""
    hand_out: Callable[..., Any]
    """Function that hands out a list of what ``add_up`` has returned."""
    begins: Callable[[str], bool]
    """True of the text of a reading that the one at the end of the same call needs."""

    def change(self, graph: GraphModule) -> None:
        """Join the readings of a graph, other than those of a part, such as a checkpoint.

        An operator with an effect between others makes AOTAutograd keep tensors for the backward
        that it otherwise computes again from others, and Inductor keep them in another order.
        """
        for part in graph.modules():
            if isinstance(part, GraphModule):
                found = self._pair(part.graph, self.add_up if part is graph else self.at_once)
                if part is graph and found:
                    with part.graph.inserting_before(part.graph.output_node()):
                        part.graph.call_function(self.hand_out, (found,))
                part.recompile()

    def _pair(self, graph: Graph, target: Callable[..., Any]) -> list[Node]:
        """Make readings return what they find, and give it from a call's beginning to its end."""
        found = graph.find_nodes(op="call_function", target=self.read)
        begun: defaultdict[Any, list[Node]] = defaultdict(list)
        for node in found:
            node.target = target
            _, row, reading = node.args
            if self.begins(str(reading)):
                begun[row].append(node)
            elif begun[row]:
                node.args = (*node.args, begun[row].pop())
        return [*found]

    def drop(self, graph: GraphModule) -> Iterator[str]:
        """Remove all readings from a graph; yield what they are of."""
        for part in graph.modules():
            if isinstance(part, GraphModule):
                targets = (self.hand_out, self.add_up, self.at_once, self.read)
                # The last first, as it needs what the others return.
                for node in [*reversed(part.graph.nodes)]:
                    if node.op == "call_function" and node.target in targets:
                        if node.target is not self.hand_out:
                            yield str(node.args[2])
                        part.graph.erase_node(node)
                part.recompile()


class _Backend:
    """A compiler that joins the readings of a graph, and drops those that it cannot compile."""

    def __init__(
        self,
        backend: Callable[..., Any],
        nodes: ReadingNodes,
        note: Callable[[str, Exception], object],
    ) -> None:
        self._backend, self._nodes, self._note = backend, nodes, note
        self.__name__ = getattr(backend, "__name__", type(backend).__name__)

    @property
    def _splits(self) -> bool:
        """True for DDP's, which compiles a graph in parts: only tensors pass between them."""
        owner = getattr(self._backend, "__self__", None)
        return type(owner).__module__ == "torch._dynamo.backends.distributed"

    def __call__(self, graph: GraphModule, inputs: Any, **options: Any) -> Any:
        try:
            if not self._splits:
                self._nodes.change(graph)
            return self._backend(graph, inputs, **options)
        except RestartAnalysis:  # by which Dynamo begins again
            raise
        except Exception as error:
            dropped = [*self._nodes.drop(graph)]
            if not dropped:
                raise
            refusal = error
        compiled = self._backend(graph, inputs, **options)  # an error is the user's own
        for reading in dropped:
            self._note(reading, refusal)
        return compiled
