"""From an alert or a pinned step to the batch of the step: its samples, or how to get them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import alert_messages
from tests.browser import panel_messages as kernel
from tests.browser.alert_messages import alert, alerts_message
from tests.browser.history_messages import MUST, branched, history, way
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_arranged import LOSS, chart, drawn, pinned

STEP = 150
WHY = "loss_spike: the loss rose to 10.8"
JUMP = alert(1181, "loss_spike", ["(root)"], ["loss"], "the loss rose to 10.8")


def looks(*rows: tuple[str, int, str]) -> dict[str, Any]:
    kept = [
        {"module": module, "step": step, "nbytes": 4096, "why": why, "is_batch": why != ""}
        for module, step, why in rows
    ]
    return {"v": 1, "type": "looks", "looks": kept, "most": 64, "asked": [], "missed": []}


def shown(
    bare: PanelPage, *, live: bool = True, width: int = 1060, theme: str = "light"
) -> PanelPage:
    bare.show(width, theme)
    alert_messages.say_all(bare, live)
    return bare


KEPT = looks(("(root)", 40, WHY), ("(root)", 173, WHY))


def charted(bare: PanelPage, width: int = 1100, theme: str = "light") -> PanelPage:
    return drawn(bare, width, theme, charts=[chart(LOSS)])


def dialog(panel: PanelPage) -> Locator:
    return panel.root.get_by_role("dialog")


def asked_for(panel: PanelPage) -> Locator:
    """Open the dialog of a step of which nothing is kept."""
    pinned(panel, STEP).get_by_role("button", name=f"batch of step {STEP}").click()
    expect(dialog(panel).get_by_role("heading")).to_have_text(f"No samples of step {STEP} are kept")
    return dialog(panel)


def test_an_alert_whose_batch_is_kept_shows_it(bare: PanelPage) -> None:
    panel = shown(bare)
    panel.say(alerts_message([JUMP]))
    panel.action("alerts").click()
    link = panel.root.locator(".nbp-alert [data-action=batch]")
    expect(link).to_be_hidden()
    panel.say(looks(("(root)", 1180, WHY)))
    expect(link).to_have_text("batch of step 1\u202f180")
    link.click()
    wanted = panel.wait_sent("show_look")
    assert (wanted["module"], wanted["step"]) == ("(root)", 1180)


def test_a_look_that_a_user_took_is_no_batch_of_an_alert(bare: PanelPage) -> None:
    panel = shown(bare)
    panel.say(looks(("(root)", 1180, ""), ("blocks.2.attn", 1181, "")))
    panel.say(alerts_message([JUMP]))
    panel.action("alerts").click()
    expect(panel.root.locator(".nbp-alert [data-action=batch]")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_of_another_step_the_nearest_batches_are_a_click_away(bare: PanelPage, theme: str) -> None:
    panel = charted(bare, theme=theme)
    panel.say(KEPT)
    panel.say(history(50, 100, way=way()))
    box = asked_for(panel)
    expect(box).to_contain_text("The nearest that are kept: step 173 step 40")
    panel.picture(f"batch-{theme}")
    box.get_by_role("button", name="step 40").click()
    assert panel.wait_sent("show_look")["step"] == 40
    expect(dialog(panel)).to_have_count(0)


def test_a_rewound_run_pauses_before_the_step_and_looks_at_its_input(bare: PanelPage) -> None:
    panel = charted(bare)
    panel.say(history(50, 100, way=way()))
    box = asked_for(panel)
    box.get_by_role("button", name="Rewind to 100 and keep it").click()
    asked = panel.wait_sent("rewind")
    assert (asked["step"], asked["pause_at"], asked["preset"]) == (100, STEP, "")
    panel.say(kernel.status_message(state="paused", step=STEP))
    assert panel.sent("look") == [], "that is the line that is left"
    panel.say(branched(50, 100, fork=100))
    panel.say(kernel.status_message(state="paused", step=STEP))
    assert panel.wait_sent("look")["module"] == "(root)"
    assert panel.wait_sent("control")["action"] == "step"
    panel.say(kernel.status_message(state="paused", step=STEP))
    assert len(panel.sent("look")) == 1


def test_what_cannot_be_rewound_says_why(bare: PanelPage) -> None:
    panel = charted(bare)
    panel.say(history(50, 100, way=way(why_not=MUST)))
    button = asked_for(panel).locator("[data-action=rewind-batch]")
    expect(button).to_have_attribute("title", MUST)
    button.click(force=True)
    assert panel.sent("rewind") == []


def test_without_a_way_back_the_next_batch_is_offered(bare: PanelPage) -> None:
    panel = charted(bare)
    box = asked_for(panel)
    expect(box.locator("[data-action=rewind-batch]")).to_be_hidden()
    box.get_by_role("button", name="Keep the next batch").click()
    assert panel.wait_sent("look")["module"] == "(root)"


def test_an_opened_record_says_when_batches_are_kept_and_offers_nothing(bare: PanelPage) -> None:
    panel = charted(bare)
    panel.say({**kernel.model_message(), "live": False})
    box = asked_for(panel)
    expect(box).to_contain_text("Samples are kept where an alert reports a jump of the loss or NaN")
    expect(box.get_by_role("button")).to_have_count(0)
