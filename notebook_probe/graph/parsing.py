"""A graph read at the door: a record may hold anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from notebook_probe.checks import is_whole
from notebook_probe.errors import RecordFormatError
from notebook_probe.graph.nodes import VERSION, GraphKind, ModuleEntry, Node, NodeKind

__all__ = ["MOST_EDGES", "MOST_NODES", "parsed"]

MOST_NODES, MOST_EDGES = 20_000, 100_000
"""Limits of a graph: larger ones are not readable, and are never built."""
MOST_CHARACTERS = 2_000
MOST_DIMS = 64
LARGEST = 2**63 - 1

Kind = TypeVar("Kind", bound=str)


def parsed(found: Any) -> dict[str, Any]:
    """Return the fields of a `Graph`.

    Raises
    ------
    RecordFormatError
        Invalid content, with its place.

    Examples
    --------
    >>> parsed({"version": 7})
    Traceback (most recent call last):
        ...
    notebook_probe.errors.RecordFormatError: graph: version is 7; 1 is read
    """
    graph = _mapping("graph", found)
    if graph.get("version") != VERSION:
        raise _wrong("graph: version", graph.get("version"), f"{VERSION} is read")
    nodes = tuple(_node(*one) for one in _listed("nodes", graph, MOST_NODES))
    return {
        "how": _one_of("how", graph.get("how"), get_args(GraphKind)),
        "model": _text("model", graph.get("model")),
        "nodes": nodes,
        "edges": tuple(_edge(*one, len(nodes)) for one in _listed("edges", graph, MOST_EDGES)),
        "modules": tuple(_module(*one) for one in _listed("modules", graph, MOST_NODES)),
        "why": _text("why", graph.get("why", "")),
    }


def _node(place: str, found: Any) -> Node:
    node = _mapping(place, found)
    kinds: tuple[NodeKind, ...] = get_args(NodeKind)
    dtype = node.get("dtype")
    return Node(
        name=_text(f"{place}.name", node.get("name")),
        kind=_one_of(f"{place}.kind", node.get("kind"), kinds),
        op=_text(f"{place}.op", node.get("op")),
        module=_text(f"{place}.module", node.get("module")),
        shape=_shape(f"{place}.shape", node.get("shape")),
        dtype=None if dtype is None else _text(f"{place}.dtype", dtype),
    )


def _module(place: str, found: Any) -> ModuleEntry:
    module = _mapping(place, found)
    return ModuleEntry(
        path=_text(f"{place}.path", module.get("path")),
        class_name=_text(f"{place}.class", module.get("class")),
        n_params=_count(f"{place}.n_params", module.get("n_params")),
        calls=_count(f"{place}.calls", module.get("calls")),
    )


def _edge(place: str, found: Any, n_nodes: int) -> tuple[int, int]:
    if isinstance(found, Sequence) and len(found) == 2:
        start, end = (_count(place, one) for one in found)
        # A smaller first place is topological order, and rules out circles.
        if start < end < n_nodes:
            return start, end
    raise _wrong(place, found, "two places of nodes, the smaller first, are expected")


def _shape(place: str, found: Any) -> tuple[int, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or len(found) > MOST_DIMS:
        raise _wrong(place, found, f"a list of {MOST_DIMS} numbers at most, or null, is expected")
    return tuple(_count(place, one) for one in found)


def _listed(name: str, graph: Mapping[str, Any], most: int) -> Iterator[tuple[str, Any]]:
    """Yield each entry with its place, as text."""
    found = graph.get(name)
    if not isinstance(found, list) or len(found) > most:
        raise _wrong(f"graph: {name}", found, f"a list of {most} entries at most is expected")
    return ((f"graph: {name}[{place}]", one) for place, one in enumerate(found))


def _mapping(place: str, found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise _wrong(place, found, "an object is expected")
    return found


def _text(place: str, found: Any) -> str:
    if not isinstance(found, str) or len(found) > MOST_CHARACTERS:
        raise _wrong(place, found, f"text of {MOST_CHARACTERS} characters at most is expected")
    return found


def _count(place: str, found: Any) -> int:
    if not (is_whole(found) and 0 <= found <= LARGEST):
        raise _wrong(place, found, "a whole number from 0 is expected")
    return found


def _one_of(place: str, found: Any, allowed: Sequence[Kind]) -> Kind:
    for one in allowed:
        if found == one:
            return one
    raise _wrong(place, found, f"one of {', '.join(allowed)} is expected")


def _wrong(place: str, found: Any, expected: str) -> RecordFormatError:
    return RecordFormatError(f"{place} is {repr(found)[:80]}; {expected}")
