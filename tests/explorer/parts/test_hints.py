"""Hints are for the first panel of a process, and one that is closed is closed permanently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.explorer.parse import MessageError, parse
from notebook_probe.explorer.parts import hints
from notebook_probe.explorer.parts.hints import FILE_NAME, ClosedHints, HintsPart
from notebook_probe.home import HOME
from tests.explorer.panel_of_run import PanelOfRun
from tests.models import made, mlp
from tests.run.conftest import Watch, watch

__all__ = ["watch"]

ALL = ["layer", "attach", "alerts"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, of a process that has shown no panel."""
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    monkeypatch.setattr(hints, "closed_hints", ClosedHints())
    return tmp_path / "home"


@pytest.fixture
def run(watch: Watch) -> Iterator[nbp.Run]:
    model = made(mlp)
    yield watch(model, probes=None, name="first")
    del model


def test_the_first_panel_has_all_hints_until_they_are_closed(folder: Path, run: nbp.Run) -> None:
    panel = PanelOfRun(run, "hints")
    assert panel.state()["open"] == ALL
    panel.hear(type="close_hint", name="attach")
    assert panel.state()["open"] == ["layer", "alerts"]
    assert json.loads((folder / FILE_NAME).read_text()) == ["attach"]


def test_a_hint_stays_closed_in_another_process(folder: Path, run: nbp.Run) -> None:
    ClosedHints().close("layer")
    ClosedHints().close("alerts")
    assert PanelOfRun(run, "hints").state()["open"] == ["attach"]


def test_the_panel_of_another_run_has_none(folder: Path, run: nbp.Run, watch: Watch) -> None:
    assert PanelOfRun(run, "hints").state()["open"] == ALL
    model = made(mlp)
    second = watch(model, probes=None, name="second")
    PanelOfRun(second, "status").state()
    assert "hints" not in [one["type"] for one in PanelOfRun(second, "status").sent]


def test_an_opened_record_and_a_training_that_has_ended_have_none(
    folder: Path, run: nbp.Run
) -> None:
    panel = PanelOfRun(run, "hints")
    run.close()
    assert panel.state()["open"] == []
    part = HintsPart(nbp.open_run(Path(run.location)), None)
    assert part.state(None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["", "{", "3", '{"closed": "layer"}', "[[[[", '["other", 3, null]']
)
def test_a_damaged_file_closes_nothing(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / FILE_NAME).write_text(text)
    assert ClosedHints().open_ones() == ALL


def test_where_nothing_can_be_written_a_hint_is_closed_in_this_process(folder: Path) -> None:
    folder.write_text("a file where the folder would be")
    closed = ClosedHints()
    closed.close("layer")
    assert closed.open_ones() == ["attach", "alerts"]


def test_a_hint_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MessageError, match="name"):
        parse({"v": 1, "type": "close_hint", "name": "../../x"})
