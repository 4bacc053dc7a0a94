"""Attach and Detach, from the click to what became of it; the empty panel; the series picker."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from notebook_probe.explorer.messages.wire import StatusMessage
from tests.browser.panel_messages import (
    WEIGHTED,
    status_message,
    ticket,
)
from tests.browser.panel_page import PanelPage

LASTING = StatusMessage.__optional_keys__ - {"scalar"}


def test_the_box_says_what_is_measured_what_it_needs_and_what_it_costs(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    shown.choose("weight_norm")
    hint = shown.page.locator(".nbp-attach .nbp-hint[data-fits]")
    expect(hint).to_have_text(
        "Euclidean norm of the weight. Needs weight. About 6.1\u202fµs per step here."
    )
    shown.choose("update_ratio")
    expect(hint).to_contain_text("Needs update, weight.")
    expect(hint).not_to_contain_text("here.")


def test_only_modules_that_fit_are_attached_and_the_others_are_counted(shown: PanelPage) -> None:
    shown.page.locator("[data-role=search]").fill("block.*")
    shown.choose("weight_norm")
    expect(shown.action("attach")).to_have_text("Attach to 4 modules")
    expect(shown.page.locator(".nbp-attach")).to_contain_text(
        "2 modules left out: needs 'weight'; ReLU has none."
    )
    shown.action("attach").click()
    asked = shown.wait_sent("attach")
    assert asked["where"] == ["block.conv2", "block.bn2", "block.conv3", "block.bn3"]
    assert asked["quantity"] == "weight_norm"


def test_the_schedule_is_text_with_examples_while_it_is_edited(shown: PanelPage) -> None:
    examples = shown.page.locator(".nbp-examples")
    expect(examples).to_be_hidden()
    shown.row("stem.conv1").click()
    schedule = shown.page.locator("[data-role=schedule]")
    schedule.fill("linear(5, 2)")
    expect(examples).to_contain_text("every(10, 5)")
    shown.action("attach").click()
    assert shown.wait_sent("attach")["schedule"] == "linear(5, 2)"


def test_a_click_on_an_example_writes_it_and_the_keyboard_comes_to_it(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    examples, schedule = (
        shown.page.locator(".nbp-examples"),
        shown.page.locator("[data-role=schedule]"),
    )
    schedule.focus()
    example = examples.get_by_text("times(20)")
    expect(example).to_have_attribute("title", "20 times in the run, evenly")
    example.click()
    expect(schedule).to_have_value("times(20)")
    expect(schedule).to_be_focused()
    shown.page.keyboard.press("Tab")
    expect(examples.get_by_text("every(10)", exact=True)).to_be_focused()
    shown.page.keyboard.press("Enter")
    expect(schedule).to_have_value("every(10)")
    examples.get_by_text("keep(256)").click()
    shown.action("attach").click()
    assert shown.wait_sent("attach")["schedule"] == "keep(256, 1240)"
    expect(schedule).to_have_value("keep(256, 1240)")
    expect(examples).to_be_hidden()


@pytest.mark.parametrize(
    ("text", "step", "meant"),
    [
        ("keep(8)", 0, "keep(8)"),
        ("keep( 8 )", 7, "keep(8, 7)"),
        ("keep(8, 3)", 7, "keep(8, 3)"),
        ("every(8)", 7, "every(8)"),
        ("keep(8) | every(5)", 7, "keep(8) | every(5)"),
    ],
)
def test_what_is_kept_is_counted_from_where_it_is_attached(
    shown: PanelPage, text: str, step: int, meant: str
) -> None:
    found = shown.page.evaluate("([text, step]) => parts.fromHere(text, step)", [text, step])
    assert found == meant


def test_without_a_schedule_nothing_is_attached(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    schedule = shown.page.locator("[data-role=schedule]")
    schedule.fill(" ")
    expect(shown.action("attach")).to_be_disabled()
    expect(shown.action("attach")).to_have_attribute(
        "title", "Say when to measure, such as every(10)"
    )
    schedule.fill("every 5")
    expect(shown.action("attach")).to_be_enabled()


@pytest.mark.parametrize("mend", ["schedule", "quantity", "where"])
def test_a_refusal_goes_when_something_else_is_asked(shown: PanelPage, mend: str) -> None:
    shown.row("stem.conv1").click()
    shown.action("attach").click()
    refused = ticket(shown.wait_sent("attach")["id"], "refused", text="does not parse")
    shown.say(status_message(tickets=[refused]))
    expect(shown.ticket).to_contain_text("does not parse")
    if mend == "schedule":
        shown.page.locator("[data-role=schedule]").fill("every(5)")
    elif mend == "quantity":
        shown.choose("update_ratio")
    else:
        shown.row("head.fc1").click()
    expect(shown.ticket).to_have_attribute("data-state", "")
    shown.say(status_message(step=1300, tickets=[refused]))
    expect(shown.ticket).not_to_contain_text("does not parse")


def test_a_refused_control_is_named_as_long_as_the_run_is_as_it_was(shown: PanelPage) -> None:
    route = shown.page.locator(".nbp-route")
    shown.say(status_message(state="idle"))
    shown.action("pause").click()
    asked = shown.wait_sent("control")["id"]
    refused = ticket(asked, "refused", text="no training is running")
    shown.say(status_message(state="idle", tickets=[refused]))
    expect(route).to_have_text("no training is running")
    shown.say(status_message(state="training", tickets=[refused]))
    expect(route).to_have_text("")


def test_a_click_is_acknowledged_at_once_and_followed_to_its_step(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    shown.choose("zero_fraction")
    shown.action("attach").click()
    expect(shown.ticket).to_have_attribute("data-state", "sent")
    click = shown.wait_sent("attach")["id"]
    shown.say(status_message(tickets=[ticket("another", "refused"), ticket(click, "queued")]))
    expect(shown.ticket).to_have_text("…queued at step 1\u202f236", use_inner_text=True)
    shown.say(status_message(tickets=[ticket(click, "applied", 1237)]))
    expect(shown.ticket).to_have_attribute("data-state", "applied")
    expect(shown.ticket).to_contain_text("queued 1\u202f236, attached at step 1\u202f237")
    shown.action("draw").click()
    assert shown.wait_sent("selection")["series"] == [["stem.conv1", "zero_fraction"]]


def test_with_nothing_marked_a_quantity_is_attached_to_its_default_modules(
    shown: PanelPage,
) -> None:
    expect(shown.action("attach")).to_have_text("Attach to its default modules")
    shown.choose("output_std")
    shown.action("attach").click()
    asked = shown.wait_sent("attach")
    assert (asked["where"], asked["quantity"]) == ([], "output_std")
    there = [(path, "output_std", "every(10)") for path in WEIGHTED[:2]]
    shown.say(status_message(tickets=[ticket(asked["id"], "applied", 1237)], attached=there))
    shown.action("draw").click()
    drawn = [[path, "output_std"] for path in WEIGHTED[:2]]
    assert shown.wait_sent("selection")["series"] == drawn


def test_a_refusal_stands_where_the_click_was(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    shown.action("attach").click()
    click = shown.wait_sent("attach")["id"]
    shown.say(status_message(tickets=[ticket(click, "refused", text="no schedule 'evry(1)'")]))
    expect(shown.ticket).to_have_attribute("data-state", "refused")
    expect(shown.ticket).to_have_text("✕no schedule 'evry(1)'", use_inner_text=True)


def test_detach_names_the_quantity_or_everything(shown: PanelPage) -> None:
    shown.row("stem.conv1").click()
    shown.choose("grad_norm")
    shown.action("detach").click()
    first = shown.wait_sent("detach")
    assert (first["where"], first["quantity"]) == (["stem.conv1"], "grad_norm")
    shown.choose("output_std")  # not attached here, but grad_norm is
    expect(shown.action("detach")).to_have_text("Detach all")
    shown.action("detach").click()
    assert shown.wait_sent("detach", 2)["quantity"] == ""
    shown.row("stem.relu1").click()
    expect(shown.action("detach")).to_be_disabled()
    expect(shown.action("detach")).to_have_attribute(
        "title", "Nothing is attached at the marked modules"
    )


def test_buttons_that_cannot_act_say_why(shown: PanelPage) -> None:
    expect(shown.action("detach")).to_have_attribute(
        "title", "Nothing is attached at the marked modules"
    )
    shown.row("stem.conv1").click()
    shown.say(status_message(can={"attach": "The run has ended"}, state="finished"))
    expect(shown.action("attach")).to_be_disabled()
    expect(shown.action("attach")).to_have_attribute("title", "The run has ended")


def test_an_empty_panel_offers_three_defaults(shown: PanelPage) -> None:
    shown.say(status_message(attached=[], recorded={}))
    empty = shown.page.locator(".nbp-empty")
    expect(empty).to_contain_text("Select modules on the left, choose a quantity and click Attach")
    assert empty.locator("button").all_inner_texts() == ["grad_norm", "weight_norm", "update_ratio"]
    empty.locator("button").first.click()
    asked = shown.wait_sent("attach")
    assert (asked["where"], asked["quantity"]) == ([], "grad_norm")  # the kernel knows where


def test_a_panel_that_waits_says_for_what(shown: PanelPage) -> None:
    waiting = {"kind": "waiting", "reason": "first value at step 50", "probes": [0]}
    shown.say(status_message(recorded={}, silent=[waiting]))
    expect(shown.page.locator(".nbp-empty")).to_have_text("first value at step 50")
    shown.say(status_message(recorded={}, silent=[waiting], state="waiting", step=-1))
    expect(shown.page.locator(".nbp-empty")).to_have_text(
        "Run the cell that trains: first value at step 50."
    )


def test_long_parts_of_a_status_last_until_they_are_sent_again(shown: PanelPage) -> None:
    short = {k: v for k, v in status_message(step=1300).items() if k not in LASTING}
    shown.say(short)
    expect(shown.root).to_have_attribute("data-step", "1300")
    expect(shown.row("stem.conv1").locator(".nbp-mark")).to_have_text("●")
    expect(shown.page.locator(".nbp-quantities [data-quantity]")).to_have_count(4)


def test_the_picker_finds_any_recorded_series_and_draws_it(shown: PanelPage) -> None:
    shown.action("add").click()
    shown.page.keyboard.type("fc weight")
    items = shown.page.locator(".nbp-item:visible")
    assert items.locator("span:first-child").all_inner_texts() == [
        "head.fc1 · weight_norm",
        "head.fc2 · weight_norm",
    ]
    items.first.click()
    assert shown.wait_sent("selection")["series"] == [["head.fc1", "weight_norm"]]
    expect(items).to_have_count(0)
    expect(shown.action("add")).to_be_focused()
    shown.page.keyboard.press("Enter")
    expect(items.first).to_be_visible()
    shown.page.keyboard.type("fc2 weight")
    expect(items).to_have_count(1)
    shown.page.keyboard.press("Enter")
    assert len(shown.wait_sent("selection", 2)["series"]) == 2
    shown.page.keyboard.press("Enter")
    shown.page.keyboard.type("fc1 weight")
    expect(items.first).to_contain_text("drawn")
    shown.page.keyboard.press("Escape")
    expect(items).to_have_count(0)
    expect(shown.action("add")).to_be_focused()


def test_the_home_quantity_is_a_chip_or_in_the_list_of_more(shown: PanelPage) -> None:
    shown.page.locator(".nbp-quantities [data-quantity=weight_norm]").click()
    assert shown.wait_sent("selection")["home"] == "weight_norm"
    shown.action("more").click()
    shown.page.locator(".nbp-item[data-quantity=output_std]").click()
    shown.page.wait_for_function("sent.at(-1).home === 'output_std'")
    expect(shown.page.locator(".nbp-quantities [aria-pressed=true]")).to_have_text("output_std")


def test_the_box_begins_with_the_most_useful_that_fits_and_keeps_what_was_picked(
    shown: PanelPage,
) -> None:
    box = shown.page.locator("[data-role=quantity]")
    expect(box).to_have_text("update_ratio")
    shown.row("stem.relu1").click()
    expect(box).to_have_text("output_std")
    shown.row("stem.conv1").click()
    expect(box).to_have_text("output_std")
    shown.choose("weight_norm")
    shown.row("stem.relu1").click()
    expect(box).to_have_text("weight_norm")
    expect(shown.page.locator(".nbp-attach .nbp-reason")).to_contain_text("Does not fit")


@pytest.mark.parametrize("state", ["waiting", "idle"])
def test_what_waits_for_a_loop_that_does_not_run_says_so_and_names_no_step(
    shown: PanelPage, state: str
) -> None:
    shown.say(status_message(state=state, step=700))
    shown.row("stem.conv1").click()
    shown.action("attach").click()
    asked = shown.wait_sent("attach")
    queued = ticket(asked["id"], "queued")
    shown.say(status_message(state=state, step=700, tickets=[queued]))
    expect(shown.ticket).to_contain_text("waits for the next training step")
    shown.say(status_message(step=701, tickets=[queued]))
    expect(shown.ticket).to_contain_text("queued at step")


def test_a_screen_reader_hears_what_a_list_and_a_search_are_for(shown: PanelPage) -> None:
    expect(shown.page.locator(".nbp-list:not([aria-label])")).to_have_count(0)
    shown.page.locator("[data-role=quantity]").click()
    found = shown.page.get_by_role("combobox", name="Find a quantity")
    listed = found.get_attribute("aria-controls")
    expect(shown.page.locator(f"#{listed}")).to_have_attribute("role", "listbox")
    for landmark in ("banner", "contentinfo"):
        expect(shown.page.get_by_role(landmark)).to_have_count(0)  # a dialog is no page
