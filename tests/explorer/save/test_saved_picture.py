"""When the static picture is taken, and that it shows what the panel shows."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest

from notebook_probe.explorer import Panel
from notebook_probe.explorer.save import saved_picture
from notebook_probe.run.health.status import State
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream
from tests.explorer.test_explorer import (
    Notebook,
    notebook,
    source_with_rows,
    wait_for_pictures,
)

__all__ = ["notebook"]  # the fixture


def is_png(bundle: dict[str, str]) -> bool:
    return base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG\r\n")


def test_the_end_of_a_cell_leaves_a_picture_once(notebook: Notebook) -> None:
    source = source_with_rows()
    with Panel(source, FakeControls()) as panel:
        panel.show()
        notebook.ends_cell()
        [picture] = notebook.updated
        assert is_png(picture)
        notebook.ends_cell()
        assert len(notebook.updated) == 1, "nothing new, no new picture"
        [stream] = source.streams.values()
        assert isinstance(stream, FakeStream)
        stream.append([20], grad_norm=2.0)
        notebook.ends_cell()
        assert len(notebook.updated) == 2


def test_nothing_recorded_leaves_no_picture(notebook: Notebook) -> None:
    with Panel(FakeSource(FakeStream("s", ["a"], ["norm"])), FakeControls()) as panel:
        panel.show()
        notebook.ends_cell()
    assert notebook.updated == []


def test_closing_leaves_the_last_picture(notebook: Notebook) -> None:
    panel = Panel(source_with_rows(), FakeControls())
    panel.show()
    panel.close()
    assert len(notebook.updated) == 1
    panel.close()
    assert len(notebook.updated) == 1


@pytest.mark.parametrize("state", ["paused", "idle", "failed", "finished"])
def test_training_that_rests_leaves_a_picture_for_the_notebook_and_for_the_views(
    notebook: Notebook, state: State
) -> None:
    controls = FakeControls()
    panel = Panel(source_with_rows(), controls)
    explorer = panel.show()
    assert explorer._own_id == explorer.model_id
    assert panel._refresher is not None
    panel._refresher.close()
    panel.refresh()
    assert notebook.updated == []
    controls.state = state
    panel.refresh()
    panel.refresh()
    wait_for_pictures(panel)
    [picture] = notebook.updated
    assert explorer._picture == picture["image/png"]
    panel.close()


def test_training_leaves_a_picture_every_minute(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Panel(source_with_rows(), FakeControls())
    panel.show()
    assert panel._refresher is not None
    panel._refresher.close()
    panel.refresh()
    assert notebook.updated == []
    monkeypatch.setattr(saved_picture, "EVERY_S", -1.0)
    panel.refresh()
    wait_for_pictures(panel)
    assert len(notebook.updated) == 1
    panel.close()


def test_a_click_is_told_of_while_a_picture_is_drawn(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def drawn(*_: object) -> bytes:
        begun.set()
        assert may_end.wait(timeout=60)
        return b"a picture"

    monkeypatch.setattr(saved_picture, "picture", drawn)
    controls = FakeControls()
    panel = Panel(source_with_rows(), controls)
    explorer = panel.show()
    assert panel._refresher is not None
    panel._refresher.close()
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(explorer, "send", lambda content, buffers=None: sent.append(content))
    monkeypatch.setattr(saved_picture, "EVERY_S", -1.0)
    panel.refresh()
    assert begun.wait(timeout=60)
    monkeypatch.setattr(saved_picture, "EVERY_S", 60.0)
    panel.receive({"v": 1, "type": "hello", "view": "one"})
    panel.receive({"v": 1, "type": "control", "id": "one-1", "action": "pause"})
    [ticket] = controls.tickets
    ticket.state, ticket.applied_step = "applied", 7
    panel.refresh()
    told = [one["state"] for one in sent if one["type"] == "ticket"]
    assert told == ["queued", "applied"]
    assert notebook.updated == []
    may_end.set()
    wait_for_pictures(panel)
    assert len(notebook.updated) == 1
    panel.close()


def test_cells_that_end_while_training_runs_in_the_background_do_not_wait_for_pictures(
    notebook: Notebook,
) -> None:
    source, controls = source_with_rows(), FakeControls()
    controls.background = True
    with Panel(source, controls) as panel:
        panel.show()
        notebook.ends_cell()
        assert len(notebook.updated) == 1, "the first one"
        [stream] = source.streams.values()
        assert isinstance(stream, FakeStream)
        stream.append([20], grad_norm=2.0)
        notebook.ends_cell()
        assert len(notebook.updated) == 1


def test_a_panel_that_is_not_shown_leaves_no_picture(notebook: Notebook) -> None:
    panel = Panel(source_with_rows())
    panel.refresh()
    panel.close()
    assert notebook.updated == []
