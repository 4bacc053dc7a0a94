"""The panel on a page that is not JupyterLab's, and the small network that it watches."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import Notebook

__all__ = ["LOOP", "MODEL", "NETWORK", "PICTURES", "attaches", "panel_on", "watch"]

NETWORK, LOOP = MODEL.split("def train", 1)
LOOP = "def train" + LOOP


class OtherPage(Notebook):
    """As much of a notebook as a panel's verbs need: its page, as one cell."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def locate(self, cell: int) -> Locator:
        return self.page.locator("body")


def panel_on(page: Page) -> Panel:
    """The panel of a page, once it is there."""
    return Panel(OtherPage(page), 0)


def attaches(panel: Panel) -> None:
    """Attach something by clicks, see its values, pause and go on, all while the cell trains."""
    panel.wait_state("training")
    panel.wait_step(20)
    folded = panel.button("modules")  # a narrow panel has the tree behind it
    if folded.is_visible():
        folded.click()
    panel.attach("0", "input_std", "every(2)")
    panel.wait_attached()
    panel.wait_points("0 · input_std", 5)
    panel.press("pause")
    panel.wait_state("paused")
    step = panel.step
    panel.press("resume")
    panel.wait_step(step + 5)
    expect(panel.problems).to_be_hidden()
