"""The panel on a Voilà page, which by default shows nothing before all cells have ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.lab import PATIENCE_S
from tests.frontends.conftest import Serve
from tests.frontends.other_page import LOOP, NETWORK, PICTURES, attaches, panel_on, watch
from tests.frontends.servers import voila

pytestmark = pytest.mark.frontends

WATCH = watch("voila")


@pytest.fixture
def voila_page(browser: Browser) -> Iterator[Page]:
    """Voilà's own page asks for a font from elsewhere, which the browser does not find."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


def test_with_progressive_rendering_the_panel_is_live_while_the_cells_run(
    serve: Serve, voila_page: Page
) -> None:
    cells = [NETWORK, WATCH, LOOP + "train()"]
    voila_page.goto(serve(voila, cells, "--progressive_rendering=True").url)
    panel = panel_on(voila_page)
    attaches(panel)
    panel.notebook.screenshot(PICTURES / "voila.png")
    panel.press("stop")
    panel.wait_state("idle")


def test_without_it_what_trains_in_the_background_is_live(serve: Serve, voila_page: Page) -> None:
    cells = [NETWORK, WATCH, LOOP + "run.train_in_background(train)"]
    voila_page.goto(serve(voila, cells).url)
    attaches(panel_on(voila_page))


def test_without_it_the_page_waits_for_a_cell_that_trains(serve: Serve, voila_page: Page) -> None:
    cells = [NETWORK, WATCH, LOOP + "train(300)"]
    voila_page.goto(serve(voila, cells).url, wait_until="commit")
    expect(voila_page.locator("#loading_text")).to_have_text("Executing 3 of 3")
    expect(voila_page.locator(".nbp-panel")).to_have_count(0)
    panel = panel_on(voila_page)
    panel.wait_state("idle")
    panel.wait_step(300)
