"""The Explorer among a user's own widgets, linked with them by its traits."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.explorer_page import MODEL, PICTURES, Panel
from tests.browser.lab import OpenNotebook

BOX = """
import ipywidgets

run = nbp.watch(model, optimizer, store="runs/embedded.zarr")
explorer = run.explore()
at = ipywidgets.IntText(description="step")
home = ipywidgets.Label()
ipywidgets.link((explorer, "step"), (at, "value"))
ipywidgets.dlink((explorer, "home"), (home, "value"))
ipywidgets.VBox([ipywidgets.HBox([at, home]), explorer])
"""
TAB = "ipywidgets.Tab([ipywidgets.Label('first'), run.explorer], titles=['mine', 'network'])"
CELLS = [MODEL, BOX, "train()", "explorer.home = 'weight_norm'", "at.value = 7", TAB]


def test_the_panel_stands_in_a_box_and_is_linked_with_other_widgets(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook(CELLS)
    notebook.run(0, 1)
    cell = notebook.locate(1)
    panel = Panel(notebook, 1, within=".widget-vbox")
    expect(cell.locator(".nbp-panel").locator("visible=true")).to_have_count(1)

    notebook.start(2)
    panel.wait_state("training")
    panel.wait_step(30)
    panel.heat.wait_axis("high >= 30")
    at, home = cell.locator(".widget-text input"), cell.locator(".widget-label").last
    expect(home).to_have_text("update_ratio")
    panel.heat.hover(0.5, 0.5)
    expect(at).not_to_have_value("0")  # while the cell runs
    panel.compare("grad_norm")
    expect(home).to_have_text("grad_norm")
    notebook.screenshot(PICTURES / "embedded.png")
    panel.press("stop")
    notebook.wait_finished(2)

    notebook.run(3)
    expect(panel.heat.canvas).to_have_attribute("data-quantity", "weight_norm")
    notebook.page.mouse.move(0, 0)
    notebook.run(4)
    panel.show()
    expect(panel.root.locator(".nbp-plot:has(canvas.nbp-heat) .nbp-cursor")).to_be_visible()
    notebook.run(5)
    notebook.locate(5).get_by_role("tab", name="network").click()
    tabbed = Panel(notebook, 5)
    expect(tabbed.heat.canvas).to_have_attribute("data-quantity", "weight_norm")
    notebook.screenshot(PICTURES / "embedded_tab.png")
