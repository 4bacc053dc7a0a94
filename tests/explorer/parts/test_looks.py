"""The looks of a run are told to its views, which ask for those that they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.looks import LooksPart
from notebook_probe.run.attach.requests import LookAt


class Talk:
    def __init__(self, source: Any, controls: Any) -> None:
        self.session = PanelSession(source, controls)
        self.sent: list[tuple[Any, list[memoryview]]] = []
        self.says(type="hello", view="x")

    def says(self, **message: Any) -> None:
        self.session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]

    def is_told(self, kind: str) -> list[tuple[Any, list[memoryview]]]:
        before = len(self.sent)
        self.session.publish(
            lambda *message: self.sent.append(message), "pump", self.session.head()
        )
        return [one for one in self.sent[before:] if one[0]["type"] == kind]


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.Flatten(), nn.Linear(3 * 16, 2))


def train(model: nn.Module) -> torch.Tensor:
    images = torch.randn(4, 1, 6, 6)
    model(images).square().sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return images


def test_a_click_keeps_a_look_and_every_view_may_see_it(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        talk = Talk(run, run.controls)
        [(state, _)] = talk.is_told("looks")
        assert (state["looks"], state["asked"], state["missed"]) == ([], [], [])
        talk.says(type="look", id="x-1", module="0")
        images = train(model)
        train(model)
        [(state, _)] = talk.is_told("looks")
        [row] = state["looks"]
        assert (row["module"], row["step"]) == ("0", 0)
        assert talk.is_told("looks") == []
        show = {"type": "show_look", "view": "x", "module": "0", "step": 0}
        talk.says(**show, other=-1, sample=2)
        [(shown, [buffer])] = talk.is_told("shown_look")
        numbers = np.frombuffer(buffer, "<f4")
        blocks = {block["tensor"]: block for block in shown["blocks"]}
        assert {"input", "output", "grad_output", "weight", "grad", "update"} == set(blocks)
        block = blocks["input"]
        seen = numbers[block["offset"] :][: 6 * 6].reshape(6, 6)
        np.testing.assert_array_equal(seen, images[2, 0].numpy())
        assert block["facts"]["shape"] == (4, 1, 6, 6)
        assert talk.is_told("shown_look") == []


def test_two_looks_stand_beside_each_other(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        for _ in range(2):
            run.look("0")
            train(model)
        train(model)
        talk = Talk(run, run.controls)
        talk.says(type="show_look", view="x", module="0", step=1, other=0, sample=0)
        [(shown, [buffer])] = talk.is_told("shown_look")
        numbers = np.frombuffer(buffer, "<f4")
        block = next(block for block in shown["blocks"] if block["tensor"] == "weight")
        size = len(block["places"]) * block["height"] * block["width"]
        for offset, look in ((block["offset"], run.looks[1]), (block["other"], run.looks[0])):
            seen = numbers[offset : offset + size].reshape(3, 3, 3)
            np.testing.assert_array_equal(seen, look.data.weight[:, 0])
        assert block["facts"] != block["other_facts"]


def test_looks_of_an_opened_record_are_shown(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.look("2")
        train(model)
    talk = Talk(nbp.open_run(tmp_path / "run.zarr"), None)
    [(state, _)] = talk.is_told("looks")
    assert [row["module"] for row in state["looks"]] == ["2"]
    talk.says(type="show_look", view="x", module="2", step=0, other=-1, sample=0)
    [(shown, _)] = talk.is_told("shown_look")
    assert shown["error"] == ""


def test_a_look_that_is_being_written_is_shown_when_it_is_there(
    model: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.controls.put(LookAt("2", soon=True))
        train(model)
        run.controls.settle()
        part = LooksPart(run, run.controls)
        [row] = part.rows()
        asked: Any = {"v": 1, "type": "show_look", "view": "x", "module": "2", "sample": 0}
        wanted: Any = {**asked, "step": row["step"], "other": -1}
        run.flush()
        blobs = type(run).blobs
        monkeypatch.setattr(type(run), "blobs", property(lambda run: {}))  # not written yet
        part.hear(wanted)
        assert part.frames() == []
        monkeypatch.setattr(type(run), "blobs", blobs)
        [(shown, _)] = part.frames()
        assert shown["error"] == ""
        assert part.frames() == []


def test_a_look_that_a_user_waits_for_is_written_at_once(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        writer = run._parts.writer
        asked: list[str] = []
        writer.flush_soon = lambda: asked.append("soon")  # type: ignore[method-assign]
        run.controls.put(LookAt("2"))
        train(model)
        run.controls.settle()
        assert asked == []
        run.controls.put(LookAt("2", soon=True))
        train(model)
        run.controls.settle()
        assert asked == ["soon"]


def test_a_look_that_is_not_there_says_so(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        talk = Talk(run, run.controls)
        talk.says(type="show_look", view="x", module="nowhere", step=7, other=-1, sample=0)
        [(shown, buffers)] = talk.is_told("shown_look")
        assert (shown["blocks"], buffers) == ([], [])
        assert "not written yet" in shown["error"]
