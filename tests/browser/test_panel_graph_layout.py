"""Folding and layout of the graph: what stands where, by independent counts and laws."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from tests.browser.graph_messages import (
    Drawing,
    deep_graph,
    gpt2,
    graph_message,
    resnet18,
    unet,
)
from tests.browser.panel_parts import PanelParts

FOLDED = """([text, open]) => {
  const network = parts.networkOf(JSON.parse(text));
  const chosen = open === null ? parts.openAtFirst(network) : new Set(open);
  const scope = parts.foldGraph(network, chosen);
  const layout = parts.laidOut(network, scope, (box) => 40 + 6 * (box.path ?? "").length);
  return { open: [...chosen], layout };
}"""


def folded(
    parts: PanelParts, graph: dict[str, Any], open: list[str] | None = None
) -> dict[str, Any]:
    found: dict[str, Any] = parts.evaluate(FOLDED, [json.dumps(graph_message(graph)), open])
    return found


def closed(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in found["layout"]["items"] if not item["isOpen"]]


def modules(found: dict[str, Any]) -> list[str]:
    return [item["path"] for item in closed(found) if item["path"] is not None]


def test_resnet18_opens_as_ten_modules_one_below_the_other(parts: PanelParts) -> None:
    found = folded(parts, resnet18())
    layers = [f"layer{k}" for k in range(1, 5)]
    assert modules(found) == ["conv1", "bn1", "relu", "maxpool", *layers, "avgpool", "fc"]
    assert found["open"] == []
    middles = {round(item["x"] + item["width"] / 2, 3) for item in closed(found)}
    assert len(middles) == 1
    tops = [item["y"] for item in closed(found)]
    assert tops == sorted(tops)


def test_wrappers_and_containers_are_open_as_long_as_few_boxes_are_seen(parts: PanelParts) -> None:
    found = folded(parts, gpt2())
    assert found["open"] == ["transformer", "transformer.h"]
    assert [path for path in modules(found) if path.startswith("transformer.h.")] == [
        f"transformer.h.{k}" for k in range(12)
    ]
    assert len(closed(found)) <= 40
    many = folded(parts, gpt2(60))
    assert many["open"] == ["transformer"]
    assert "transformer.h" in modules(many)


def test_modules_of_a_container_that_take_turns_with_others_stand_where_they_are_called(
    parts: PanelParts,
) -> None:
    found = folded(parts, unet())
    assert {"down", "up", "dec"} <= {*found["open"]}
    assert all(item["frame"] is None for item in found["layout"]["items"])
    turns = [[f"up.{k}", f"dec.{k}"] for k in range(4)]
    below = [path for k in range(4) for path in ("pool", f"down.{k}")]
    assert modules(found) == ["inc", *below, *itertools.chain(*turns)]
    tops = [item["y"] for item in closed(found)]
    assert tops == sorted(tops)
    assert len({*tops}) == len(tops), "one below the other"
    one = folded(parts, unet(), [])
    assert {"down", "up", "dec"} <= {*modules(one)}, "closed it is one box"


def test_a_module_that_is_called_twice_has_a_box_for_each_call(
    parts: PanelParts,
) -> None:
    found = folded(parts, resnet18(), ["layer1", "layer1.0"])
    inside = [item["path"] for item in closed(found) if item["frame"] == "/layer1@0/layer1.0@0"]
    assert inside.count("layer1.0.relu") == 2
    assert inside.count("layer1.0.conv1") == 1
    assert all(upright(route) for route in found["layout"]["routes"])


def upright(route: dict[str, Any]) -> bool:
    heights = [y for _, y in route["points"]]
    return heights == sorted(heights)


def test_a_cell_that_is_unrolled_is_a_chain_of_its_calls(parts: PanelParts) -> None:
    net = Drawing("Unrolled")
    for path, kind in (("embed", "Embedding"), ("cell", "RNNCell")):
        net.module(path, kind, 4, calls=5)
    ids = net.node("ids", "", kind="input")
    state: list[int] = []
    for _ in range(5):
        x = net.node("embedding", "embed", [net.node("select", "", [ids])])
        state = [net.node("rnn_tanh_cell", "cell", [x, *state])]
    found = folded(parts, net.graph, [])
    assert modules(found) == ["embed", "cell"] * 5
    assert all(upright(route) for route in found["layout"]["routes"])


def test_modules_that_call_each_other_back_and_forth_are_drawn_with_an_edge_upwards(
    parts: PanelParts,
) -> None:
    net = Drawing("Crossed")
    for path in ("a", "b"):
        net.module(path, "Net")
    x, y = (net.node(name, "", kind="input") for name in ("x", "y"))
    first, second = net.node("relu", "a", [x]), net.node("tanh", "b", [y])
    net.node("add", "b", [first])
    net.node("mul", "a", [second])
    found = folded(parts, net.graph, [])
    assert sorted(modules(found)) == ["a", "b"]
    assert [upright(route) for route in found["layout"]["routes"]].count(False) == 1


def random_graph(seed: int, n: int = 60) -> dict[str, Any]:
    """Operators in modules three deep, each fed by some of those before it."""
    random = np.random.default_rng(seed)
    net = Drawing("Random")
    inner = [".".join(path) for path in itertools.product("ab", "cd", "ef")]
    paths = sorted({path[:end] for path in inner for end in (1, 3, 5)})
    for path in paths:
        net.module(path, "Net", calls=int(random.integers(0, 3)))
    for k in range(n):
        n_before = min(k, int(random.integers(0, 4)))
        before = random.permutation(k)[:n_before].tolist()
        net.node("op", str(random.choice(["", *paths])), before, [k])
    return net.graph


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_open_every_node_is_in_one_box_and_every_edge_drawn(
    parts: PanelParts, seed: int
) -> None:
    graph = random_graph(seed)
    paths = [row["path"] for row in graph["modules"]]
    random = np.random.default_rng(100 + seed)
    opened = [path for path in paths if random.random() < 0.6]
    found = folded(parts, graph, opened)
    assert sorted(node for item in closed(found) for node in item["nodes"]) == list(range(60))
    drawn = {(route["from"], route["to"]) for route in found["layout"]["routes"]}
    ends = {key for pair in drawn for key in pair}
    box_of = {node: item for item in closed(found) for node in item["nodes"]}
    for start, end in graph["edges"]:
        one, other = box_of[start], box_of[end]
        if one["key"] == other["key"]:
            continue
        if one["frame"] == other["frame"]:
            assert (one["key"], other["key"]) in drawn
        else:
            assert {one["key"], other["key"]} <= ends


@pytest.mark.parametrize("seed", range(6))
def test_no_two_boxes_overlap_and_what_is_inside_stays_inside(parts: PanelParts, seed: int) -> None:
    graph = random_graph(seed)
    found = folded(parts, graph, [row["path"] for row in graph["modules"]])
    items = found["layout"]["items"]
    by_key = {item["key"]: item for item in items}
    for one, other in itertools.combinations(items, 2):
        if one["frame"] == other["frame"]:
            assert not overlap(one, other)
    for item in items:
        frame = by_key.get(item["frame"])
        if frame:
            assert frame["x"] <= item["x"]
            assert item["x"] + item["width"] <= frame["x"] + frame["width"] + 1e-9
            assert frame["y"] <= item["y"]
            assert item["y"] + item["height"] <= frame["y"] + frame["height"] + 1e-9


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    apart = (
        one["x"] + one["width"] <= other["x"]
        or other["x"] + other["width"] <= one["x"]
        or one["y"] + one["height"] <= other["y"]
        or other["y"] + other["height"] <= one["y"]
    )
    return not apart


@pytest.mark.parametrize("seed", range(4))
def test_layers_are_the_longest_paths_from_the_inputs(parts: PanelParts, seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs = itertools.combinations(range(1, 26), 2)
    edges = [pair for pair in pairs if random.random() < 0.08]
    found = parts.call("layered", 27, edges, list(range(26)))

    def longest(node: int) -> int:
        return max((longest(a) + 1 for a, b in edges if b == node), default=0)

    assert found["layerOf"][1:26] == [longest(node) for node in range(1, 26)]
    for one, other in found["links"]:
        assert found["layerOf"][other] == found["layerOf"][one] + 1


@pytest.mark.parametrize("seed", range(4))
def test_crossings_are_those_of_every_pair_of_edges(parts: PanelParts, seed: int) -> None:
    random = np.random.default_rng(seed)
    upper, lower = list(range(8)), list(range(8, 16))
    links = [(a, b) for a in upper for b in lower if random.random() < 0.3]
    below: list[list[int]] = [[b for a, b in links if a == vertex] for vertex in range(16)]
    pairs = itertools.combinations(links, 2)
    counted = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in pairs)
    assert parts.call("crossings", [upper, lower], below) == counted


def test_two_ladders_are_uncrossed(parts: PanelParts) -> None:
    layer_of = [0, 0, 1, 1]
    links = [[0, 3], [1, 2]]
    order = parts.call("ordered", {"layerOf": layer_of, "n": 4, "links": links})
    assert order in ([[0, 1], [3, 2]], [[1, 0], [2, 3]])


COUNTED = """([text, opened]) => {
  const network = parts.networkOf(JSON.parse(text));
  return opened.map((open) => {
  const chosen = open === null ? parts.openAtFirst(network) : new Set(open);
  const layout = parts.laidOut(network, parts.foldGraph(network, chosen), () => 60);
  return layout.items.filter((item) => !item.isOpen).length;
  });
}"""


def test_of_ten_thousand_nodes_few_are_seen_at_first_and_all_of_what_is_opened(
    parts: PanelParts,
) -> None:
    text = json.dumps(graph_message(deep_graph()))
    at_first, layers = parts.evaluate(COUNTED, [text, [None, ["layers"]]])
    assert at_first <= 40
    assert layers == 1002
    graph = deep_graph(100)
    everything = [row["path"] for row in graph["modules"]]
    text = json.dumps(graph_message(graph))
    assert parts.evaluate(COUNTED, [text, [everything]]) == [1002]


def test_the_same_graph_is_laid_out_the_same_way(parts: PanelParts) -> None:
    assert folded(parts, gpt2()) == folded(parts, gpt2())
