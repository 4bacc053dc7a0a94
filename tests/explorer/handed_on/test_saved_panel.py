"""When the panel is left in a notebook, and where."""

from __future__ import annotations

import re

import pytest

from notebook_probe.explorer import Panel
from notebook_probe.explorer.save import saved_picture
from tests.explorer.fakes import FakeControls, FakeStream
from tests.explorer.handed_on.unpacked import unpacked
from tests.explorer.test_explorer import (
    Notebook,
    notebook,
    source_with_rows,
    wait_for_pictures,
)

__all__ = ["notebook"]  # the fixture


def package(bundle: dict[str, str]) -> str:
    [found] = re.findall(r'openPackage\("([^"]+)", el\)', bundle["text/html"])
    return str(found)


def test_the_end_of_a_cell_leaves_it_once_in_the_notebook_and_with_the_views(
    notebook: Notebook,
) -> None:
    source = source_with_rows()
    with Panel(source, FakeControls()) as panel:
        explorer = panel.show()
        notebook.ends_cell()
        [bundle] = notebook.panels
        assert package(bundle) == explorer._saved
        assert f'has("{explorer.model_id}")' in bundle["text/html"], "it knows its widget"
        notebook.ends_cell()
        assert len(notebook.panels) == 1
        [stream] = source.streams.values()
        assert isinstance(stream, FakeStream)
        stream.append([20], grad_norm=2.0)
        notebook.ends_cell()
        assert len(notebook.panels) == 2
        cells = unpacked(package(notebook.panels[-1])).frames["heat", "grad_norm"]
        assert cells.message["last_step"] == 20


def test_a_run_that_ends_without_another_step_says_so(notebook: Notebook) -> None:
    controls = FakeControls()
    panel = Panel(source_with_rows(), controls)
    explorer = panel.show()
    notebook.ends_cell()
    assert unpacked(explorer._saved).said("status")["state"] == "training"
    assert panel._refresher is not None
    panel._refresher.close()
    controls.state = "finished"
    panel.refresh()
    wait_for_pictures(panel)
    assert unpacked(explorer._saved).said("status")["state"] == "finished"
    assert len(notebook.panels) == 2
    panel.close()


def test_while_training_runs_the_views_alone_get_it_every_minute(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = Panel(source_with_rows(), FakeControls())
    explorer = panel.show()
    assert panel._refresher is not None
    panel._refresher.close()
    panel.refresh()
    assert explorer._saved == ""
    monkeypatch.setattr(saved_picture, "EVERY_S", -1.0)
    panel.refresh()
    wait_for_pictures(panel)
    assert unpacked(explorer._saved).said("saved")["place"] == "notebook"
    assert notebook.panels == []
    panel.close()
