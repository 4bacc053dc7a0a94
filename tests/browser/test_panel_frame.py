"""What stands around the plots: the bar, the keys, the foot."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser import alert_messages as gpt
from tests.browser.panel_messages import (
    WEIGHTED,
    heat_message,
    model_message,
    status_message,
    ticket,
)
from tests.browser.panel_page import PanelPage, introduce

LR = {"name": "lr", "value": 0.003, "low": 0.0, "high": None, "log": True, "groups": []}


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    return introduce(bare.show())


RULE = {
    "summary": "What it looks for.",
    "severity": "warning",
    "explained_by": [],
    "thresholds": {},
    "rows": 1,
    "steps": 0,
}


def test_the_top_bar_says_where_training_is(shown: PanelPage) -> None:
    bar = shown.page.locator(".nbp-bar")
    for text in ("digits-cnn", "training", "step 1\u202f240", "· 87.4/s", "loss 0.213"):
        expect(bar).to_contain_text(text)
    expect(bar).to_contain_text("probes 2.1 %")
    expect(shown.root).to_have_attribute("data-state", "training")
    expect(shown.root).to_have_attribute("data-route", "own subshell")


def test_the_top_bar_says_how_far_training_will_go_as_far_as_that_is_known(
    shown: PanelPage,
) -> None:
    counter = shown.page.locator(".nbp-step")
    expect(counter).to_have_text("step 1\u202f240", use_inner_text=True)
    known = {"step": 512, "end_step": 1875, "epoch": 2, "seconds_left": 171.0}
    for changes, text in (
        ({}, "step 512 of 1\u202f875 · epoch 2 · 3\u202fmin left"),
        ({"seconds_left": 8.2}, "step 512 of 1\u202f875 · epoch 2 · 9\u202fs left"),
        ({"seconds_left": None}, "step 512 of 1\u202f875 · epoch 2"),
        ({"end_step": -1, "seconds_left": None}, "step 512 · epoch 2"),
        ({"epoch": -1}, "step 512 of 1\u202f875 · 3\u202fmin left"),
        ({"step": 0, "epoch": 0}, "step 0 of 1\u202f875 · epoch 0 · 3\u202fmin left"),
    ):
        shown.say(status_message(**{**known, **changes}))
        expect(counter).to_have_text(text, use_inner_text=True)


@pytest.mark.parametrize("width", [1060, 640])
def test_how_far_it_will_go_takes_no_line_of_its_own(width: int, bare: PanelPage) -> None:
    panel = bare.show(width)
    panel.say(model_message())
    panel.say(status_message())
    bar = panel.page.locator(".nbp-bar")
    before = bar.bounding_box()
    panel.say(status_message(step=512, end_step=1875, epoch=2, seconds_left=171.0))
    expect(bar).to_contain_text("left")
    after = bar.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] == before["height"]
    assert panel.root.evaluate("(root) => root.scrollWidth <= root.clientWidth")


def test_pause_becomes_resume_and_a_greyed_control_says_why(shown: PanelPage) -> None:
    expect(shown.action("step")).to_be_disabled()
    expect(shown.action("step")).to_have_attribute("title", "Pause first")
    shown.action("pause").click()
    assert shown.wait_sent("control")["action"] == "pause"
    shown.say(status_message(state="paused"))
    shown.action("resume").click()
    asked = shown.wait_sent("control", 2)
    assert asked["action"] == "resume"
    shown.say(status_message(tickets=[ticket(asked["id"], "refused", text="the run has ended")]))
    expect(shown.page.locator(".nbp-route")).to_have_text("the run has ended")


@pytest.mark.parametrize("width", [640, 880])
def test_where_a_run_ended_is_never_cut(bare: PanelPage, width: int) -> None:
    panel = bare.show(width)
    panel.say({**model_message(), "name": "a-name-of-a-run-that-is-long"})
    panel.say(
        status_message(
            state="finished", step=112336, end_step=112336, epoch=14, budget="budget 5 %"
        )
    )
    panel.say({"v": 1, "type": "knobs", "knobs": [LR], "hint": None, "last": None})
    route = panel.page.locator(".nbp-route")
    expect(route).to_have_text("ended at step 112\u202f336")
    panel.picture(f"ended-{width}")
    assert route.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    assert panel.root.evaluate("(node) => node.scrollWidth <= node.clientWidth + 1")


def test_a_finished_run_shows_when_it_ended_in_place_of_its_controls(shown: PanelPage) -> None:
    shown.say(status_message(state="finished"))
    expect(shown.page.locator(".nbp-controls")).to_be_hidden()
    expect(shown.page.locator(".nbp-route")).to_have_text("ended at step 1\u202f240")


def test_an_opened_record_has_neither_attach_box_nor_controls(bare: PanelPage) -> None:
    panel = bare.show()
    panel.say(model_message(live=False))
    panel.say(status_message(state="finished", attached=[], route=""))
    expect(panel.page.locator(".nbp-attach")).to_be_hidden()
    expect(panel.page.locator(".nbp-controls")).to_be_hidden()
    expect(panel.page.locator(".nbp-route")).to_have_text("opened record")
    panel.say(status_message(state="finished", attached=[], recorded={}))
    expect(panel.page.locator(".nbp-empty")).to_have_text("This record has no values.")


def test_of_an_opened_record_nothing_folds_away_where_it_is_narrow(bare: PanelPage) -> None:
    panel = bare.show(640)
    panel.say(model_message(live=False))
    panel.say(status_message(state="finished"))
    expect(panel.action("words")).to_be_hidden()
    panel.say(model_message())
    panel.say(status_message())
    expect(panel.action("words")).to_be_visible()


@pytest.mark.parametrize("width", [320, 640, 880, 1280])
def test_while_nothing_is_wrong_the_foot_is_whole_and_at_880_one_line(
    bare: PanelPage, width: int
) -> None:
    panel = bare.show(width)
    panel.say(model_message())
    rules = [{**RULE, "name": f"rule_{k}", "state": "on"} for k in range(14)]
    rules += [
        {**RULE, "name": f"waiting_{k}", "state": "waits for output_histogram"} for k in range(15)
    ]
    panel.say({"v": 1, "type": "rules", "rules": rules, "trial": None})
    panel.say(status_message(can={"preset": ""}, attached=[], tallies=[]))
    foot = panel.page.locator(".nbp-foot")
    expect(foot).to_contain_text("14 rules watch, 15 wait for a series")
    cut = """(foot) => [...foot.querySelectorAll("button, span")]
      .filter((node) => node.offsetParent)
      .filter((one) => one.getBoundingClientRect().right > foot.getBoundingClientRect().right)
      .map((node) => node.textContent)"""
    assert foot.evaluate(cut) == []
    expect(foot).to_contain_text("attach their quantities")
    if width >= 880:
        assert foot.evaluate("(foot) => foot.offsetHeight") < 42
    panel.picture(f"foot-{width}")


def test_keys_act_in_the_panel_and_do_not_leak_to_the_notebook(shown: PanelPage) -> None:
    page = shown.page
    page.evaluate(
        "() => { window.leaked = []; addEventListener('keydown', (e) => leaked.push(e.key)); }"
    )
    shown.draw(*heat_message(np.ones((2, 100)), ["stem.conv1", "head.fc1"]))
    shown.row("stem.conv1").click()
    page.keyboard.press("a")
    assert shown.wait_sent("attach")["where"] == ["stem.conv1"]
    page.keyboard.press(" ")
    assert shown.wait_sent("control")["action"] == "pause"
    page.keyboard.press("/")
    expect(page.locator("[data-role=search]")).to_be_focused()
    page.keyboard.type("a b/")  # in a text field keys are text
    expect(page.locator("[data-role=search]")).to_have_value("a b/")
    page.keyboard.press("Escape")
    shown.heat.focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("stem.conv1  step 50")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(tip).to_contain_text("head.fc1  step 51")
    page.keyboard.press("Enter")
    assert shown.wait_sent("selection")["series"] == [["head.fc1", "grad_norm"]]
    assert page.evaluate("leaked") == []
    page.keyboard.press("Control+s")
    assert page.evaluate("leaked") == ["Control", "s"]
    assert len(shown.sent("control")) == 1


@pytest.mark.parametrize("n", [0, 1])
def test_without_other_problems_none_are_counted(shown: PanelPage, n: int) -> None:
    problem = {
        "module": "head",
        "quantity": "grad_norm",
        "text": "it",
        "count": 1,
        "disabled": False,
    }
    shown.say(status_message(problems=[problem] * n))
    expect(shown.page.locator(".nbp-problem")).to_have_count(n)
    assert " more" not in shown.page.locator(".nbp-problems").evaluate("(one) => one.textContent")


def test_a_problem_stands_in_the_foot_and_can_be_shown(shown: PanelPage) -> None:
    problems = [
        {"module": "head.fc2", "quantity": "grad_norm", "text": text, "count": n, "disabled": n > 3}
        for text, n in [("values are NaN since step 410", 12), ("second", 1), ("third", 1)]
    ]
    shown.say(status_message(problems=problems))
    foot = shown.page.locator(".nbp-problems")
    expect(foot).to_contain_text(
        "▲ head.fc2 · grad_norm: values are NaN since step 410 (12 times); this probe is off now"
    )
    shown.page.get_by_text("and 2 more").click()
    expect(foot.locator(".nbp-problem")).to_have_count(3)
    foot.get_by_text("show").first.click()
    expect(shown.row("head.fc2")).to_have_attribute("aria-selected", "true")
    shown.page.wait_for_function("sent.at(-1).series?.length === 1")
    assert shown.sent("selection")[-1]["series"] == [["head.fc2", "grad_norm"]]


def test_the_foot_says_where_the_record_is_and_what_was_lost(shown: PanelPage) -> None:
    foot = shown.page.locator(".nbp-foot")
    expect(foot).to_contain_text(
        "runs/digits-cnn.zarr3.2\u202fMB · flushed 0.4\u202fs ago · 0 dropped"
    )
    shown.say(status_message(dropped_rows=1234, flushed_age_s=None))
    expect(foot).to_contain_text("not flushed yet · 1\u202f234 dropped")
    expect(foot.locator(".nbp-place .nbp-bad")).to_have_text(" · 1\u202f234 dropped")


@pytest.mark.parametrize("width", range(640, 1500, 86))
def test_the_place_of_the_record_is_readable_or_not_there(bare: PanelPage, width: int) -> None:
    panel = introduce(bare.show(width), record="/home/somebody/trainings/runs/second.zarr")
    panel.say(gpt.rules_message())
    row = panel.page.locator(".nbp-place").bounding_box()
    record = panel.page.locator(".nbp-record").bounding_box()
    facts = panel.page.locator(".nbp-facts").bounding_box()
    assert row is not None
    assert facts is not None
    assert facts["y"] + facts["height"] <= row["y"] + row["height"] + 1, "size and age are seen"
    if record is not None and record["y"] < row["y"] + row["height"]:
        assert record["width"] > 80, "12 letters"
        assert record["x"] + record["width"] <= facts["x"]


@pytest.mark.parametrize("state", ["training", "finished"])
def test_what_a_run_that_has_ended_cannot_do_is_not_offered(bare: PanelPage, state: str) -> None:
    can = {"budget": "", "preset": ""}
    panel = introduce(bare.show(1100), state=state, budget="update_ratio every 4 steps", can=can)
    rules = [{**RULE, "name": "one", "state": "on"}]
    rules += [{**RULE, "name": "other", "state": "waits for output_histogram"}]
    panel.say({"v": 1, "type": "rules", "rules": rules, "trial": None})
    foot = panel.page.locator(".nbp-foot")
    offers = [panel.action(name) for name in ("lift-budget", "attach-alerts")]
    if state == "training":
        expect(foot).to_contain_text("1 rule watches, 1 waits for a series")
        expect(foot).to_contain_text("flushed 0.4")
        for offer in offers:
            expect(offer).to_be_visible()
    else:
        expect(foot).to_contain_text("1 rule watched, 1 waited for a series")
        expect(foot).not_to_contain_text("flushed")
        for offer in offers:
            expect(offer).to_be_hidden()


def test_the_foot_names_the_accelerator_that_the_model_is_on(shown: PanelPage) -> None:
    facts = shown.page.locator(".nbp-facts")
    expect(facts).to_have_text("3.2\u202fMB · flushed 0.4\u202fs ago")
    shown.say(status_message(device="cuda:0, NVIDIA H100"))
    expect(facts).to_have_text("cuda:0, NVIDIA H100 · 3.2\u202fMB · flushed 0.4\u202fs ago")


def test_the_foot_of_a_record_that_grows_elsewhere_says_how_old_the_picture_is(
    shown: PanelPage,
) -> None:
    foot = shown.page.locator(".nbp-foot")
    shown.say(model_message(live=False))
    shown.say(status_message(flushed_age_s=4.2))
    expect(foot).to_contain_text("3.2\u202fMB · last row 4.2\u202fs ago")
    shown.say(status_message(flushed_age_s=65.0))
    expect(foot).to_contain_text("last row 65\u202fs ago")
    shown.say(status_message(state="finished", flushed_age_s=None))
    expect(foot).not_to_contain_text("ago")


def test_code_is_shown_and_a_file_is_saved(shown: PanelPage) -> None:
    shown.page.locator("[data-export=code]").click()
    assert shown.wait_sent("export")["kind"] == "code"
    answer = {"v": 1, "type": "exported", "filename": "view.py", "mime": "text/x-python"}
    shown.say({**answer, "text": "import xarray as xr\n"})
    expect(shown.page.locator(".nbp-code textarea")).to_have_value("import xarray as xr\n")
    shown.page.get_by_text("Picture ↓").click()
    shown.page.locator("[data-export=png]").click()
    assert shown.wait_sent("export", 2)["kind"] == "png"
    with shown.page.expect_download() as download:
        shown.say({**answer, "filename": "view.png", "mime": "image/png"}, [b"\x89PNG picture"])
    assert download.value.suggested_filename == "view.png"
    assert download.value.path().read_bytes() == b"\x89PNG picture"
    shown.say({**answer, "error": "nothing to export"})
    expect(shown.page.locator("[data-role=export]")).to_have_text("nothing to export")


def test_growing_numbers_move_nothing(shown: PanelPage) -> None:
    boxes = """() => [...document.querySelectorAll(
      ".nbp-controls, .nbp-scalar, .nbp-words, .nbp-tree, .nbp-attach, .nbp-heat, .nbp-lines," +
      ".nbp-foot")]
      .map((node) => JSON.stringify(node.getBoundingClientRect()))"""
    shown.say(status_message(step=9, rate=3.2, cost_percent=0.1, nbytes=10, flushed_age_s=0.1))
    shown.wait_frame()  # laid out
    before = shown.page.evaluate(boxes)
    shown.say(
        status_message(step=99_999, rate=8741.0, cost_percent=12.5, nbytes=9_990_000_000),
    )
    shown.draw(*heat_message(np.ones((8, 50)), WEIGHTED))
    assert shown.page.evaluate(boxes) == before
