"""A graph as DOT, the language of graphviz, which nothing here needs: modules are clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from notebook_probe.graph.nodes import ModuleEntry, Node, NodeKind

__all__ = ["dot"]

SHAPES: dict[NodeKind, str] = {
    "input": "ellipse",
    "output": "ellipse",
    "parameter": "note",
    "buffer": "note",
    "constant": "note",
}


def dot(
    name: str,
    nodes: Sequence[Node],
    edges: Iterable[tuple[int, int]],
    modules: Iterable[ModuleEntry],
) -> str:
    """Return the whole graph as text: a cluster for each module, nested.

    Examples
    --------
    >>> nodes = Node("x", "input", "", "", (8, 4)), Node("linear", "operator", "linear", "fc")
    >>> print(dot("Net", nodes, [(0, 1)], []))
    digraph "Net" {
      node [shape=box];
      n0 [label="x", shape=ellipse];
      subgraph "cluster_fc" {
        label="fc";
        n1 [label="linear"];
      }
      n0 -> n1 [label="8x4"];
    }
    """
    classes = {one.path: one.class_name for one in modules}
    lines = [f"digraph {_quoted(name)} {{", "  node [shape=box];"]
    lines += _cluster(_nested(nodes), "", classes, nodes, "  ")
    for start, end in edges:
        shape = nodes[start].shape
        label = "" if shape is None else f' [label="{"x".join(map(str, shape))}"]'
        lines.append(f"  n{start} -> n{end}{label};")
    return "\n".join([*lines, "}"])


class _Place:
    """Contents of one module: nodes, and inner modules by name."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.parts: dict[str, _Place] = {}


def _nested(nodes: Sequence[Node]) -> _Place:
    root = _Place()
    for place, node in enumerate(nodes):
        inner = root
        for part in node.module.split(".") if node.module else ():
            inner = inner.parts.setdefault(part, _Place())
        inner.nodes.append(place)
    return root


def _cluster(
    inner: _Place, path: str, classes: dict[str, str], nodes: Sequence[Node], indent: str
) -> Iterator[str]:
    for place in inner.nodes:
        node = nodes[place]
        shape = f", shape={SHAPES[node.kind]}" if node.kind in SHAPES else ""
        yield f"{indent}n{place} [label={_quoted(node.op or node.name)}{shape}];"
    for name, part in inner.parts.items():
        below = f"{path}.{name}" if path else name
        label = " ".join(filter(None, [below, classes.get(below, "")]))
        yield f"{indent}subgraph {_quoted('cluster_' + below)} {{"
        yield f"{indent}  label={_quoted(label)};"
        yield from _cluster(part, below, classes, nodes, indent + "  ")
        yield f"{indent}}}"


def _quoted(text: str) -> str:
    """Quote a text for DOT; NUL would end the file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "")
    return f'"{escaped}"'
