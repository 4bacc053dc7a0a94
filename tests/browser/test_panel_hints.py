"""Three hints in the first panel of a notebook: each can be closed, and nothing moves meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_page import PanelPage, introduce

NAMES = ["layer", "attach", "alerts"]


def hints(*names: str) -> dict[str, Any]:
    return {"v": 1, "type": "hints", "open": list(names)}


def bar(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("list", name="hints")


def hinted(bare: PanelPage, width: int) -> PanelPage:
    panel = introduce(bare.show(width))
    panel.say(hints(*NAMES))
    return panel


@pytest.mark.parametrize("width", [320, 640, 880, 1280])
def test_three_hints_are_seen_whole_at_every_width(bare: PanelPage, width: int) -> None:
    panel = hinted(bare, width)
    expect(bar(panel).locator("li")).to_have_count(3)
    for item in bar(panel).locator("li").all():
        expect(item).to_be_visible()
    assert panel.cut() == []


def test_a_closed_hint_is_reported_and_the_others_stay_where_they_are(bare: PanelPage) -> None:
    panel = hinted(bare, 880)
    last = bar(panel).locator("li").last
    before = last.bounding_box()
    bar(panel).locator("[data-hint=layer]").click()
    assert panel.wait_sent("close_hint")["name"] == "layer"
    expect(bar(panel).locator("li").first).to_be_hidden()
    assert last.bounding_box() == before
    expect(bar(panel).locator("[data-hint=attach]")).to_be_focused()


def test_the_bar_goes_with_the_last_hint(bare: PanelPage) -> None:
    panel = hinted(bare, 880)
    for name in NAMES:
        bar(panel).locator(f"[data-hint={name}]").press("Enter")
    expect(bar(panel)).to_be_hidden()
    expect(panel.page.locator(".nbp-panel")).to_be_focused()
    assert [panel.wait_sent("close_hint", k)["name"] for k in (1, 2, 3)] == NAMES


def test_another_view_learns_what_was_closed(bare: PanelPage) -> None:
    panel = hinted(bare, 880)
    panel.say(hints("alerts"))
    expect(bar(panel).locator("li").first).to_be_hidden()
    expect(bar(panel).locator("li").last).to_be_visible()
    panel.say(hints())
    expect(bar(panel)).to_be_hidden()


def test_without_a_message_there_is_no_bar(panel: PanelPage) -> None:
    expect(bar(panel)).to_be_hidden()
