"""Ticks in the drawer of alerts: the run pauses when one happens again, or on every severe one."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import alert_messages as gpt
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

LOGIT = "attention_logit_large"


def shown(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    gpt.say_all(bare)
    bare.say(breaks())
    bare.action("alerts").click()
    bare.page.locator(".nbp-consequences:visible").click()
    logit = bare.page.locator(f".nbp-alert[data-rule={LOGIT}]")
    logit.locator(".nbp-alert-text").click()
    return bare


def breaks(*on: tuple[int, str, bool], live: bool = True) -> dict[str, Any]:
    rows = [
        {
            "id": id,
            "kind": "alert",
            "text": f"alert {rule}",
            "number": None,
            "armed": armed,
            "pauses": False,
            "last_step": -1,
            "module": "(root)",
            "quantity": "",
            "sign": "",
            "rules": [rule],
            "note": "",
        }
        for id, rule, armed in on
    ]
    severe = [LOGIT, "loss_spike"]
    told = {"v": 1, "type": "breaks", "live": live, "rows": rows, "paused": None, "traceback": ""}
    return {**told, "severe": severe, "rules": [*severe, "dead_units"], "trial": None}


def again(panel: PanelPage) -> Locator:
    return panel.page.get_by_label("pause when it happens again")


def severe(panel: PanelPage) -> Locator:
    return panel.page.get_by_label("severe ones pause the run")


def test_a_tick_in_an_opened_alert_is_a_breakpoint_on_its_rule(panel: PanelPage) -> None:
    expect(again(panel)).not_to_be_checked()
    again(panel).check()
    asked = panel.wait_sent("break")
    assert (asked["kind"], asked["rules"], asked["before"]) == ("alert", [LOGIT], "step")
    panel.say(gpt.status_message(tickets=[kernel.ticket(asked["id"], "applied", 413)]))
    expect(again(panel)).to_be_checked()
    beside = panel.page.locator(f".nbp-pause-tick:has([data-pauses={LOGIT}]) .nbp-ticket")
    expect(beside).to_have_text("✓ armed at step 413")
    panel.say(breaks((3, LOGIT, True)))
    expect(again(panel)).to_be_checked()
    again(panel).uncheck()
    asked = panel.wait_sent("edit_break")
    assert (asked["which"], asked["armed"], asked["number"]) == (3, False, None)
    panel.say(breaks((3, LOGIT, False)))
    again(panel).check()
    assert panel.wait_sent("edit_break", 2)["armed"] is True
    assert len(panel.sent("break")) == 1


def test_one_tick_has_every_severe_one_pause_and_stands_for_its_rules_too(
    panel: PanelPage,
) -> None:
    severe(panel).check()
    asked = panel.wait_sent("break")
    assert (asked["kind"], asked["rules"]) == ("alert", [])
    panel.say(breaks((1, "severe", True)))
    expect(again(panel)).to_be_checked()
    expect(again(panel)).to_have_attribute("aria-disabled", "true")
    expect(panel.page.get_by_title("every severe alert pauses the run")).to_be_visible()
    again(panel).click(force=True)
    expect(again(panel)).to_be_checked()
    assert len(panel.sent("break")) == 1
    panel.say(breaks((1, "severe", False)))
    expect(severe(panel)).not_to_be_checked()
    expect(again(panel)).not_to_be_checked()


def test_what_is_refused_is_taken_back_and_says_why(panel: PanelPage) -> None:
    again(panel).check()
    id = panel.wait_sent("break")["id"]
    refused = kernel.ticket(id, "refused", text="no alert rule of this name")
    panel.say(gpt.status_message(tickets=[refused]))
    expect(again(panel)).not_to_be_checked()
    expect(panel.page.get_by_text("no alert rule of this name")).to_be_visible()


def test_without_a_kernel_nothing_can_pause(panel: PanelPage) -> None:
    panel.say({**kernel.model_message(gpt.MODULES, live=False)})
    panel.say(breaks(live=False))
    for tick in (again(panel), severe(panel)):
        expect(tick).to_have_attribute("aria-disabled", "true")
        tick.click(force=True)
        expect(tick).not_to_be_checked()
    expect(panel.page.get_by_title("needs a kernel")).to_have_count(2)
    assert panel.sent("break") == []


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_worth_a_look(bare: PanelPage, width: int, theme: str) -> None:
    panel = shown(bare, width, theme)
    panel.say(breaks((3, LOGIT, True)))
    panel.picture(f"alert-pauses-{width}-{theme}")
    assert not panel.root.evaluate("(node) => node.scrollWidth > node.clientWidth + 1")
