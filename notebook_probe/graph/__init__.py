"""Graph of a network: its operators, the tensors between them, and their modules.

`graph` is a value that is read without torch. `building` makes it from a model: by export, or else
from a call, or else from the tree of its modules.
"""

from notebook_probe.graph.graph import Graph
from notebook_probe.graph.nodes import GraphKind, ModuleEntry, Node, NodeKind

__all__ = ["Graph", "GraphKind", "ModuleEntry", "Node", "NodeKind"]
