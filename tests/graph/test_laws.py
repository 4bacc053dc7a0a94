"""Networks drawn at random: each way of building gives the graph that was drawn, and no other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from notebook_probe.graph import Graph, building
from notebook_probe.graph.building import build
from tests.graph.nets import WIDTH, Drawn, drawn_nets


def matches(graph: Graph, net: Drawn) -> None:
    operators = [at for at, node in enumerate(graph.nodes) if node.kind == "operator"]
    assert [(graph.nodes[at].op, graph.nodes[at].module) for at in operators] == net.operators
    assert all(graph.nodes[at].shape == (2, WIDTH) for at in operators)
    (given_at,) = [at for at, node in enumerate(graph.nodes) if node.kind == "input"]
    number = {given_at: 0} | {at: n for n, at in enumerate(operators, 1)}
    within = {
        (number[start], number[end])
        for start, end in graph.edges
        if start in number and end in number
    }
    assert within == net.links
    ends = [
        number[start]
        for start, end in sorted(graph.edges, key=lambda edge: edge[1])
        if graph.nodes[end].kind == "output"
    ]
    assert ends == net.ends
    assert all(start < end for start, end in graph.edges)
    calls = {one.path: one.calls for one in graph.modules if one.calls}
    wanted: dict[str, int] = {"": 1}
    for _, path in net.operators:
        if path:
            wanted[path] = wanted.get(path, 0) + 1
    assert calls == wanted
    parameters = sum(node.kind == "parameter" for node in graph.nodes)
    assert parameters == 2 * sum(path.startswith("layers.") for path in wanted)


@settings(max_examples=6)
@given(drawn_nets())
def test_an_export_is_the_network_that_was_drawn(net: Drawn) -> None:
    graph = build(net, (torch.zeros(2, WIDTH),))
    assert graph.how == "exported"
    matches(graph, net)


@settings(max_examples=40)
@given(drawn_nets())
def test_a_call_is_the_network_that_was_drawn(net: Drawn) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "WAYS", {"called": building.WAYS["called"]})
        graph = build(net, (torch.zeros(2, WIDTH),))
    assert graph.how == "called"
    matches(graph, net)
