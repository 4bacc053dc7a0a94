"""The graph is built by a click, told of, and sent to a view that asks for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.parts.graph import NetworkGraph
from tests.explorer.parts.test_looks import Talk


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def train(model: nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(3, 4)).square().sum().backward()
    optimizer.step()


def told(talk: Talk) -> Any:
    [(state, _)] = talk.is_told("graph")
    return state


@pytest.mark.slow
def test_a_click_builds_the_graph_which_is_sent_once_to_who_asks(
    model: nn.Module, tmp_path: Path
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        talk = Talk(run, run.controls)
        state = told(talk)
        assert state["revision"] == 0
        assert "not built yet" in state["why"]
        talk.says(type="show_graph", view="x")
        assert talk.is_told("shown_graph") == []
        talk.says(type="build_graph", id="x-1")
        for _ in range(4):
            train(model)
        state = told(talk)
        assert state["revision"] > 0
        assert state["why"] == ""
        assert talk.is_told("graph") == []
        talk.says(type="show_graph", view="x")
        [(shown, _)] = talk.is_told("shown_graph")
        assert shown["revision"] == state["revision"]
        assert shown["how"] == "exported"
        operators = [
            (op, module) for _, kind, op, module, *_ in shown["nodes"] if kind == "operator"
        ]
        assert operators == [("linear", "0"), ("relu", "1"), ("linear", "2")]
        assert ("0", "Linear", 40, 1) in shown["modules"]
        assert talk.is_told("shown_graph") == []


def test_a_graph_that_is_built_again_has_another_number(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.graph(torch.randn(3, 4))
        talk = Talk(run, run.controls)
        first = told(talk)["revision"]
        run.graph(torch.randn(5, 4))
        assert told(talk)["revision"] > first
        talk.says(type="show_graph", view="x")
        [(shown, _)] = talk.is_told("shown_graph")
        assert [one[4] for one in shown["nodes"] if one[1] == "output"] == [(5, 2)]


def test_an_opened_record_shows_the_graph_it_keeps_or_says_that_it_has_none(
    model: nn.Module, tmp_path: Path
) -> None:
    for name, builds in (("with", True), ("without", False)):
        with nbp.watch(model, store=tmp_path / f"{name}.zarr", probes=None) as run:
            if builds:
                run.graph(torch.randn(3, 4))
            train(model)
    talk = Talk(nbp.open_run(tmp_path / "with.zarr"), None)
    assert told(talk)["revision"] > 0
    talk.says(type="show_graph", view="x")
    [(shown, _)] = talk.is_told("shown_graph")
    assert shown["why"] == ""
    state = told(Talk(nbp.open_run(tmp_path / "without.zarr"), None))
    assert state["revision"] == 0
    assert state["why"].startswith("This record has no graph")


def test_a_damaged_graph_is_told_of_and_the_panel_goes_on(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.graph(torch.randn(3, 4))
        [event] = [one for one in run.events if one.kind == "model_graph"]
        damaged = [replace(event, detail='{"graph": {"version": 7}}')]
    part = NetworkGraph(SimpleNamespace(events=damaged), None)
    part.state(None)  # type: ignore[arg-type]
    part.hear({"v": 1, "type": "show_graph", "view": "x"})
    [(shown, _)] = part.frames()
    assert "version is 7" in shown["error"]
