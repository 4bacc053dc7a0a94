"""The panel beside the notebook in JupyterLab: in sight while other cells run, and back again."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import OpenNotebook


def test_a_docked_panel_goes_on_beside_the_notebook_and_comes_back(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook([MODEL, watch("docked"), "train()", *["print()\n" * 9] * 9])
    notebook.run(0, 1)
    panel = Panel(notebook, 1)
    notebook.start(2)
    panel.wait_step(3)
    panel.press("dock")
    beside = notebook.page.locator(".nbp-docked .nbp-panel")
    expect(beside).to_have_attribute("data-place", "docked")
    expect(panel.root).to_have_attribute("data-place", "away")
    expect(panel.root.locator(".nbp-away")).to_be_visible()
    expect(panel.heat.canvas).to_be_hidden()
    expect(beside.locator("canvas.nbp-lines")).to_have_attribute("data-points", re.compile(r"\d"))
    box, left = beside.bounding_box(), notebook.page.locator(".jp-NotebookPanel").bounding_box()
    assert box is not None
    assert left is not None
    assert box["x"] >= left["x"] + left["width"], "it stands right of the notebook"
    assert box["width"] > 300
    notebook.page.evaluate("() => notebookPanel().content.scrollToItem(11)")
    expect(beside).to_be_in_viewport()
    notebook.screenshot(PICTURES / "docked.png")
    beside.locator("[data-action=dock]").click()
    expect(beside).to_have_count(0)
    expect(panel.root).to_have_attribute("data-place", "here")
    panel.show()
    expect(panel.heat.canvas).to_be_visible()
    notebook.interrupt()
