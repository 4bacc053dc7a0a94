"""The examination of a model in the drawer: offered, asked for, and shown the worst first."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage, introduce

WRONG = ("wrong", "loss", "cross_entropy takes logits, and gets a softmax", "return logits")
GOOD = ("good", "who trains", "an optimizer holds all 2 parameters to train", "")
HOSTILE = ("note", "<b>scale</b>", "<img src=x onerror=hacked=1>", "")
FOUND = (WRONG, HOSTILE, GOOD)


def examination(*rows: tuple[str, str, str, str], **changes: Any) -> dict[str, Any]:
    return {
        "v": 1,
        "type": "examination",
        "live": True,
        "step": 2 if rows else -1,
        "title": "1 wrong, 1 good" if rows else "",
        "rows": [list(row) for row in rows],
    } | changes


def drawer(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("region", name="Examination")


def opened(panel: PanelPage, *rows: tuple[str, str, str, str], **changes: Any) -> PanelPage:
    introduce(panel)
    panel.say(examination(*rows, **changes))
    panel.action("examination").click()
    return panel


def test_a_click_asks_for_it_and_says_what_becomes_of_it(panel: PanelPage) -> None:
    opened(panel)
    expect(drawer(panel)).to_contain_text("inputs of its next training call")
    panel.action("examine").click()
    asked = panel.wait_sent("examine")
    ticket = kernel.ticket(asked["id"], "applied", applied=5)
    panel.say(kernel.status_message(tickets=[ticket]))
    expect(drawer(panel)).to_contain_text("applied at step 5")


def test_findings_are_listed_as_text_with_what_to_try(panel: PanelPage) -> None:
    opened(panel, *FOUND)
    rows = drawer(panel).locator("li")
    expect(rows).to_have_count(3)
    expect(rows.first).to_have_text(
        "wrongloss: cross_entropy takes logits, and gets a softmaxtry: return logits"
    )
    expect(rows.nth(1)).to_contain_text("<img src=x onerror=hacked=1>")
    expect(drawer(panel)).to_contain_text("1 wrong, 1 good, at step 2")
    assert panel.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("live", [True, False])
def test_a_record_offers_what_it_has_and_asks_for_nothing(panel: PanelPage, live: bool) -> None:
    introduce(panel)
    panel.say(examination(live=live))
    expect(panel.action("examination")).to_be_visible(visible=live)
    panel.say(examination(GOOD, live=live))
    panel.action("examination").click()
    expect(panel.action("examine")).to_be_visible(visible=live)
