"""The life of a view: what it says to the kernel, what it survives, what it leaves behind."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from notebook_probe.explorer.messages import from_view, wire
from tests.browser.panel_messages import (
    WEIGHTED,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
    ticket,
    view_row,
)
from tests.browser.panel_page import RENDER, PanelPage

pytestmark = pytest.mark.browser

SAID = {
    "hello": from_view.Hello,
    "visible": from_view.Visible,
    "viewport": from_view.Viewport,
    "ack": from_view.Ack,
    "selection": wire.SelectionMessage,
    "attach": from_view.AttachClick,
    "detach": from_view.DetachClick,
    "control": from_view.ControlClick,
    "compiled": from_view.CompiledClick,
    "fold": from_view.FoldClick,
    "export": from_view.ExportClick,
}
CONV1 = ("stem.conv1", "grad_norm")

# What lies outside the panel's own elements and would outlive it. Counted is only what the panel
# itself sets up, as its stack tells: the test driver observes and listens too.
COUNT_LIVES = """() => {
  window.alive = 0;
  const ours = () => new Error().stack.includes("blob:");
  for (const name of ["ResizeObserver", "IntersectionObserver", "MutationObserver"]) {
    const Real = window[name];
    window[name] = class extends Real {
      constructor(...given) { super(...given); this.counted = ours(); alive += this.counted; }
      disconnect() { super.disconnect(); alive -= this.counted; }
    };
  }
  const [set, clear, listen] = [setInterval, clearInterval, EventTarget.prototype.addEventListener];
  window.setInterval = (...given) => { alive += ours(); return set(...given); };
  window.clearInterval = (timer) => { alive -= ours(); clear(timer); };
  EventTarget.prototype.addEventListener = function (type, run, options) {
    const outlives = this === document || this === window || this instanceof MediaQueryList;
    if (outlives && ours()) {
      alive += 1;
      if (options?.signal) listen.call(options.signal, "abort", () => { alive -= 1; });
    }
    return listen.call(this, type, run, options);
  };
}"""


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    return introduce(bare.show())


@pytest.fixture
def still(page: Page) -> PanelPage:
    """A panel whose time stands still but for what the test lets pass."""
    page.clock.install(time=0)
    page.clock.pause_at(1)
    return introduce(PanelPage(page).show())


def introduce(panel: PanelPage, **status: Any) -> PanelPage:
    panel.say(model_message())
    panel.say(status_message(**status))
    panel.say(selection_message())
    return panel


def test_a_view_says_hello_first_and_then_how_wide_it_is(bare: PanelPage) -> None:
    panel = bare.show()
    viewport = panel.wait_sent("viewport")
    said = panel.page.evaluate("sent.map((message) => message.type)")
    assert said[0] == "hello"
    assert panel.wait_sent("visible")["visible"] is True
    assert 300 < viewport["widths"]["lines"] < 760
    assert 300 < viewport["widths"]["heat"] < 760
    view = panel.sent("hello")[0]["view"]
    assert len(view) > 8
    assert {message["view"] for message in panel.sent("visible")} == {view}


def test_everything_a_view_says_has_exactly_the_fields_of_the_contract(shown: PanelPage) -> None:
    shown.draw(*heat_message(np.ones((1, 5)), ["stem.conv1"]))
    shown.row("stem.conv1").click()
    shown.action("attach").click()
    shown.action("detach").click()
    shown.action("pause").click()
    compiled = {"kind": "compiled", "reason": "the model is compiled", "probes": [0]}
    shown.say(status_message(silent=[compiled]))
    shown.action("eager").click()
    shown.page.locator("[data-export=code]").click()
    shown.page.locator("[data-role=log-y]").click()
    shown.say({"v": 1, "type": "views", "rows": [view_row("depth")]})
    shown.action("fold").click()
    for kind in SAID:
        message = shown.wait_sent(kind)
        assert set(message) == set(get_type_hints(SAID[kind])), kind
        assert message["v"] == wire.VERSION


def test_a_view_out_of_sight_says_so(shown: PanelPage) -> None:
    shown.wait_sent("visible")
    shown.page.evaluate("document.getElementById('cell').style.marginTop = '5000px'")
    assert shown.wait_sent("visible", 2)["visible"] is False
    shown.page.evaluate("document.getElementById('cell').style.marginTop = '0'")
    assert shown.wait_sent("visible", 3)["visible"] is True
    shown.page.evaluate(
        """() => { Object.defineProperty(document, "hidden", { get: () => true });
        document.dispatchEvent(new Event("visibilitychange")); }"""
    )
    assert shown.wait_sent("visible", 4)["visible"] is False


def test_an_unknown_version_is_one_line_and_nothing_is_drawn(shown: PanelPage) -> None:
    message, buffers = heat_message(np.ones((1, 5)), ["stem.conv1"])
    shown.say({**message, "v": 2}, buffers)
    hint = shown.page.locator(".nbp-trouble")
    expect(hint).to_have_text(
        "This panel speaks version 1 of its messages, the kernel version 2: reload the page."
    )
    expect(shown.heat).to_have_attribute("data-rows", "0")


def test_a_message_of_an_unknown_kind_is_left_alone(shown: PanelPage) -> None:
    shown.say({"v": 1, "type": "something new"})
    expect(shown.page.locator(".nbp-trouble")).to_be_hidden()
    assert shown.errors == []


def test_a_broken_frame_is_reported_in_the_panel(shown: PanelPage) -> None:
    message, _ = heat_message(np.ones((1, 5)), ["stem.conv1"])
    shown.say(message, [])
    expect(shown.page.locator(".nbp-trouble")).to_contain_text("The panel stumbled")


def test_a_closed_view_leaves_nothing_behind(bare: PanelPage) -> None:
    bare.show()
    bare.page.evaluate("cleanUp()")
    bare.page.evaluate(COUNT_LIVES)
    bare.page.evaluate(RENDER)
    panel = introduce(bare)
    panel.say(selection_message(series=[CONV1]))
    panel.draw(*heat_message(np.ones((1, 5)), ["stem.conv1"]))
    panel.draw(*lines_message({CONV1: ([0, 1], [1.0, 2.0])}))
    panel.action("add").click()
    panel.say({"v": 1, "type": "views", "rows": [view_row("depth")]})
    assert panel.page.evaluate("alive") > 6
    panel.page.evaluate("cleanUp()")
    assert panel.page.evaluate("alive") == 0
    assert panel.page.evaluate("subscribers.length") == 0
    assert panel.sent("visible")[-1]["visible"] is False
    expect(panel.root).to_have_count(0)


def test_two_views_of_one_panel_are_two_to_the_kernel(shown: PanelPage) -> None:
    shown.page.evaluate(
        "document.body.append(Object.assign(document.createElement('div'), { id: 'second' }))"
    )
    shown.page.evaluate(RENDER.replace("cell", "second"))
    introduce(shown)
    assert len({message["view"] for message in shown.sent("hello")}) == 2
    shown.draw(*heat_message(np.ones((1, 5)), ["stem.conv1"]))
    shown.page.wait_for_function("sent.filter((message) => message.type === 'ack').length === 2")


def test_the_echo_of_an_older_click_does_not_undo_a_newer_one(still: PanelPage) -> None:
    log_y, log_x = (still.page.locator(f"[data-role={role}]") for role in ("log-y", "log-x"))
    log_y.click()
    log_x.click()
    still.say(selection_message(log_y=False))  # the answer to the first click
    expect(log_x).to_have_attribute("aria-pressed", "true")
    still.say(selection_message(log_y=False, log_x=True))
    expect(log_x).to_have_attribute("aria-pressed", "true")
    still.say(selection_message(log_y=True))  # somebody else changed it
    expect(log_x).to_have_attribute("aria-pressed", "false")


def test_the_kernel_has_the_last_word_on_the_selection(still: PanelPage) -> None:
    log_y = still.page.locator("[data-role=log-y]")
    log_y.click()
    still.say(selection_message(smooth=0.5))
    expect(log_y).to_have_attribute("aria-pressed", "false")
    still.page.clock.run_for(1100)
    expect(log_y).to_have_attribute("aria-pressed", "true")
    expect(still.page.locator(".nbp-weight")).to_have_text("0.50")


def test_a_silent_kernel_is_named_after_three_seconds(still: PanelPage) -> None:
    still.wait_sent("visible")
    clock, route = still.page.clock, still.page.locator(".nbp-route")
    expect(route).to_have_text("live: own subshell")
    clock.run_for(4000)
    expect(route).to_have_text("kernel busy or restarted")
    still.say(status_message(step=1300))
    expect(route).to_have_text("live: own subshell")
    still.say(status_message(state="idle"))
    clock.run_for(4000)  # an idle run has nothing to say
    expect(route).to_have_text("live: own subshell")
    still.action("pause").click()
    clock.run_for(4000)  # but an answer to a click is due
    expect(route).to_have_text("kernel busy or restarted")


@pytest.mark.parametrize("state", ["waiting", "training", "paused"])
def test_what_a_silent_kernel_said_last_is_greyed_and_not_called_the_state(
    still: PanelPage, state: str
) -> None:
    still.wait_sent("visible")
    bar, word = still.page.locator(".nbp-bar"), still.page.locator(".nbp-state")
    ink = colour_of(bar.locator(".nbp-step b"))
    still.say(status_message(state=state))
    still.page.clock.run_for(2000)
    expect(word).to_have_text(state)
    still.page.clock.run_for(2000)
    expect(word).to_have_text(f"no answer, {state} before")
    expect(bar).to_have_attribute("data-state", "silent")
    assert colour_of(bar.locator(".nbp-step b")) == colour_of(bar.locator(".nbp-cost")) != ink
    still.say(status_message(state=state, step=1300))
    expect(word).to_have_text(state)
    assert colour_of(bar.locator(".nbp-step b")) == ink


def test_a_click_that_cannot_be_sent_says_so_and_throws_nothing(shown: PanelPage) -> None:
    shown.page.evaluate("() => { fake.send = () => { throw new Error('Cannot send'); } }")
    shown.row("head.fc1").click()
    shown.action("attach").click()
    expect(shown.ticket).to_contain_text("✕not sent: the kernel has gone")
    expect(shown.page.locator(".nbp-route")).to_have_text("kernel busy or restarted")
    shown.action("pause").click()
    expect(shown.action("pause")).not_to_have_class(re.compile("nbp-asked"))
    assert shown.errors == []


def colour_of(node: Locator) -> str:
    return str(node.evaluate("(node) => getComputedStyle(node).color"))


def test_the_top_bar_says_where_training_is(shown: PanelPage) -> None:
    bar = shown.page.locator(".nbp-bar")
    for text in ("digits-cnn", "training", "step 1\u202f240", "87.4 steps/s", "loss 0.213"):
        expect(bar).to_contain_text(text)
    expect(bar).to_contain_text("probes cost 2.1 %")
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
    expect(panel.page.locator(".nbp-empty")).to_have_text("This record holds no values.")


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
        "runs/digits-cnn.zarr · 3.2\u202fMB · flushed 0.4\u202fs ago · 0 dropped"
    )
    shown.say(status_message(dropped_rows=1234, flushed_age_s=None))
    expect(foot).to_contain_text("not flushed yet · 1\u202f234 dropped")
    expect(foot.locator(".nbp-bad")).to_have_text(" · 1\u202f234 dropped")


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
      ".nbp-controls, .nbp-rate, .nbp-tree, .nbp-attach, .nbp-heat, .nbp-lines, .nbp-foot")]
      .map((node) => JSON.stringify(node.getBoundingClientRect()))"""
    shown.say(status_message(step=9, rate=3.2, cost_percent=0.1, nbytes=10, flushed_age_s=0.1))
    shown.wait_frame()  # laid out
    before = shown.page.evaluate(boxes)
    shown.say(
        status_message(step=99_999, rate=8741.0, cost_percent=12.5, nbytes=9_990_000_000),
    )
    shown.draw(*heat_message(np.ones((8, 50)), WEIGHTED))
    assert shown.page.evaluate(boxes) == before
