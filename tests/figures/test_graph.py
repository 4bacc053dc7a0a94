"""The picture of a graph says what every box is and what flows, and tells what it cannot draw."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import nn

import notebook_probe as nbp
from notebook_probe import figures
from notebook_probe.errors import NoGraphError
from notebook_probe.graph import Graph, Node
from notebook_probe.graph.building import build, build_tree
from tests.models import ConvNet, made, mlp


@pytest.fixture(scope="module")
def network() -> Graph:
    return build(made(ConvNet), (torch.zeros(2, 1, 6, 6),))


def texts(graph: Graph, depth: int = 1) -> list[str]:
    return [text.get_text() for text in figures.graph(graph, depth).axes[0].texts]


@pytest.mark.slow
def test_a_box_says_its_class_its_place_and_its_parameters(network: Graph) -> None:
    shown = texts(network)
    assert shown[0] == "ConvNet: exported, 10 operators of 8 modules"
    assert {"Conv2d", "conv1  36 parameters", "head  111 parameters", "images"} <= {*shown}
    assert shown.count("2×4×6×6") == 7
    assert "2×36" in shown


def test_every_box_and_every_flow_is_drawn(network: Graph) -> None:
    patches = figures.graph(network).axes[0].patches
    assert sum(isinstance(one, FancyBboxPatch) for one in patches) == 12
    assert sum(isinstance(one, FancyArrowPatch) for one in patches) == 12


@pytest.mark.slow
def test_it_is_drawn_of_a_run_and_of_a_record(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "run.zarr") as run:
        run.graph(torch.ones(2, 4))
        of_run = figures.graph(run)
    of_record = figures.graph(nbp.open_run(tmp_path / "run.zarr"))
    assert of_run.get_size_inches().tolist() == of_record.get_size_inches().tolist()


def test_a_record_without_one_says_so(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "run.zarr") as run:
        run.log(loss=1.0)
    with pytest.raises(NoGraphError, match="has no graph of its network"):
        figures.graph(nbp.open_run(tmp_path / "run.zarr"))


def test_trees_and_empty_networks_are_pictures_too() -> None:
    assert "0  40 parameters" in texts(build_tree(made(mlp), "no batch"))
    assert len(texts(build(nn.Sequential(), (torch.ones(1),)))) > 1
    assert len(texts(Graph("tree", "Empty", (), (), ()))) == 1


def test_more_boxes_than_can_be_looked_at_are_refused() -> None:
    nodes = tuple(Node(f"n{place}", "operator", "relu", "") for place in range(301))
    with pytest.raises(ValueError, match="depth=1 gives 301 boxes; at most 300"):
        figures.graph(Graph("called", "Net", nodes, (), ()))


@pytest.mark.parametrize("depth", [-1, True, 1.5])
def test_a_depth_is_a_whole_number(network: Graph, depth: int) -> None:
    with pytest.raises(ValueError, match="a whole number from 0"):
        figures.graph(network, depth)
