"""A graph is a value that JSON holds, and whatever else a record holds is refused in one error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import notebook_probe as nbp
from notebook_probe.errors import NoGraphError, RecordFormatError
from notebook_probe.graph import Graph, GraphKind, ModuleEntry, Node
from notebook_probe.graph.recorded import detail_of, recorded_graph
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event

GRAPH = Graph(
    "exported",
    "Net",
    (
        Node("x", "input", "", "", (2, 4), "float32"),
        Node("p_fc_weight", "parameter", "weight", "fc", (3, 4), "float32"),
        Node("linear", "operator", "linear", "fc", (2, 3), "float32"),
        Node("output", "output", "", "", (2, 3), "float32"),
    ),
    ((0, 2), (1, 2), (2, 3)),
    (ModuleEntry("", "Net", 12, 1), ModuleEntry("fc", "Linear", 12, 1)),
)


def test_its_json_is_the_one_that_views_read() -> None:
    assert GRAPH.to_json() == {
        "version": 1,
        "how": "exported",
        "model": "Net",
        "why": "",
        "nodes": [
            {
                "name": "x",
                "kind": "input",
                "op": "",
                "module": "",
                "shape": [2, 4],
                "dtype": "float32",
            },
            {
                "name": "p_fc_weight",
                "kind": "parameter",
                "op": "weight",
                "module": "fc",
                "shape": [3, 4],
                "dtype": "float32",
            },
            {
                "name": "linear",
                "kind": "operator",
                "op": "linear",
                "module": "fc",
                "shape": [2, 3],
                "dtype": "float32",
            },
            {
                "name": "output",
                "kind": "output",
                "op": "",
                "module": "",
                "shape": [2, 3],
                "dtype": "float32",
            },
        ],
        "edges": [[0, 2], [1, 2], [2, 3]],
        "modules": [
            {"path": "", "class": "Net", "n_params": 12, "calls": 1},
            {"path": "fc", "class": "Linear", "n_params": 12, "calls": 1},
        ],
    }


TEXT = st.text(max_size=8)
COUNTS = st.integers(0, 2**63 - 1)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    kinds = st.sampled_from(["input", "parameter", "buffer", "constant", "operator", "module"])
    shapes = st.none() | st.lists(COUNTS, max_size=4).map(tuple)
    node = st.builds(Node, TEXT, kinds, TEXT, TEXT, shapes, st.none() | TEXT)
    nodes = draw(st.lists(node, max_size=6))
    pairs = [(start, end) for end in range(len(nodes)) for start in range(end)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=6)) if pairs else []
    modules = draw(st.lists(st.builds(ModuleEntry, TEXT, TEXT, COUNTS, COUNTS), max_size=4))
    how: GraphKind = draw(st.sampled_from(["exported", "called", "tree"]))
    return Graph(how, draw(TEXT), tuple(nodes), tuple(edges), tuple(modules), draw(TEXT))


@pytest.mark.slow
@given(graphs())
def test_what_json_holds_of_it_is_all_of_it(graph: Graph) -> None:
    assert Graph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = ("version", "how", "model", "nodes", "edges", "modules", "why")


@given(st.sampled_from(FIELDS), JSON)
def test_whatever_stands_in_a_field_is_read_or_refused_in_one_error(name: str, value: Any) -> None:
    found = GRAPH.to_json() | {name: value}
    with suppress(RecordFormatError):  # anything else is raised
        Graph.from_json(found)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version is 2; 1 is read"),
        ({"how": "guessed"}, "one of exported, called, tree"),
        ({"edges": [[2, 1]]}, r"edges\[0\] is \[2, 1\]; two places of nodes, the smaller first"),
        ({"edges": [[0, 4]]}, r"edges\[0\]"),
        ({"edges": [[True, 2]]}, r"edges\[0\]"),
        ({"nodes": {}}, "nodes is {}; a list"),
        ({"nodes": [{}] * 20_001}, "a list of 20000 entries at most"),
        ({"modules": [{"path": "a" * 3000}]}, "text of 2000 characters at most"),
        ({"modules": [{"path": "", "class": "", "n_params": -1}]}, "a whole number from 0"),
    ],
)
def test_an_error_says_where_and_what_is_expected(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RecordFormatError, match=says):
        Graph.from_json(GRAPH.to_json() | change)


def test_the_newest_of_a_record_counts() -> None:
    def event(graph: Graph) -> Event:
        return Event(0, 0, MODEL_GRAPH, str(graph), detail_of(graph))

    other = Graph("tree", "Net", (), (), (), "not called: it raises")
    assert recorded_graph([]) is None
    assert recorded_graph([event(GRAPH), event(other), Event(9, 0, "set", "")]) == other


@pytest.mark.parametrize("detail", ["", "{", "[]", "{}", '{"graph": 1}', "[" * 100_000])
def test_a_damaged_event_is_one_error(detail: str) -> None:
    with pytest.raises(RecordFormatError, match="graph"):
        recorded_graph([Event(0, 0, MODEL_GRAPH, "", detail)])


def test_its_names_are_at_the_top() -> None:
    assert nbp.Graph is Graph
    assert issubclass(NoGraphError, LookupError)
