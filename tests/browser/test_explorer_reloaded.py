"""A page that is loaded again in the midst of a blocking cell: the panel is back before it ends."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

TRAINING = """
try:
    train()
except KeyboardInterrupt:
    pass  # an error would end the cells that wait, too
"""
SETTINGS = "@jupyterlab/apputils-extension:kernels-settings"


@pytest.mark.parametrize("comms_over_subshells", ["perCommTarget", "disabled"])
def test_the_panel_is_live_again_while_the_cell_still_trains(
    lab: LabServer, open_notebook: OpenNotebook, comms_over_subshells: str
) -> None:
    lab.set(SETTINGS, commsOverSubshells=comms_over_subshells)
    notebook = open_notebook([MODEL, watch("reloaded"), TRAINING, "print(run.status().step)"])
    notebook.run(0, 1)
    panel = Panel(notebook, 1)
    notebook.start(2)
    panel.wait_step(20)
    notebook.save()
    notebook.reload(connected=False)
    again = Panel(notebook, 1)
    again.wait_state("training")
    again.wait_step(panel.step + 10)
    again.attach("0", "input_std", "every(2)")
    again.wait_attached()
    again.wait_points("0 · input_std", 5)
    expect(again.problems).to_be_hidden()
    notebook.screenshot(PICTURES / f"reloaded_{comms_over_subshells}.png")
    again.press("stop")
    again.wait_state("idle")
    notebook.wait_connected()
    notebook.run(3)
    assert int(notebook.text(3)) >= again.step - 1


BLIND = """
from notebook_probe.explorer.notebooks import jupyter
from notebook_probe.explorer.notebooks.way import MessageWay

jupyter._choose = lambda kernel: MessageWay("after the cell")
"""


def test_where_nothing_is_answered_before_the_cell_ends_the_page_says_so(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook([BLIND, MODEL, watch("blind"), TRAINING])
    notebook.run(0, 1, 2)
    said = notebook.locate(2).get_by_text("is back when the running cell ends")
    expect(Panel(notebook, 2).root).to_be_visible()
    expect(said).to_be_hidden()
    notebook.start(3)
    notebook.save()
    notebook.reload(connected=False)
    expect(notebook.locate(2)).to_contain_text("Loading widget")
    expect(said).to_be_visible()
    notebook.screenshot(PICTURES / "reloaded_blind.png")
    notebook.interrupt()
    notebook.wait_connected()
    expect(Panel(notebook, 2).root).to_be_visible()
    expect(said).to_be_hidden()
