"""The learning rate in the bar: a dialog that opens at it, sets it, and goes away again."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage


def group(text: str, scheduled: float | None = None, held: bool = False) -> dict[str, Any]:
    return {"text": text, "scheduled": scheduled, "held": held}


def rate(*values: float, **changes: Any) -> dict[str, Any]:
    """A learning rate with a group for each value."""
    texts = ["7 weights, decay 0.1", "13 biases and norms", "1 weight"]
    row = {
        "name": "lr",
        "value": values[0] if len({*values}) == 1 else None,
        "low": 0.0,
        "high": None,
        "log": True,
        "groups": [*values],
        "of": f"AdamW, {len(values)} groups",
        "details": [group(text) for text in texts[: len(values)]],
    }
    return {**row, **changes}


NO_GROUPS: dict[str, Any] = {"groups": [], "of": "", "details": []}
LR = rate(0.003)
DROPOUT = {"name": "dropout", "value": 0.2, "low": 0.0, "high": 0.9, "log": False, **NO_GROUPS}
HEAT = {"name": "temperature", "value": 1.0, "low": 0.1, "high": 10.0, "log": True, **NO_GROUPS}
DECAY = {**LR, "name": "weight_decay", "value": 0.1, "details": []}


def knobs(*rows: Any, hint: Any = None, last: Any = None) -> dict[str, Any]:
    return {"v": 1, "type": "knobs", "knobs": list(rows), "hint": hint, "last": last}


def shown(bare: PanelPage) -> PanelPage:
    return shown_with(bare, knobs(DROPOUT, LR))


def shown_with(bare: PanelPage, message: Any, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    bare.say(kernel.model_message())
    bare.say(kernel.status_message())
    bare.say(message)
    return bare


def opened(panel: PanelPage) -> Locator:
    panel.action("knobs").click()
    return panel.page.get_by_role("dialog")


def field(panel: PanelPage, name: str = "lr") -> Locator:
    return panel.page.locator(f"[data-knob={name}]")


def test_the_rate_stands_in_the_bar_and_opens_all_that_can_be_set(panel: PanelPage) -> None:
    button = panel.action("knobs")
    expect(button).to_have_text("lr 3e−3")
    panel.say(knobs(DROPOUT, LR, DECAY))
    dialog = opened(panel)
    expect(dialog).to_have_attribute("aria-label", "Learning rate")
    expect(dialog.locator("header")).to_have_text("Learning rateAdamW, 1 groups")
    expect(dialog.locator(".nbp-knob-name:visible")).to_have_text(["dropout"])
    dialog.locator("summary").click()
    expect(dialog.locator(".nbp-knob-name:visible")).to_have_text(["dropout", "weight_decay"])
    panel.say(knobs())
    expect(button).to_be_hidden()


def test_an_exact_value_is_asked_for_and_its_ticket_stands_beside_it(panel: PanelPage) -> None:
    ticket = opened(panel).locator("footer .nbp-ticket")
    for wrong in ("fast", "-1", "0"):
        field(panel).fill(wrong)
        field(panel).press("Enter")
        expect(ticket).to_have_text("The learning rate must be positive")
    assert panel.sent("set") == []
    field(panel).fill("1e-4")
    expect(ticket).to_have_text("")
    field(panel).press("Enter")
    asked = panel.wait_sent("set")
    assert (asked["name"], asked["value"], asked["group"]) == ("lr", 1e-4, None)
    assert asked["hold"] is False
    panel.say(kernel.status_message(tickets=[kernel.ticket(asked["id"], "queued")]))
    expect(ticket).to_have_text("queued 1\u202f236")
    panel.say(kernel.status_message(tickets=[kernel.ticket(asked["id"], "applied", 413)]))
    panel.say(knobs(DROPOUT, {**LR, "value": 1e-4, "groups": [1e-4]}))
    expect(ticket).to_have_text("✓ queued 1\u202f236, applied at step 413")
    expect(panel.action("knobs")).to_have_text("lr 1e−4")
    expect(field(panel)).to_have_value("1e-4")


def test_a_refusal_of_the_run_stands_there_in_its_words(panel: PanelPage) -> None:
    ticket = opened(panel).locator("footer .nbp-ticket")
    field(panel).fill("1")
    field(panel).press("Enter")
    why = "lr=1: the schedule of group 0 is at 0 now"
    row = kernel.ticket(panel.wait_sent("set")["id"], "refused", text=why)
    panel.say(kernel.status_message(tickets=[row]))
    expect(ticket).to_have_text(why)
    expect(field(panel)).to_have_value("1")


def test_factors_are_of_the_value_as_it_is_now_and_wait_for_the_button(panel: PanelPage) -> None:
    dialog = opened(panel)
    dialog.locator("[data-factor='÷ 10']").click()
    dialog.locator("[data-factor='× 3']").click()
    expect(field(panel)).to_have_value("9e-4")
    assert panel.sent("set") == []
    panel.action("set-rate").click()
    assert panel.wait_sent("set")["value"] == pytest.approx(9e-4)


def test_the_slider_counts_in_factors_and_arrows_move_it_by_2_or_10_per_cent(
    panel: PanelPage,
) -> None:
    slider = opened(panel).get_by_role("slider", name="Learning rate")
    expect(slider).to_have_attribute("aria-valuemin", "0.00001")
    expect(slider).to_have_attribute("aria-valuemax", "0.1")
    slider.focus()
    slider.press("ArrowRight")
    expect(field(panel)).to_have_value("0.00306".replace("0.00306", "3.06e-3"))
    slider.press("Shift+ArrowRight")
    expect(field(panel)).to_have_value("3.37e-3")
    slider.press("Shift+ArrowLeft")
    slider.press("ArrowLeft")
    expect(field(panel)).to_have_value("3e-3")
    rail = panel.page.locator(".nbp-lr .nbp-slider-rail")
    box = rail.bounding_box()
    assert box is not None
    rail.click(position={"x": box["width"] / 2, "y": 2})  # amid 1e-5 and 0.1
    expect(field(panel)).to_have_value("1e-3")


def test_groups_follow_one_factor_until_one_is_given_a_rate_of_its_own(panel: PanelPage) -> None:
    panel.say(knobs(rate(3e-3, 3e-3)))
    dialog = opened(panel)
    field(panel).fill("7.5e-4")
    mine = [dialog.locator(f"[data-group='{k}']") for k in (0, 1)]
    for one in mine:
        expect(one).to_have_value("7.5e-4")
    mine[1].fill("1e-3")
    expect(dialog.locator("[data-role=together]")).not_to_be_checked()
    expect(field(panel)).to_be_disabled()
    panel.action("set-rate").click()
    asked = [panel.wait_sent("set", count) for count in (1, 2)]
    assert [(one["group"], one["value"]) for one in asked] == [(0, 7.5e-4), (1, 1e-3)]


def test_groups_unlike_each_other_have_one_factor_and_an_empty_field(panel: PanelPage) -> None:
    panel.say(knobs(rate(3e-3, 1e-3)))
    expect(panel.action("knobs")).to_have_text("lr 1e−3…3e−3")
    dialog = opened(panel)
    expect(field(panel)).to_have_value("")
    expect(field(panel)).to_be_disabled()
    dialog.locator("[data-factor='÷ 10']").click()
    expect(dialog.locator("[data-group='0']")).to_have_value("3e-4")
    expect(dialog.locator("[data-group='1']")).to_have_value("1e-4")
    panel.action("set-rate").click()
    asked = panel.wait_sent("scale")
    assert (asked["name"], asked["hold"]) == ("lr", False)
    assert asked["factor"] == pytest.approx(0.1)


def test_against_a_scheduler_it_is_multiplied_or_held_and_released(panel: PanelPage) -> None:
    scheduled = [group("7 weights", 3e-3), group("13 biases and norms", 3e-3)]
    panel.say(knobs(rate(3e-3, 3e-3, details=scheduled)))
    dialog = opened(panel)
    field(panel).fill("7.5e-4")
    section = dialog.locator(".nbp-rate-schedule")
    expect(section).to_contain_text("A schedule sets the rate at every step:")
    expect(section.locator("label")).to_have_text(
        [" multiply what it sets by 0.25", " hold 7.5e−4 until released"]
    )
    section.get_by_role("radio").last.check()
    panel.action("set-rate").click()
    assert panel.wait_sent("set")["hold"] is True
    held = [group("7 weights", 2e-3, held=True), group("13 biases and norms", 2e-3, held=True)]
    panel.say(knobs(rate(7.5e-4, 7.5e-4, details=held)))
    expect(section).to_contain_text("Set by hand; its schedule says 2e−3:")
    panel.action("release").click()
    assert panel.wait_sent("release")["name"] == "lr"


def test_the_hint_says_what_would_bring_the_updates_to_what_is_common(panel: PanelPage) -> None:
    hint = {"ratio": 0.0041, "common": 0.001, "factor": 0.001 / 0.0041}
    panel.say(knobs(LR, hint=hint, last={"step": 640, "text": "lr 0.01 → 0.003"}))
    dialog = opened(panel)
    expect(dialog.locator(".nbp-aside")).to_have_text(
        "update_ratio is 0.0041 in the typical layer; about 0.001 is common. "
        "7.3e−4 would bring it there."
    )
    expect(dialog.locator("footer")).to_contain_text("0.01 → 0.003 at step 640")
    panel.action("hint").click()
    expect(field(panel)).to_have_value("7.3e-4")


def test_knobs_of_ones_own_have_sliders_between_their_ends(panel: PanelPage) -> None:
    panel.say(knobs(LR, DROPOUT, HEAT))
    dialog = opened(panel)
    linear, log = [dialog.get_by_role("slider", name=name) for name in ("dropout", "temperature")]
    linear.focus()
    linear.press("Shift+ArrowRight")
    assert panel.wait_sent("set")["value"] == pytest.approx(0.29)
    log.focus()
    log.press("Shift+ArrowRight")
    assert panel.wait_sent("set", 2)["value"] == pytest.approx(1.1)
    field(panel, "dropout").fill("much")
    field(panel, "dropout").press("Enter")
    row = dialog.locator(".nbp-knob", has=field(panel, "dropout"))
    expect(row.locator(".nbp-ticket")).to_have_text("a number is needed")


def test_what_is_typed_stays_while_a_scheduler_moves_the_rate(panel: PanelPage) -> None:
    opened(panel)
    field(panel).press("ControlOrMeta+a")
    panel.page.keyboard.type("2e-")
    panel.say(knobs(DROPOUT, rate(0.0029)))
    expect(field(panel)).to_have_value("2e-")
    panel.page.keyboard.type("4")
    panel.say(knobs(DROPOUT, rate(0.0028)))
    expect(field(panel)).to_have_value("2e-4")
    field(panel).press("Enter")
    assert panel.wait_sent("set")["value"] == 2e-4


def test_escape_and_a_click_outside_close_it_and_the_focus_goes_back(panel: PanelPage) -> None:
    dialog = opened(panel)
    expect(field(panel)).to_be_focused()
    panel.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(panel.action("knobs")).to_be_focused()
    panel.action("knobs").click()
    panel.page.locator(".nbp-footer, .nbp-foot").first.click(position={"x": 5, "y": 5})
    expect(dialog).to_have_count(0)
    panel.action("knobs").click()
    panel.action("knobs").click()
    expect(dialog).to_have_count(0)
    expect(panel.action("knobs")).to_have_attribute("aria-expanded", "false")


def test_tab_stays_in_the_dialog(panel: PanelPage) -> None:
    opened(panel)
    inside = "document.activeElement.closest('[role=dialog]') !== null"
    for key in ["Tab"] * 9 + ["Shift+Tab"] * 11:
        panel.page.keyboard.press(key)
        assert panel.page.evaluate(inside), key


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_into_a_panel_of_every_width(bare: PanelPage, width: int, theme: str) -> None:
    hint = {"ratio": 0.0041, "common": 0.001, "factor": 0.25}
    scheduled = [group("7 weights, decay 0.1", 3e-3), group("13 biases and norms", 3e-3)]
    last = {"step": 640, "text": "lr 0.01 → 0.003"}
    rows = (rate(3e-3, 3e-3, details=scheduled), DROPOUT, HEAT, DECAY)
    panel = shown_with(bare, knobs(*rows, hint=hint, last=last), width, theme)
    if not panel.action("knobs").is_visible():
        pytest.skip("behind another button at this width")
    dialog = opened(panel)
    field(panel).fill("7.5e-4")
    inside, around = dialog.bounding_box(), panel.root.bounding_box()
    assert inside is not None
    assert around is not None
    assert around["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    panel.picture(f"knobs-{theme}-{width}")
