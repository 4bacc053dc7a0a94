"""What is wrong: the foot, the drawer below it, badges, marks, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import alert_messages as gpt
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage


def shown(bare: PanelPage) -> PanelPage:
    gpt.say_all(bare.show(880))
    return bare


@pytest.fixture(autouse=True)
def _no_error(bare: PanelPage) -> Iterator[None]:
    yield
    assert bare.errors == []
    expect(bare.page.locator(".nbp-trouble")).to_be_hidden()


def drawer(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("region", name="Alerts")


def line(panel: PanelPage, rule: str) -> Locator:
    return drawer(panel).locator(f".nbp-alert[data-rule={rule}]")


def fold(panel: PanelPage, rule: str = "attention_logit_growing") -> Locator:
    """The button at a cause that lists what came of it."""
    return line(panel, rule).locator(".nbp-consequences")


def open_all(panel: PanelPage) -> None:
    """Open the drawer, with all that came of the one cause."""
    panel.action("alerts").click()
    fold(panel).click()


def opened(panel: PanelPage, rule: str) -> Locator:
    """The line of a rule, opened."""
    open_all(panel)
    found = line(panel, rule)
    found.locator(".nbp-alert-text").click()
    expect(found).to_have_attribute("data-open", "true")
    return found


LATE = [
    gpt.alert(600, "loader_bound", ["(root)"], ["data_wait_share"], "41% of the step is spent"),
    gpt.alert(700, "loss_spike", ["(root)"], ["loss"], "the loss is high"),
    gpt.alert(701, "exploding_gradient", ["head"], ["grad_norm"], "the gradient's norm is 9"),
    gpt.alert(720, "exploding_gradient", ["wte", "wpe"], ["grad_norm"], "the gradient's norm is 7"),
]


def test_the_newest_cause_stands_in_the_foot_and_the_count_opens_all_below_it(
    panel: PanelPage,
) -> None:
    foot = panel.page.locator(".nbp-newest")
    expect(foot).to_have_text(re.compile(r"^blocks\.2\.attn: the largest attention logit is 24\.1"))
    expect(foot.locator(".nbp-severity")).to_have_attribute("data-severity", "severe")
    assert foot.bounding_box()["height"] < 24  # type: ignore[index]
    count = panel.action("alerts")
    expect(count).to_have_text("7 alerts, 1 cause")
    expect(count).to_have_attribute("title", "7 alerts, 4 severe (n)")
    before = panel.heat.bounding_box()
    panel.page.evaluate("scrollTo(0, 0)")
    count.click()
    expect(drawer(panel)).to_be_in_viewport()
    assert drawer(panel).bounding_box()["y"] >= panel.page.locator(".nbp-foot").bounding_box()["y"]  # type: ignore[index]
    panel.page.evaluate("scrollTo(0, 0)")
    assert panel.heat.bounding_box() == before
    expect(drawer(panel).locator(".nbp-alerts-head")).to_contain_text("7 alerts, 1 cause")
    count.click()
    expect(drawer(panel)).to_be_hidden()


def test_what_came_of_a_cause_is_folded_below_it(panel: PanelPage) -> None:
    panel.action("alerts").click()
    steps = drawer(panel).locator(".nbp-alert:not([hidden]) .nbp-alert-step")
    expect(steps).to_have_text(["290"])
    expect(fold(panel)).to_have_text("6 consequences")
    expect(fold(panel).get_by_role("img", name="severe")).to_be_visible()  # it is a warning itself
    fold(panel).click()
    expect(fold(panel)).to_have_attribute("aria-expanded", "true")
    expect(steps).to_have_text(["290", "330", "331", "341", "342", "342", "400"])
    expect(line(panel, "loss_spike")).to_contain_text("The loss is 22.4 deviations")
    expect(line(panel, "exploding_gradient")).to_contain_text(
        "began at wte, seen in wpe and 38 more"
    )
    expect(line(panel, "rank_collapse")).to_have_attribute("aria-level", "2")
    fold(panel).click()
    expect(steps).to_have_text(["290"])


def test_several_causes_stand_by_their_steps_and_a_finding_that_spreads_is_one_line(
    panel: PanelPage,
) -> None:
    panel.say(gpt.alerts_message(LATE[:-1], before=gpt.ALERTS))
    expect(panel.action("alerts")).to_have_text("10 alerts, 3 causes")
    expect(panel.page.locator(".nbp-newest")).to_have_text("The loss is high")
    panel.action("alerts").click()
    causes = drawer(panel).locator(".nbp-alert[aria-level='1'] .nbp-alert-step")
    expect(causes).to_have_text(["290", "600", "700"])
    late = drawer(panel).locator(".nbp-alert[data-rule=exploding_gradient]").last
    folds = drawer(panel).locator(".nbp-consequences:visible")
    folds.last.click()
    expect(late).to_contain_text("head: the gradient's norm is 9")
    panel.say(gpt.alerts_message(LATE[-1:], before=[*gpt.ALERTS, *LATE[:-1]]))
    expect(late).to_contain_text("began at head, seen in wte and 1 more: the gradient's norm is 9")
    expect(folds).to_have_text(["6 consequences", "1 consequence"])
    late.locator("[data-action=show]").click()
    expect(panel.action("attach")).to_have_text("Attach to 3 modules")


def test_a_finding_whose_alert_is_not_listed_is_left_out(panel: PanelPage) -> None:
    message = gpt.alerts_message(LATE[:1])
    [finding] = message["findings"]
    older = {**finding, "first": 900, "sentence": "older than what is listed"}
    after = {**finding, "cause": 900}
    panel.say({**message, "findings": [older, after]})
    expect(panel.action("alerts")).to_have_text("1 alert")
    expect(panel.page.locator(".nbp-newest")).to_have_text("41% of the step is spent")


def test_a_cause_that_is_told_later_takes_what_came_of_it_below_it(panel: PanelPage) -> None:
    spike = gpt.alert(10, "loss_spike", ["(root)"], ["loss"], "the loss is high")
    high = gpt.alert(30, "lr_high", ["(root)"], ["update_ratio"], "a step changes the usual layer")
    panel.say(gpt.alerts_message([spike]))
    panel.action("alerts").click()
    line(panel, "loss_spike").locator(".nbp-alert-text").click()
    panel.say(gpt.alerts_message([high], before=[spike]))
    expect(panel.action("alerts")).to_have_text("2 alerts, 1 cause")
    expect(line(panel, "loss_spike")).to_be_hidden()
    fold(panel, "lr_high").click()
    expect(line(panel, "loss_spike")).to_have_attribute("data-open", "true")  # as it was
    panel.say(gpt.alerts_message(LATE[:1], before=[spike, high]))
    expect(line(panel, "loss_spike")).to_be_visible()


def test_pointing_at_a_line_draws_its_step_through_both_plots_and_outlines_its_rows(
    panel: PanelPage,
) -> None:
    open_all(panel)
    outline = panel.page.locator(".nbp-outline")
    line(panel, "attention_logit_large").hover()
    expect(panel.page.locator(".nbp-cursor[data-from=alert]")).to_have_count(2)
    assert panel.cursor_step() == 330
    expect(outline).to_have_count(2)  # what lies below blocks.2.attn and below blocks.3.attn
    line(panel, "loss_spike").hover()
    assert panel.cursor_step() == 341
    expect(outline).to_have_count(0)
    panel.page.mouse.move(5, 5)
    assert panel.cursor_step() is None


def test_keys_open_walk_and_show(panel: PanelPage) -> None:
    panel.root.focus()
    panel.page.keyboard.press("n")
    cause = line(panel, "attention_logit_growing")
    expect(cause).to_be_focused()
    panel.page.keyboard.press("ArrowDown")
    expect(cause).to_be_focused()  # what is folded away is not walked to
    panel.page.keyboard.press("ArrowRight")
    for _ in range(2):
        panel.page.keyboard.press("ArrowDown")
    expect(line(panel, "adam_spike_ahead")).to_be_focused()
    panel.page.keyboard.press("ArrowLeft")
    expect(cause).to_be_focused()
    expect(fold(panel)).to_have_attribute("aria-expanded", "false")
    panel.page.keyboard.press("ArrowRight")
    panel.page.keyboard.press("ArrowDown")
    expect(line(panel, "attention_logit_large")).to_be_focused()
    assert panel.cursor_step() == 330
    panel.page.keyboard.press(" ")
    expect(panel.page.locator("[data-threshold=most]")).to_be_visible()
    panel.page.keyboard.press("Enter")
    assert panel.wait_sent("selection")["home"] == "attn_max_logit"
    panel.page.keyboard.press("Escape")
    expect(drawer(panel)).to_be_hidden()
    expect(panel.action("alerts")).to_be_focused()


def test_show_marks_draws_and_points_and_leaves_a_window_that_has_the_step(
    panel: PanelPage,
) -> None:
    open_all(panel)
    line(panel, "exploding_gradient").locator("[data-action=show]").click()
    sent = panel.wait_sent("selection")
    assert sent["home"] == "grad_norm"
    assert sent["series"][-1] == ["wte", "grad_norm"]
    assert sent["window"] is None
    expect(panel.row("wte")).to_have_attribute("aria-selected", "true")
    expect(panel.action("attach")).to_have_text(f"Attach to {len(gpt.WEIGHTED)} modules")
    panel.page.mouse.move(5, 5)
    assert panel.cursor_step() == 342  # it stays
    panel.root.focus()
    panel.page.keyboard.press("Escape")
    assert panel.cursor_step() is None


def test_show_opens_the_way_to_its_modules_and_moves_a_window_that_has_not_the_step(
    panel: PanelPage,
) -> None:
    fold = panel.row("blocks").locator(".nbp-fold")
    fold.click()
    shown = panel.page.locator('.nbp-row[data-module="blocks.2.attn"]:not([hidden])')
    expect(shown).to_have_count(0)
    panel.say(kernel.selection_message(window=[0, 100]))
    open_all(panel)
    line(panel, "attention_logit_large").locator("[data-action=show]").click()
    expect(shown).to_have_attribute("aria-selected", "true")
    low, high = panel.wait_sent("selection")["window"]
    assert (low, high) == (280, 380)


def test_what_is_not_recorded_any_more_cannot_be_shown(panel: PanelPage) -> None:
    open_all(panel)
    show = line(panel, "adam_spike_ahead").locator("[data-action=show]")
    expect(show).to_have_attribute("aria-disabled", "true")
    expect(show).to_have_attribute("title", "adam_update_rms is not recorded any more")
    show.click(force=True)
    panel.wait_frame()
    assert panel.sent("selection") == []


def test_what_explains_it_is_attached_here_and_the_ticket_takes_the_place(
    panel: PanelPage,
) -> None:
    open_all(panel)
    found = line(panel, "attention_logit_large")
    found.get_by_text("attach attn_head_max_logit here").click()
    sent = panel.wait_sent("attach")
    assert sent["where"] == ["blocks.2.attn", "blocks.3.attn"]
    assert (sent["quantity"], sent["schedule"]) == ("attn_head_max_logit", "every(10)")
    panel.say(gpt.status_message(tickets=[kernel.ticket(sent["id"], "queued")]))
    expect(found.locator(".nbp-ticket").first).to_have_text("queued 1\u202f236")
    panel.say(gpt.status_message(tickets=[kernel.ticket(sent["id"], "applied", 413)]))
    expect(found.locator(".nbp-ticket").first).to_have_text(
        "✓ attn_head_max_logit attached at step 413"
    )


def test_only_what_fits_and_is_not_attached_there_is_offered(panel: PanelPage) -> None:
    open_all(panel)
    offer = line(panel, "exploding_gradient").locator(".nbp-attach-here")
    expect(offer).to_have_text("attach weight_norm here")
    attached = [(path, "weight_norm", "every(1)") for path in gpt.WEIGHTED]
    panel.say(gpt.status_message(attached=attached, tallies=[(1, 1.0, 0.1)] * len(attached)))
    expect(offer).to_be_hidden()
    only = gpt.rule("loss_spike", ["attn_head_max_logit"])  # which does not fit at the root
    panel.say(gpt.rules_message([only]))
    expect(line(panel, "loss_spike").locator(".nbp-attach-here")).to_be_hidden()
    panel.say(gpt.status_message(can={"attach": "this run has ended"}))
    expect(offer).to_be_hidden()


def test_a_threshold_tells_what_it_would_have_found_and_is_kept_by_enter(
    panel: PanelPage,
) -> None:
    found = opened(panel, "attention_logit_large")
    field, says = found.locator("[data-threshold=most]"), found.locator(".nbp-trial")
    field.fill("0")
    expect(says).to_have_text("a number above 0 is needed")
    field.press("Enter")
    field.fill("40")
    asked = panel.wait_sent("try_rule")
    assert (asked["rule"], asked["numbers"]) == ("attention_logit_large", {"most": 40})
    trial = {**asked, "steps": [320], "n": 1, "problem": ""}
    panel.say(gpt.rules_message(trial=trial))
    expect(says).to_have_text("40 would have fired at step 320")
    panel.say(gpt.rules_message(trial={**trial, "steps": [320, 330], "n": 3}))
    expect(says).to_have_text("40 would have fired at step 320, and 2 times more")
    panel.say(gpt.rules_message(trial={**trial, "steps": [], "n": 0}))
    expect(says).to_have_text("40 would not have fired")
    assert panel.sent("edit_rule") == []
    field.press("Enter")
    sent = panel.wait_sent("edit_rule")
    assert (sent["rule"], sent["numbers"]) == ("attention_logit_large", {"most": 40})
    panel.say(gpt.status_message(tickets=[kernel.ticket(sent["id"], "applied", 413)]))
    expect(found.locator(".nbp-rule .nbp-ticket")).to_contain_text("at step 413")


def test_escape_takes_a_threshold_back_and_only_then_closes_the_drawer(panel: PanelPage) -> None:
    found = opened(panel, "attention_logit_large")
    field = found.locator("[data-threshold=most]")
    field.fill("40")
    field.press("Escape")
    expect(field).to_have_value("50")
    expect(drawer(panel)).to_be_visible()
    assert panel.sent("edit_rule") == []
    field.press("Escape")
    expect(drawer(panel)).to_be_hidden()


def test_rows_are_counted_and_what_is_typed_survives_news(panel: PanelPage) -> None:
    found = opened(panel, "rank_collapse")
    field = found.locator("[data-threshold=rows]")
    expect(field).to_have_value("3")
    field.fill("2.5")
    expect(found.locator(".nbp-trial")).to_have_text("a whole number above 0 is needed")
    field.fill("4")
    panel.say(gpt.rules_message())
    panel.say(gpt.status_message(step=413))
    news = gpt.alert(430, "loss_spike", ["(root)"], ["loss"], "the loss is high")
    panel.say(gpt.alerts_message([news], before=gpt.ALERTS))
    expect(field).to_be_focused()
    expect(field).to_have_value("4")


def test_a_rule_that_failed_says_so_in_place_of_its_trial(panel: PanelPage) -> None:
    news = gpt.alert(410, "mine", ["head"], ["grad_norm"], "it is odd")
    panel.say(gpt.alerts_message([news], before=gpt.ALERTS))
    found = opened(panel, "mine")
    expect(found.locator(".nbp-trial")).to_have_text(
        "turned off after an error: ValueError: no such axis"
    )


def test_an_opened_record_shows_its_alerts_and_changes_nothing(panel: PanelPage) -> None:
    panel.show(880)
    gpt.say_all(panel, live=False, state="finished")
    panel.say(gpt.rules_message([{**one, "state": ""} for one in gpt.RULES]))
    found = opened(panel, "attention_logit_large")
    expect(found.locator(".nbp-trial")).to_have_text("opened record: read only")
    expect(found.locator("[data-threshold=most]")).to_have_attribute("readonly", "")
    expect(found.locator(".nbp-attach-here")).to_be_hidden()
    found.locator("[data-action=show]").click()
    assert panel.wait_sent("selection")["series"][-1] == ["blocks.2.attn", "attn_max_logit"]
    panel.say(gpt.alerts_message([]))
    expect(panel.page.locator(".nbp-no-alerts")).to_have_text("No alerts", use_inner_text=True)


def test_on_a_phone_no_line_of_the_foot_ends_with_a_dot(panel: PanelPage) -> None:
    for width, is_shown in ((880, True), (330, False)):
        panel.show(width)
        gpt.say_all(panel)
        panel.say(gpt.alerts_message([]))
        dot = panel.page.locator(".nbp-no-alerts .nbp-between")
        expect(dot).to_be_visible(visible=is_shown)


def test_without_alerts_the_foot_says_who_watches_and_who_waits_for_what(panel: PanelPage) -> None:
    panel.say(gpt.alerts_message([]))
    expect(panel.page.locator(".nbp-no-alerts")).to_have_text(
        "No alerts · 7 rules watch, 1 waits for a series, 1 turned off", use_inner_text=True
    )
    panel.action("rules").click()
    rules = panel.page.get_by_role("dialog", name="Alert rules")
    expect(rules.locator("h3").first).to_have_text("Waiting for a series")
    expect(rules.locator(".nbp-rule-row").first).to_have_text("dead_unitsdead_fraction")
    expect(rules).to_contain_text("ValueError: no such axis")
    panel.picture("alert-rules-880")


def test_the_preset_is_offered_while_a_rule_waits_for_what_could_be_attached(
    panel: PanelPage,
) -> None:
    offer = panel.action("attach-alerts")
    panel.say(gpt.alerts_message([]))
    waiting = gpt.rule("rank_collapse", [], "waits for output_std")
    panel.say(gpt.rules_message([waiting]))
    expect(offer).to_be_hidden()  # this kernel attaches no presets by a click
    panel.say(gpt.status_message(can={"preset": ""}))
    expect(offer).to_have_text("attach its quantities")
    panel.say(gpt.rules_message([{**waiting, "state": "waits for loss"}]))
    expect(offer).to_be_hidden()  # which the loop logs
    attached = [("wte", "output_std", "every(1)")]
    panel.say(gpt.rules_message([waiting]))
    panel.say(gpt.status_message(attached=attached, tallies=[(1, 1.0, 0.1)], can={"preset": ""}))
    expect(offer).to_be_hidden()
    panel.say(gpt.status_message(can={"preset": ""}))
    offer.click()
    sent = panel.wait_sent("preset")
    assert sent["name"] == "alerts"
    expect(offer).to_be_hidden()
    panel.say(gpt.status_message(tickets=[kernel.ticket(sent["id"], "applied", 413)]))
    expect(panel.page.locator(".nbp-no-alerts .nbp-ticket")).to_have_text("✓ attached at step 413")


@pytest.mark.parametrize("width", [640, 880, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_drawer_fits_every_width(bare: PanelPage, width: int, theme: str) -> None:
    bare.show(width, theme, lab=True)
    gpt.say_all(bare)
    bare.say(gpt.alerts_message([*gpt.ALERTS, *LATE]))
    opened(bare, "attention_logit_large")
    drawer(bare).locator(".nbp-alerts-scroll").evaluate("(node) => { node.scrollTop = 0; }")
    wide = bare.page.evaluate(
        "() => { const node = document.querySelector('.nbp-drawer');"
        " return node.scrollWidth - node.clientWidth; }"
    )
    assert wide == 0
    bare.picture(f"alert-{theme}-{width}")
    assert bare.errors == []


@pytest.mark.parametrize("width", [320, 598, 640, 700, 880])
def test_the_head_of_the_list_is_whole_at_any_width(bare: PanelPage, width: int) -> None:
    bare.show(width)
    gpt.say_all(bare)
    bare.say(gpt.status_message(can={"attach": "", "preset": ""}))
    bare.say(gpt.rules_message([*gpt.RULES, gpt.rule("wide", [], "waits for output_rms")]))
    bare.say({"v": 1, "type": "messages", "live": True, "rows": [], "answered": "", "problem": ""})
    bare.action("alerts").click()
    head = drawer(bare).locator(".nbp-alerts-head")
    expect(head).to_contain_text("severe ones pause the run")
    expect(head).to_contain_text("get messages")
    expect(head).to_contain_text("attach its quantities")
    edge = bare.root.evaluate("(node) => node.getBoundingClientRect().right")
    ends = head.evaluate(
        "(node) => [...node.querySelectorAll('button, label')]"
        ".filter((one) => one.checkVisibility())"
        ".map((one) => one.getBoundingClientRect().right)"
    )
    assert len(ends) >= 4
    assert max(ends) <= edge


REMARKS = [
    gpt.remark(20, "unused_output", ["drop"], "the loss does not use its output"),
    gpt.remark(120, "rate_jump", ["(root)"], "the learning rate is 10 times what it was"),
]


def test_remarks_stand_below_the_alerts_and_are_counted_apart(bare: PanelPage) -> None:
    panel = shown(bare)
    panel.say(gpt.alerts_message([*REMARKS, *gpt.ALERTS]))
    expect(panel.action("alerts")).to_have_text("7 alerts, 1 cause · 2 remarks")
    panel.action("alerts").click()
    remarks = drawer(panel).get_by_role("region", name="Remarks")
    expect(remarks.get_by_role("listitem")).to_have_text(
        [
            re.compile(r"20\s*drop: the loss does not use its output"),
            re.compile(r"120\s*The learning rate is 10 times what it was"),
        ]
    )
    expect(remarks.locator(".nbp-severity")).to_have_count(0)
    unused = panel.page.locator(".nbp-row[data-module=drop]")
    expect(unused.locator(".nbp-badge")).to_be_hidden()
    panel.picture("remarks")


def test_what_explains_an_alert_stands_before_it_in_the_foot_and_in_the_list(
    bare: PanelPage,
) -> None:
    panel = shown(bare)
    rose = "the learning rate rose 100 times at once, from 0.003 to 0.3"
    jump = gpt.remark(400, "rate_jump", ["(root)"], rose)
    spike = gpt.alert(402, "loss_spike", ["(root)"], ["loss"], "the loss rose to 1.12")
    said = f"After {rose}: the loss rose to 1.12"
    panel.say(gpt.alerts_message([jump, spike]))
    expect(panel.page.locator(".nbp-newest")).to_have_text(said)
    panel.action("alerts").click()
    expect(drawer(panel).locator(".nbp-alert-text")).to_have_text(re.compile(re.escape(said)))
    panel.say(gpt.alerts_message([spike]))
    expect(panel.page.locator(".nbp-newest")).to_have_text("The loss rose to 1.12")


def test_without_an_alert_the_remarks_are_still_found(bare: PanelPage) -> None:
    panel = shown(bare)
    panel.say(gpt.alerts_message(REMARKS[:1]))
    expect(panel.page.locator(".nbp-no-alerts")).to_contain_text("No alerts")
    count = panel.action("alerts")
    expect(count).to_have_text("1 remark")
    count.click()
    expect(drawer(panel).get_by_role("region", name="Remarks")).to_contain_text("may be intended")


JUMP = (
    "Loss jumped from 1.4 to 10.8 at step 259, right after the learning rate was raised 300 times, "
    "from 0.001 to 0.3"
)


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1100, "dark"), (700, "light")])
def test_the_sentence_of_an_alert_has_the_first_line_of_the_foot(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = bare.show(width, theme)
    gpt.say_all(panel, budget="nine quantities less often")
    panel.say(gpt.alerts_message([gpt.alert(259, "loss_spike", ["(root)"], ["loss"], JUMP)]))
    foot, newest = panel.page.locator(".nbp-foot"), panel.page.locator(".nbp-newest > span")
    expect(newest).to_contain_text("raised 300 times")
    if width > 800:
        assert newest.evaluate("(words) => words.scrollWidth <= words.clientWidth")
    budget = panel.page.locator(".nbp-budgeted")
    assert budget.bounding_box()["y"] >= newest.bounding_box()["y"] + 12  # type: ignore[index]
    assert foot.evaluate("(foot) => foot.scrollWidth <= foot.clientWidth")
    panel.picture(f"foot-alert-{width}-{theme}")
