"""DOT is balanced, names every node once, and whatever a name holds stays inside its quotes."""

from __future__ import annotations

import re

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.graph import Graph, Node
from notebook_probe.graph.building import build
from tests.models import ConvNet, made

STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def without_strings(text: str) -> str:
    """The rest, in which a bracket is one."""
    return STRING.sub("S", text)


def test_modules_are_clusters_in_each_other() -> None:
    graph = build(torch.nn.Sequential(made(ConvNet)), (torch.zeros(2, 1, 6, 6),))
    text = graph.to_dot()
    assert 'subgraph "cluster_0" {\n    label="0 ConvNet";' in text
    assert '  subgraph "cluster_0.conv1" {\n      label="0.conv1 Conv2d";' in text
    assert text.count(" -> ") == len(graph.edges)
    assert re.search(r'n\d+ -> n\d+ \[label="2x4x6x6"\];', text)
    for place in range(len(graph.nodes)):
        assert len(re.findall(rf"^ *n{place} \[", text, flags=re.MULTILINE)) == 1


@settings(max_examples=60)
@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_no_name_gets_out_of_its_quotes(model: str, op: str, module: str) -> None:
    nodes = Node("a", "input", op, module), Node("b", "operator", op, "")
    rest = without_strings(Graph("called", model, nodes, ((0, 1),), ()).to_dot())
    assert rest.startswith("digraph S {")
    assert '"' not in rest
    assert rest.count("{") == rest.count("}") == 1 + rest.count("subgraph S")
