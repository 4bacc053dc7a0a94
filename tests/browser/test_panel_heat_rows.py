"""Choose the rows of the heat map: all, those of what is marked, or folded as the tree is."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage


def choice(panel: PanelPage, value: str) -> Locator:
    return panel.page.locator(f"[name=nbp-heat-rows][value={value}]")


def test_rows_are_restricted_to_what_is_marked_and_back(panel: PanelPage) -> None:
    word = panel.page.locator("[data-role=rows]")
    expect(word).to_have_text("rows")
    panel.row("block").click()
    word.click()
    dialog = panel.page.get_by_role("dialog", name="Rows of the heat map")
    expect(dialog.locator("label").nth(1)).to_have_text("1 module marked, and those below them")
    expect(choice(panel, "tree")).to_be_disabled()
    panel.picture("heat-rows-880")
    choice(panel, "marked").check()
    assert panel.wait_sent("selection")["rows"] == ["block"]
    expect(word).to_have_text("rows: block")
    choice(panel, "all").check()
    assert panel.wait_sent("selection", 2)["rows"] == []
    expect(word).to_have_text("rows")


def test_rows_follow_the_folds_of_the_tree(panel: PanelPage) -> None:
    panel.row("block").locator(".nbp-fold").click()
    panel.page.locator("[data-role=rows]").click()
    choice(panel, "tree").check()
    assert panel.wait_sent("selection")["folds"] == ["block"]
    expect(panel.page.locator("[data-role=rows]")).to_have_text("rows: folded")
    panel.page.keyboard.press("Escape")
    panel.row("stem").locator(".nbp-fold").click()
    assert panel.wait_sent("selection", 2)["folds"] == ["block", "stem"]


def test_what_another_view_chose_is_shown_here_too(panel: PanelPage) -> None:
    panel.say(kernel.selection_message(home="grad_norm", rows=["stem", "head"]))
    expect(panel.page.locator("[data-role=rows]")).to_have_text("rows: 2 marked")
    panel.page.locator("[data-role=rows]").click()
    expect(choice(panel, "marked")).to_be_checked()
