"""An address is typed into the panel, sent once, and stays nowhere on the page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

ADDRESS = "slack://T0K3N-of-mine/channel"


def messages(*kinds: str, live: bool = True, **answer: str) -> dict[str, Any]:
    rows = [
        {"id": i, "kind": kind, "on": ["severe", "end"], "n_sent": i + 1, "problem": ""}
        for i, kind in enumerate(kinds)
    ]
    told = {"v": 1, "type": "messages", "live": live, "rows": rows}
    return {**told, "answered": "", "problem": "", **answer}


def shown(bare: PanelPage) -> PanelPage:
    bare.show(880)
    bare.say(kernel.model_message())
    bare.say(kernel.status_message())
    bare.say(messages())
    return bare


def send(panel: PanelPage) -> None:
    panel.page.get_by_role("button", name="Send messages", exact=True).click()


def field(panel: PanelPage) -> Locator:
    return panel.page.get_by_label("Address of a service")


def answer(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-messages-form [role=status]")


def typed(panel: PanelPage) -> str:
    """Type the address and send it; return its number."""
    panel.action("messages").click()
    field(panel).fill(ADDRESS)
    send(panel)
    return str(panel.wait_sent("notify")["id"])


def test_an_address_is_sent_once_and_gone_from_the_page(panel: PanelPage) -> None:
    expect(panel.action("messages")).to_have_text("get messages")
    id = typed(panel)
    assert panel.sent("notify") == [
        {
            "v": 1,
            "type": "notify",
            "id": id,
            "address": ADDRESS,
            "on": ["severe", "end", "stalled"],
        }
    ]
    expect(field(panel)).to_have_value("")
    expect(field(panel)).to_have_attribute("type", "password")
    assert ADDRESS not in panel.page.content()
    expect(answer(panel)).to_have_text("sent, waiting for the kernel")
    panel.say(messages("slack", answered=id))
    expect(answer(panel)).to_have_text("✓ messages are sent from now on")
    expect(panel.page.locator(".nbp-messages-rows code")).to_have_text("slack")
    expect(panel.action("messages")).to_have_text("messages by slack")


def test_a_refusal_says_why(panel: PanelPage) -> None:
    id = typed(panel)
    panel.say(messages(answered="another", problem="of another view"))
    expect(answer(panel)).to_have_text("sent, waiting for the kernel")
    panel.say(messages(answered=id, problem="notifications need apprise"))
    expect(answer(panel)).to_have_text("notifications need apprise")
    expect(answer(panel)).to_have_attribute("data-state", "refused")


def test_nothing_is_sent_without_an_address_or_an_occasion(panel: PanelPage) -> None:
    panel.action("messages").click()
    send(panel)
    expect(answer(panel)).to_have_text("type an address, such as slack://…")
    field(panel).fill(ADDRESS)
    for name in ("severe", "end", "stalled"):
        panel.page.locator(f".nbp-messages-form [data-occasion={name}]").uncheck()
    send(panel)
    expect(answer(panel)).to_have_text("choose an occasion")
    assert panel.sent("notify") == []


def test_what_is_typed_and_not_sent_is_gone_when_the_dialog_closes(panel: PanelPage) -> None:
    panel.action("messages").click()
    field(panel).fill(ADDRESS)
    panel.page.keyboard.press("Escape")
    panel.action("messages").click()
    expect(field(panel)).to_have_value("")


def test_messages_are_ended_in_their_row(panel: PanelPage) -> None:
    panel.say(messages("slack", "mailto"))
    panel.action("messages").click()
    panel.page.locator("[data-ends='1']").click()
    assert panel.wait_sent("notify_end")["which"] == 1
    panel.say(messages("slack"))
    expect(panel.page.locator(".nbp-messages-rows .nbp-rule-row")).to_have_count(1)


def test_a_run_that_is_over_offers_no_messages(panel: PanelPage) -> None:
    panel.say(messages(live=False))
    expect(panel.action("messages")).to_be_hidden()
