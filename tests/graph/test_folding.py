"""Folded graphs have no way back, hold every operator once, and the boxes that one expects."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from notebook_probe.graph import Graph, ModuleEntry, Node
from notebook_probe.graph.building import build
from notebook_probe.graph.folding import fold
from tests.models import ConvNet, Shared, made


class Stages(nn.Module):
    """A stem, two stages of two blocks, and a head, called one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(2)
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage in self.stages:
            x = x + stage(x)
        return self.head(x)


@pytest.fixture(scope="module")
def stages() -> Graph:
    return build(made(Stages), (torch.zeros(2, 4),))


def labels(graph: Graph, depth: int) -> list[str]:
    return [f"{box.label} {box.path}".strip() for box in fold(graph, depth).boxes]


def test_what_is_less_deep_than_the_fold_is_a_box_too(stages: Graph) -> None:
    inner = ["Sequential stages.0", "add", "Sequential stages.1", "add"]
    assert labels(stages, 2) == ["x", "Linear stem", *inner, "Linear head", "output"]


def test_a_list_of_modules_is_one_box_as_long_as_nothing_comes_between(stages: Graph) -> None:
    inner = ["ModuleList stages", "add", "ModuleList stages", "add"]
    assert labels(stages, 1) == ["x", "Linear stem", *inner, "Linear head", "output"]


def test_at_depth_0_every_operator_is_by_itself(stages: Graph) -> None:
    n = len(stages.operators)
    assert [box.is_module for box in fold(stages, 0).boxes] == [False] * (n + 2)


def test_flows_have_the_shapes_of_what_flows(stages: Graph) -> None:
    folded = fold(stages, 2)
    flows = {(flow.start, flow.end): flow.shapes for flow in folded.flows}
    assert flows == {
        (0, 1): ((2, 4),),
        (1, 2): ((2, 4),),
        (1, 3): ((2, 4),),
        (2, 3): ((2, 4),),
        (3, 4): ((2, 4),),
        (3, 5): ((2, 4),),
        (4, 5): ((2, 4),),
        (5, 6): ((2, 4),),
        (6, 7): ((2, 2),),
    }


def test_a_module_that_is_called_twice_is_two_boxes() -> None:
    graph = build(made(Shared), (torch.zeros(2, 4),))
    assert labels(graph, 1) == ["x", "Linear twice", "ReLU relu", "Linear twice", "output"]


def test_parameters_are_counted_in_the_box_of_their_module() -> None:
    graph = build(made(ConvNet), (torch.zeros(2, 1, 6, 6),))
    found = {box.path: box.n_params for box in fold(graph).boxes if box.n_params}
    assert found == {"conv1": 36, "norm1": 8, "conv2": 144, "norm2": 8, "head": 111}


PATHS = st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "e", "e.f"])


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    """Operators of any modules in any order, linked in any way that goes forward."""
    paths = draw(st.lists(PATHS, min_size=1, max_size=14))
    nodes = tuple(
        Node(f"n{place}", draw(st.sampled_from(["operator", "parameter", "input"])), "op", path)
        for place, path in enumerate(paths)
    )
    pairs = [(start, end) for end in range(len(nodes)) for start in range(end)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    entries = tuple(ModuleEntry(path, "M", 0, 1) for path in ["", "a", "a.b", "a.b.c", "a.d"])
    return Graph("called", "Net", nodes, tuple(edges), entries)


@settings(max_examples=60)
@given(random_graphs(), st.integers(0, 4))
def test_whatever_is_folded_goes_forward_and_loses_nothing(graph: Graph, depth: int) -> None:
    folded = fold(graph, depth)
    assert all(flow.start < flow.end < len(folded.boxes) for flow in folded.flows)
    held = [place for box in folded.boxes for place in box.nodes]
    shown = [place for place, node in enumerate(graph.nodes) if node.kind != "parameter"]
    assert held == shown
    box_of = {place: number for number, box in enumerate(folded.boxes) for place in box.nodes}
    wanted = {
        (box_of[start], box_of[end])
        for start, end in graph.edges
        if start in box_of and end in box_of and box_of[start] != box_of[end]
    }
    assert {(flow.start, flow.end) for flow in folded.flows} == wanted
