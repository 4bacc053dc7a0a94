"""The panel in marimo, whose kernel has one thread and runs a cell again when another changes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.frontends.conftest import Serve
from tests.frontends.other_page import LOOP, NETWORK, PICTURES, attaches, panel_on, watch
from tests.frontends.servers import marimo

pytestmark = pytest.mark.frontends

WATCH = watch("marimo")
BLOCKING = [NETWORK, WATCH, LOOP + "train()"]
BACKGROUND = [NETWORK, WATCH, LOOP + "run.train_in_background(train)"]


@pytest.mark.parametrize(("mode", "theme"), [("edit", "light"), ("run", "dark")])
def test_the_panel_is_live_and_its_clicks_act_while_a_cell_trains(
    serve: Serve, page: Page, mode: str, theme: str
) -> None:
    page.goto(serve(marimo, BLOCKING, mode, theme).url)
    panel = panel_on(page)
    attaches(panel)
    expect(panel.root).to_have_attribute("data-route", "pump")
    expect(panel.root).to_have_css("color-scheme", theme)
    panel.show()
    panel.notebook.screenshot(PICTURES / f"marimo_{mode}_{theme}.png")
    panel.press("stop")
    panel.wait_state("idle")


def test_a_cell_that_runs_again_shows_a_panel_that_is_live(serve: Serve, page: Page) -> None:
    page.goto(serve(marimo, BLOCKING).url)
    panel = panel_on(page)
    panel.wait_step(20)
    panel.press("stop")
    panel.wait_state("idle")
    run_cell(page, 1)  # and with it the cell that trains
    attaches(panel_on(page))
    expect(page.locator(".nbp-panel")).to_have_count(1)
    panel.press("stop")
    panel.wait_state("idle")


def test_a_page_that_is_loaded_again_has_its_panel_while_the_cell_still_trains(
    serve: Serve, page: Page
) -> None:
    page.goto(serve(marimo, BLOCKING).url)
    panel_on(page).wait_step(20)
    page.reload()
    attaches(panel_on(page))


def test_what_trains_in_the_background_is_steered_with_no_cell_running(
    serve: Serve, page: Page
) -> None:
    page.goto(serve(marimo, BACKGROUND).url)
    attaches(panel_on(page))
    expect(page.get_by_test_id("interrupt-button")).to_have_class(re.compile("inactive-button"))


def run_cell(page: Page, cell: int) -> None:
    """Run a cell of marimo's editor, and all that depends on it."""
    button = page.locator(".marimo-cell").nth(cell).get_by_test_id("run-button").first
    button.dispatch_event("click")  # seen only while the pointer is over the cell
