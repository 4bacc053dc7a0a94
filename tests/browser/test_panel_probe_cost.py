"""What watching costs and what would cost less, and the list of all that is attached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

THIN = "\u202f"
RELUS = ["stem.relu1", "block.relu2", "block.relu3"]
PLACES: dict[str, tuple[Sequence[str], str, float]] = {
    "weight_norm": (kernel.WEIGHTED, "every(1)", 0.1),
    "grad_norm": (kernel.WEIGHTED, "every(1)", 0.4),
    "output_std": (kernel.WEIGHTED, "every(10)", 6.8),
    "output_histogram": (kernel.WEIGHTED, "every(5)", 2.4),
    "zero_fraction": (RELUS, "every(1)", 3.0),
}
"""Quantity to places, schedule, and per cent of a step at all of them."""


def dear_status(**changes: Any) -> Any:
    attached, tallies = [], []
    for quantity, (places, schedule, percent) in PLACES.items():
        attached += [(place, quantity, schedule) for place in places]
        tallies += [(1239, 8.4, percent / len(places)) for _ in places]
    status = {"attached": attached, "tallies": tallies, "cost_percent": 17.0}
    return kernel.status_message(**(status | changes))


def account(**changes: Any) -> dict[str, Any]:
    presets = [
        {"name": "gradients", "about": "Whether they vanish.", "percent": 6.28},
        {"name": "spectra", "about": "Singular values.", "percent": 5.0},
        {"name": "mine", "about": "", "percent": None},
    ]
    known = {"n_measured": 64, "step_s": 0.023, "budget": None, "presets": presets, "flight": ""}
    return {"v": 1, "type": "probes", **known, **changes}


def shown(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    bare.say(kernel.model_message())
    bare.say(dear_status())
    bare.say(account())
    return bare


def opened(panel: PanelPage, action: str) -> Locator:
    if panel.action("words").is_visible():  # where the panel is narrow
        panel.action("words").click()
    panel.action(action).click()
    return panel.page.get_by_role("dialog")


def settle(panel: PanelPage, asked: Any, state: str = "applied", text: str = "") -> None:
    row = kernel.ticket(asked["id"], state, 413 if state == "applied" else -1, text)
    panel.say(dear_status(tickets=[row]))


# ---------------------------------------------------------------- the cost


def test_the_cost_stands_in_the_bar_amber_from_ten_per_cent_on(panel: PanelPage) -> None:
    button = panel.action("probes")
    expect(button).to_have_text(f"probes 17{THIN}%")
    expect(button).to_have_class("nbp-bar-word nbp-cost nbp-dear")
    panel.say(dear_status(cost_percent=9.9))
    expect(button).to_have_class("nbp-bar-word nbp-cost")


def test_the_three_dearest_say_what_a_sparser_schedule_would_leave(panel: PanelPage) -> None:
    dialog = opened(panel, "probes")
    expect(dialog.locator("header")).to_contain_text(f"Probes take 17{THIN}% of a step")
    expect(dialog.locator("header")).to_contain_text(
        f"3.9{THIN}ms of 23{THIN}ms, over the last 64 steps"
    )
    names = dialog.locator(".nbp-dearest > :nth-child(6n + 1)")
    words = ["quantity", "output_std", "zero_fraction", "output_histogram", "2 others"]
    words.append("row keeping")
    expect(names).to_have_text(words)
    places = dialog.locator(".nbp-dearest > :nth-child(6n + 2)")
    expect(places).to_have_text(["where", "8 modules", "3 ReLUs", "8 modules", "", ""])
    expect(dialog.locator(".nbp-instead")).to_have_text(
        [f"every(50) 1.4{THIN}%", f"every(5) 0.6{THIN}%", f"every(20) 0.6{THIN}%"]
    )
    expect(dialog.locator(".nbp-share > i").first).to_have_attribute("style", "width: 20%;")


def test_the_rows_add_up_to_the_header_and_the_others_are_named(panel: PanelPage) -> None:
    dialog = opened(panel, "probes")
    shares = dialog.locator(".nbp-dearest > :nth-child(6n + 4)").all_inner_texts()[1:]
    found = [float(one.replace(THIN, "").rstrip("%")) for one in shares]
    assert found == [6.8, 3.0, 2.4, 0.5, 4.3]
    assert sum(found) == pytest.approx(17)
    others = dialog.get_by_text("2 others")
    expect(others).to_have_attribute("title", f"grad_norm 0.4{THIN}%, weight_norm 0.1{THIN}%")


def test_one_button_makes_all_three_sparser_and_a_ticket_says_when(panel: PanelPage) -> None:
    dialog = opened(panel, "probes")
    button = panel.action("all-sparser")
    expect(button).to_have_text(f"All three: 17 → 7.4{THIN}%")
    button.click()
    asked = [panel.wait_sent("reschedule", count) for count in (1, 2, 3)]
    assert [(one["quantity"], one["schedule"]) for one in asked] == [
        ("output_std", "every(50)"),
        ("zero_fraction", "every(5)"),
        ("output_histogram", "every(20)"),
    ]
    assert asked[1]["where"] == RELUS
    rows = [kernel.ticket(one["id"], "applied", 413) for one in asked]
    panel.say(dear_status(tickets=rows))
    expect(dialog.locator("footer .nbp-ticket")).to_contain_text("applied at step 413")


def test_one_of_them_alone_is_made_sparser_by_its_own_button(panel: PanelPage) -> None:
    opened(panel, "probes").locator(".nbp-instead").nth(1).click()
    asked = panel.wait_sent("reschedule")
    assert (asked["quantity"], asked["schedule"]) == ("zero_fraction", "every(5)")


def test_a_press_is_not_lost_when_the_numbers_change_under_it(panel: PanelPage) -> None:
    dialog = opened(panel, "probes")
    button = dialog.locator(".nbp-instead").first
    button.hover()
    panel.page.mouse.down()
    dearer = {**PLACES, "zero_fraction": (RELUS, "every(1)", 9.0)}  # the dearest now
    tallies = [(1240, 8.4, p / len(at)) for at, _, p in dearer.values() for _ in at]
    panel.say(dear_status(tallies=tallies, cost_percent=23.0))
    expect(dialog.locator("header")).to_contain_text(f"Probes take 23{THIN}% of a step")
    panel.page.mouse.up()
    assert panel.wait_sent("reschedule")["quantity"] == "output_std"
    expect(button).to_be_focused()
    expect(dialog.locator(".nbp-instead").nth(1)).to_have_text(f"every(5) 1.8{THIN}%")


def test_a_preset_is_pressed_while_its_cost_changes(panel: PanelPage) -> None:
    button = opened(panel, "attached").locator("[data-preset=spectra]")
    button.hover()
    panel.page.mouse.down()
    presets = [{**one, "percent": 7.5} for one in account()["presets"]]
    panel.say(account(presets=presets))
    expect(button).to_have_text(f"spectra 7.5{THIN}%")
    panel.page.mouse.up()
    assert panel.wait_sent("preset")["name"] == "spectra"


def test_what_the_flight_recorder_keeps_in_memory_stands_below_what_is_attached(
    panel: PanelPage,
) -> None:
    dialog = opened(panel, "attached")
    kept = "flight recorder: 200 of 200 steps of 558 series in memory, 446 kB"
    expect(dialog).not_to_contain_text("flight recorder")
    panel.say(account(flight=kept))
    expect(dialog.get_by_text(kept)).to_be_visible()


def test_below_a_share_of_the_step_is_the_budget_of_the_run(panel: PanelPage) -> None:
    dialog = opened(panel, "probes")
    panel.page.locator("[data-role=percent]").fill("none")
    panel.page.locator("[data-role=budget]").check()
    expect(dialog.locator(".nbp-ticket")).to_have_text("a number above 0 is needed")
    assert panel.sent("budget") == []
    panel.page.locator("[data-role=percent]").fill("4")
    panel.page.locator("[data-role=percent]").press("Enter")
    assert panel.wait_sent("budget")["percent"] == 4
    panel.say(account(budget=4.0))
    panel.say(dear_status(budget="output_std at one of 4 due steps; the aim is below 4 %"))
    expect(dialog.locator("footer [role=status]").first).to_have_text(
        f"output_std at one of 4 due steps; the aim is below 4 %. 17{THIN}% now; "
        "schedules that were chosen are never stretched: make them sparser above"
    )
    panel.page.locator("[data-role=budget]").uncheck()
    assert panel.wait_sent("budget", 2)["percent"] is None


def test_before_twenty_steps_it_says_what_is_needed(panel: PanelPage) -> None:
    panel.say(account(n_measured=7))
    dialog = opened(panel, "probes")
    expect(dialog).to_contain_text("not measured yet: 20 steps are needed; 7 so far")
    expect(panel.action("all-sparser")).to_be_hidden()


def test_what_reads_every_step_is_offered_no_sparser_schedule(panel: PanelPage) -> None:
    message = kernel.model_message()
    for row in message["quantities"]:
        row["every_step"] = row["name"] == "output_std"
    panel.say(message)
    dialog = opened(panel, "probes")
    expect(dialog).to_contain_text("reads every step")
    expect(panel.action("all-sparser")).to_contain_text("Both: 17 →")


# ---------------------------------------------------------------- the list


def row(panel: PanelPage, quantity: str) -> Locator:
    return panel.page.locator(f".nbp-attached-item[data-quantity={quantity}]")


def test_the_list_names_each_quantity_its_places_schedule_and_cost(panel: PanelPage) -> None:
    expect(panel.action("attached")).to_have_text("35")
    dialog = opened(panel, "attached")
    expect(dialog.locator("header")).to_contain_text("35 probes of 5 quantities")
    expect(row(panel, "zero_fraction")).to_contain_text("3 ReLUs")
    expect(row(panel, "output_std")).to_contain_text(f"6.8{THIN}%")
    search = dialog.get_by_role("searchbox")
    search.fill("relu2")
    expect(dialog.locator(".nbp-attached-item")).to_have_count(1)
    expect(dialog.locator(".nbp-attached-module")).to_have_count(3)
    search.fill("nowhere")
    expect(dialog).to_contain_text("Nothing attached matches.")


def test_a_schedule_is_edited_in_place_with_the_new_cost_beside_it(panel: PanelPage) -> None:
    opened(panel, "attached")
    one = row(panel, "output_std")
    one.locator("[data-role=edit-schedule]").click()
    field = one.get_by_role("textbox", name="Schedule")
    expect(field).to_be_focused()
    field.fill("every(50)")
    beside = one.locator("[role=status]")
    expect(beside).to_have_text(f"1.4{THIN}%")
    panel.picture("probes-editing")
    field.press("Enter")
    asked = panel.wait_sent("reschedule")
    assert (asked["quantity"], asked["schedule"]) == ("output_std", "every(50)")
    assert asked["where"] == kernel.WEIGHTED
    settle(panel, asked)
    expect(field).to_be_hidden()


def test_a_schedule_that_does_not_parse_says_so_beside_its_field(panel: PanelPage) -> None:
    opened(panel, "attached")
    one = row(panel, "output_std")
    one.locator("[data-role=edit-schedule]").click()
    field = one.get_by_role("textbox", name="Schedule")
    field.fill("evry(3)")
    expect(one.locator("[role=status]")).to_have_text("")
    field.press("Enter")
    why = "schedule 'evry(3)' does not parse; every(3)? Allowed are every(1), every(50)"
    settle(panel, panel.wait_sent("reschedule"), "refused", why)
    expect(one.locator("[role=status]")).to_have_text(
        "schedule 'evry(3)' does not parse; every(3)?"
    )
    panel.picture("probes-refused")
    field.press("Escape")
    expect(field).to_be_hidden()
    expect(panel.page.get_by_role("dialog")).to_be_visible()


def test_it_unfolds_to_modules_which_a_click_draws(panel: PanelPage) -> None:
    opened(panel, "attached")
    one = row(panel, "grad_norm")
    one.get_by_role("button", name="Show modules").click()
    modules = one.locator(".nbp-attached-module")
    expect(modules).to_have_count(len(kernel.WEIGHTED))
    modules.first.click()
    assert panel.wait_sent("selection")["series"][-1] == [kernel.WEIGHTED[0], "grad_norm"]


def test_a_cross_and_delete_detach_and_the_ticket_says_so(panel: PanelPage) -> None:
    dialog = opened(panel, "attached")
    row(panel, "zero_fraction").locator("[data-action=detach-row]").click()
    asked = panel.wait_sent("detach")
    assert (asked["where"], asked["quantity"]) == (RELUS, "zero_fraction")
    settle(panel, asked)
    expect(dialog.locator("footer .nbp-ticket")).to_contain_text("applied at step 413")
    row(panel, "output_std").locator("[data-role=edit-schedule]").focus()
    panel.page.keyboard.press("Delete")
    assert panel.wait_sent("detach", 2)["quantity"] == "output_std"
    panel.action("detach-all").click()
    assert panel.wait_sent("detach", 3)["quantity"] == ""


def test_a_silent_quantity_says_why_in_place_of_its_schedule(panel: PanelPage) -> None:
    n = len(kernel.WEIGHTED)
    reason = {"kind": "silent", "reason": "no gradient is accumulated", "probes": [*range(n)]}
    panel.say(dear_status(silent=[reason]))
    opened(panel, "attached")
    expect(row(panel, "weight_norm").locator(".nbp-why")).to_have_text("no gradient is accumulated")
    expect(row(panel, "weight_norm").locator("[data-role=edit-schedule]")).to_be_hidden()
    panel.picture("probes-silent")


def test_presets_are_added_by_a_click_with_what_they_cost(panel: PanelPage) -> None:
    dialog = opened(panel, "attached")
    expect(dialog.locator(".nbp-presets button")).to_have_text(
        [f"gradients 6.3{THIN}%", f"spectra 5{THIN}%", "mine"]
    )
    dialog.locator("[data-preset=spectra]").click()
    asked = panel.wait_sent("preset")
    assert asked["name"] == "spectra"
    settle(panel, asked, "refused", "spectra: all of it that fits this model is attached already")
    expect(dialog.locator("footer .nbp-ticket")).to_contain_text("attached already")


def test_the_key_t_opens_it_and_arrows_go_from_row_to_row(panel: PanelPage) -> None:
    panel.root.focus()
    panel.page.keyboard.press("t")
    dialog = panel.page.get_by_role("dialog", name="Attached probes")
    expect(dialog.get_by_role("searchbox")).to_be_focused()
    panel.page.keyboard.press("ArrowDown")
    panel.page.keyboard.press("ArrowDown")
    focused = "document.activeElement.closest('.nbp-attached-item')?.dataset.quantity"
    assert panel.page.evaluate(focused) == "grad_norm"
    panel.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_record_that_was_opened_has_neither(bare: PanelPage) -> None:
    bare.show(880)
    bare.say(kernel.model_message(live=False))
    bare.say(dear_status())
    expect(bare.action("probes")).to_be_hidden()
    expect(bare.action("attached")).to_be_hidden()


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("action", ["probes", "attached"])
def test_both_fit_into_a_panel_of_every_width(
    bare: PanelPage, width: int, theme: str, action: str
) -> None:
    panel = shown(bare, width, theme)
    if width < 740 and action == "attached":
        panel.root.focus()
        panel.page.keyboard.press("t")
        dialog = panel.page.get_by_role("dialog")
    else:
        dialog = opened(panel, action)
    inside, around = dialog.bounding_box(), panel.root.bounding_box()
    assert inside is not None
    assert around is not None
    assert around["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    panel.picture(f"{action}-{theme}-{width}")
