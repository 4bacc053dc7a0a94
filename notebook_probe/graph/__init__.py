"""The graph of a network: its operators, what flows between them, and the modules they belong to.

`graph` is a value that is read without torch; `building` makes one of a model: exported, else
called, else the tree of its modules.
"""

from notebook_probe.graph.graph import Graph
from notebook_probe.graph.nodes import GraphKind, ModuleEntry, Node, NodeKind

__all__ = ["Graph", "GraphKind", "ModuleEntry", "Node", "NodeKind"]
