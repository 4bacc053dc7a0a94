"""The panel in Jupyter's own front ends beside JupyterLab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.frontends.conftest import Serve
from tests.frontends.other_page import LOOP, NETWORK, PICTURES, attaches, panel_on, watch
from tests.frontends.servers import jupyter

pytestmark = pytest.mark.frontends

CELLS = [NETWORK, watch("other"), LOOP + "train()"]
RUN_ALL = {
    "notebook": "() => jupyterapp.commands.execute('notebook:run-all-cells')",
    "nbclassic": "() => Jupyter.notebook.execute_all_cells()",
}
READY = {
    "notebook": """() => {
      const panel = window.jupyterapp?.shell.currentWidget;
      return panel?.context?.isReady && panel.sessionContext?.session?.kernel?.status === "idle";
    }""",
    # Its widgets are asked for first, and every output that has one is rendered again when the
    # kernel has answered: what is shown before, ipywidgets 8.1 loses.
    "nbclassic": """() => {
      const kernel = window.Jupyter?.notebook?.kernel;
      if (!kernel?.is_connected() || !kernel.widget_manager) return false;
      return new Promise((answered) => {
        const callbacks = { shell: { reply: () => answered(true) } };
        kernel.send_shell_message("comm_info_request", {}, callbacks);
      });
    }""",
}


@pytest.mark.parametrize("kind", ["notebook", "nbclassic"])
def test_the_panel_is_live_and_attaches_while_a_cell_trains(
    serve: Serve, page: Page, kind: str
) -> None:
    page.goto(serve(jupyter, CELLS, kind).url)
    page.wait_for_function(READY[kind])
    page.evaluate(f"() => void ({RUN_ALL[kind]})()")
    panel = panel_on(page)
    attaches(panel)
    expect(panel.root).to_have_attribute("data-route", "own subshell")
    panel.notebook.screenshot(PICTURES / f"{kind}.png")
    saved = page.locator("img[src^='data:image/png']")  # since the pause
    saved.wait_for(state="attached")
    expect(saved).to_be_hidden()
    panel.press("stop")
    panel.wait_state("idle")
