"""Graphs of networks as a record keeps them, made by hand: what is drawn of them is known."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Locator, expect

from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.graph import shown_graph
from notebook_probe.graph import Graph
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage


class Drawing:
    """A graph that grows node by node."""

    def __init__(self, model: str) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[list[int]] = []
        self.modules: dict[str, dict[str, Any]] = {}
        self.model = model
        self.module("", model, calls=1)

    def module(self, path: str, kind: str, n_params: int = 0, calls: int = 1) -> str:
        row = {"path": path, "class": kind, "n_params": n_params, "calls": calls}
        self.modules[path] = row
        return path

    def node(
        self,
        op: str,
        module: str,
        inputs: Iterable[int] = (),
        shape: list[int] | None = None,
        kind: str = "operator",
    ) -> int:
        place = len(self.nodes)
        name = op if kind == "input" else f"{op}_{place}"
        fields = {"name": name, "kind": kind, "op": op, "module": module}
        self.nodes.append({**fields, "shape": shape, "dtype": "float32"})
        self.edges += [[one, place] for one in inputs]
        return place

    def layer(self, path: str, kind: str, op: str, x: int, shape: list[int], n: int = 0) -> int:
        """A module of one operator, with its weight where it has parameters."""
        self.module(path, kind, n)
        weight = [self.node(f"{path}.weight", path, kind="parameter")] if n else []
        return self.node(op, path, [x, *weight], shape)

    @property
    def graph(self) -> dict[str, Any]:
        head = {"version": 1, "how": "exported", "model": self.model}
        modules = sorted(self.modules.values(), key=lambda row: row["path"].split("."))
        return {**head, "nodes": self.nodes, "edges": self.edges, "modules": modules}


def resnet18() -> dict[str, Any]:
    """Ten modules around eight blocks; in each block one module of ReLU is called twice."""
    net = Drawing("ResNet")
    x = net.node("x", "", shape=[8, 3, 224, 224], kind="input")
    x = net.layer("conv1", "Conv2d", "conv2d", x, [8, 64, 112, 112], 9408)
    x = net.layer("bn1", "BatchNorm2d", "batch_norm", x, [8, 64, 112, 112], 128)
    x = net.layer("relu", "ReLU", "relu", x, [8, 64, 112, 112])
    x = net.layer("maxpool", "MaxPool2d", "max_pool2d", x, [8, 64, 56, 56])
    for k in range(1, 5):
        width, size = 32 * 2**k, 112 // 2**k
        net.module(f"layer{k}", "Sequential", 4 * 9 * width * width)
        for block in range(2):
            x = _block(net, f"layer{k}.{block}", x, [8, width, size, size], k > 1 and not block)
    x = net.layer("avgpool", "AdaptiveAvgPool2d", "adaptive_avg_pool2d", x, [8, 512, 1, 1])
    x = net.node("flatten", "", [x], [8, 512])
    x = net.layer("fc", "Linear", "linear", x, [8, 1000], 513000)
    net.node("output", "", [x], [8, 1000], "output")
    return net.graph


def _block(net: Drawing, path: str, x: int, shape: list[int], is_smaller: bool) -> int:
    n = 9 * shape[1] ** 2
    net.module(path, "BasicBlock", 2 * n)
    net.module(f"{path}.relu", "ReLU", calls=2)
    y = net.layer(f"{path}.conv1", "Conv2d", "conv2d", x, shape, n)
    y = net.layer(f"{path}.bn1", "BatchNorm2d", "batch_norm", y, shape, 2 * shape[1])
    y = net.node("relu", f"{path}.relu", [y], shape)
    y = net.layer(f"{path}.conv2", "Conv2d", "conv2d", y, shape, n)
    y = net.layer(f"{path}.bn2", "BatchNorm2d", "batch_norm", y, shape, 2 * shape[1])
    if is_smaller:
        net.module(f"{path}.downsample", "Sequential", n // 9)
        x = net.layer(f"{path}.downsample.0", "Conv2d", "conv2d", x, shape, n // 9)
        x = net.layer(f"{path}.downsample.1", "BatchNorm2d", "batch_norm", x, shape, shape[1])
    y = net.node("add", path, [y, x], shape)
    return net.node("relu", f"{path}.relu", [y], shape)


def gpt2(n_blocks: int = 12) -> dict[str, Any]:
    """A wrapper around a transformer whose blocks lie in a container that is never called."""
    net = Drawing("GPT2LMHeadModel")
    wide, deep = [2, 64, 768], [2, 64, 3072]
    ids = net.node("input_ids", "", shape=[2, 64], kind="input")
    net.module("transformer", "GPT2Model", 124_000_000)
    net.module("transformer.h", "ModuleList", 85_000_000, calls=0)
    tokens = net.layer("transformer.wte", "Embedding", "embedding", ids, wide, 38_597_376)
    at = net.node("arange", "transformer", shape=[64])
    places = net.layer("transformer.wpe", "Embedding", "embedding", at, [64, 768], 786_432)
    x = net.node("add", "transformer", [tokens, places], wide)
    x = net.layer("transformer.drop", "Dropout", "dropout", x, wide)
    mask = net.node("causal_mask", "transformer", [at], [1, 1, 64, 64])
    for k in range(n_blocks):
        path = net.module(f"transformer.h.{k}", "GPT2Block", 7_087_872)
        net.module(f"{path}.attn", "GPT2Attention", 2_362_368)
        net.module(f"{path}.mlp", "GPT2MLP", 4_722_432)
        y = net.layer(f"{path}.ln_1", "LayerNorm", "layer_norm", x, wide, 1536)
        y = net.layer(f"{path}.attn.c_attn", "Conv1D", "addmm", y, [2, 64, 2304], 1_771_776)
        parts = [net.node("split", f"{path}.attn", [y], wide) for _ in range(3)]
        y = net.node("scaled_dot_product_attention", f"{path}.attn", [*parts, mask], wide)
        y = net.layer(f"{path}.attn.c_proj", "Conv1D", "addmm", y, wide, 590_592)
        x = net.node("add", path, [x, y], wide)
        y = net.layer(f"{path}.ln_2", "LayerNorm", "layer_norm", x, wide, 1536)
        y = net.layer(f"{path}.mlp.c_fc", "Conv1D", "addmm", y, deep, 2_362_368)
        y = net.node("gelu", f"{path}.mlp", [y], deep)
        y = net.layer(f"{path}.mlp.c_proj", "Conv1D", "addmm", y, wide, 2_360_064)
        x = net.node("add", path, [x, y], wide)
    x = net.layer("transformer.ln_f", "LayerNorm", "layer_norm", x, wide, 1536)
    x = net.layer("lm_head", "Linear", "linear", x, [2, 64, 50257], 38_597_376)
    net.node("logits", "", [x], [2, 64, 50257], "output")
    return net.graph


def unet(depth: int = 4) -> dict[str, Any]:
    """Halves in containers whose modules take turns, with what skips from one to the other."""
    net = Drawing("UNet")
    x = net.node("x", "", shape=[2, 1, 64, 64], kind="input")
    net.module("pool", "MaxPool2d", calls=depth)
    for path, kind in (("down", "ModuleList"), ("up", "ModuleList"), ("dec", "ModuleList")):
        net.module(path, kind, 1000, calls=0)
    skips = [x := net.layer("inc", "Double", "conv2d", x, [2, 8, 64, 64], 80)]
    for k in range(depth):
        x = net.node("max_pool2d", "pool", [x], [2, 8 << k, 32 >> k, 32 >> k])
        x = net.layer(f"down.{k}", "Double", "conv2d", x, [2, 16 << k, 32 >> k, 32 >> k], 100)
        skips.append(x)
    skips.pop()
    for k in range(depth):
        shape = [2, 8 << (depth - 1 - k), 8 << k, 8 << k]
        x = net.layer(f"up.{k}", "ConvTranspose2d", "conv_transpose2d", x, shape, 100)
        x = net.node("cat", "", [skips.pop(), x], shape)
        x = net.layer(f"dec.{k}", "Double", "conv2d", x, shape, 100)
    net.node("output", "", [x], [2, 8, 64, 64], "output")
    return net.graph


def deep_graph(n_layers: int = 1000, n_operators: int = 10) -> dict[str, Any]:
    """Layer after layer, each of which takes the same mask, too."""
    net = Drawing("Deep")
    x = net.node("x", "", kind="input")
    mask = net.node("mask", "", [x])
    net.module("layers", "Sequential", 10_000)
    for k in range(n_layers):
        net.module(f"layers.{k}", "Block", 10)
        for _ in range(n_operators):
            x = net.node("linear", f"layers.{k}", [x, mask], [8, 8])
    return net.graph


def graph_message(graph: dict[str, Any], revision: int = 1) -> dict[str, Any]:
    """What the kernel sends of a graph to a view that shows it."""
    return shown_graph(Graph.from_json(graph), revision)


def weighted(graph: dict[str, Any]) -> list[str]:
    """Modules with parameters and no modules inside: those that a heat map of gradients has."""
    paths = [row["path"] for row in graph["modules"] if row["n_params"] and row["path"]]
    return [path for path in paths if not any(one.startswith(f"{path}.") for one in paths)]


def show_graph(
    panel: PanelPage,
    graph: dict[str, Any],
    width: int = 880,
    theme: str = "light",
    cells: npt.ArrayLike | None = None,
) -> PanelPage:
    """A panel with gradient norms of every weighted module, turned to the graph."""
    panel.show(width, theme)
    rows = weighted(graph)
    model = {"name": graph["model"], "modules": table_of(graph), "entries": [], "kinds": []}
    panel.say({**kernel.model_message(), **model})
    panel.say(kernel.status_message(attached=[], tallies=[], recorded={"grad_norm": rows}))
    panel.say(kernel.selection_message())
    panel.draw(*kernel.heat_message(norms(len(rows)) if cells is None else cells, rows))
    panel.say({"v": VERSION, "type": "graph", "revision": 1, "why": ""})
    panel.action("graph").click()
    panel.wait_sent("show_graph")
    tell(panel, graph)
    expect(boxes(panel)).not_to_have_count(0)
    panel.wait_frame()
    return panel


def tell(panel: PanelPage, graph: dict[str, Any], revision: int = 1) -> None:
    """The graph as the kernel sends it: text that the browser parses, which is fast."""
    text = json.dumps(graph_message(graph, revision))
    panel.page.evaluate("(text) => deliver(JSON.parse(text), [])", text)


def norms(n_rows: int, n_steps: int = 60) -> npt.NDArray[np.float64]:
    """Gradients that differ from module to module and wander a little."""
    random = np.random.default_rng(0)
    level = random.normal(-1, 0.8, (n_rows, 1))
    wandering = random.normal(0, 0.05, (n_rows, n_steps)).cumsum(axis=1)
    found: npt.NDArray[np.float64] = 10 ** (level + wandering)
    return found


def boxes(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-graph-box")


def box(panel: PanelPage, module: str) -> Locator:
    """The box of a module, or the head of its frame."""
    return panel.page.locator(f'.nbp-graph-box[data-module="{module}"]')


def table_of(graph: dict[str, Any]) -> list[tuple[str, str, int, int, int]]:
    """The same modules as the tree of the panel has them."""
    rows = {row["path"]: k for k, row in enumerate(graph["modules"])}
    return [
        (
            row["path"] or "(root)",
            row["class"],
            row["n_params"],
            row["n_params"],
            rows[row["path"].rpartition(".")[0]] if row["path"] else -1,
        )
        for row in graph["modules"]
    ]
