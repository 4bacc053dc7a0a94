"""A press outside of an open dialog closes it and still reaches the button below the pointer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_presses import WATCH, filled, press

OPENERS = ("line-options", "probes", "saved-views")


@pytest.mark.slow
@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("height", [420, 900])
def test_a_button_of_the_foot_is_pressed_though_a_dialog_is_open(
    bare: PanelPage, opener: str, height: int
) -> None:
    """In a low window the button that has opened the dialog may be out of sight."""
    panel = filled(bare, 1060)
    panel.page.set_viewport_size({"width": 1092, "height": height})
    panel.action(opener).first.click()
    expect(panel.page.get_by_role("dialog")).to_be_visible()
    panel.page.evaluate(WATCH)
    panel.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    panel.wait_frame()
    picture = panel.root.get_by_role("button", name="Picture ↓").element_handle()
    assert picture is not None
    assert press(panel, picture) == ""
    expect(panel.root.locator("[data-export=png]")).to_be_visible()
    bare.forget()  # what watches the whole document
