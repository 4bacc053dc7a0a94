"""The life of a view: what it says to the kernel, what it survives, what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_type_hints

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from notebook_probe.explorer.messages import from_view, wire
from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    selection_message,
    status_message,
    view_row,
)
from tests.browser.panel_page import RENDER, PanelPage, introduce

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
def own(bare: PanelPage) -> Iterator[PanelPage]:
    """The page, whose document no other test gets."""
    yield bare
    bare.forget()


@pytest.fixture
def still(page: Page) -> PanelPage:
    """A panel whose time stands still but for what the test lets pass."""
    page.clock.install(time=0)
    page.clock.pause_at(1)
    return introduce(PanelPage(page).show())


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
    shown.action("line-options").click()
    shown.page.locator("[data-role=log-y] [data-value=false]").click()
    shown.page.keyboard.press("Escape")
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
    expect(shown.page.locator(".nbp-trouble")).to_contain_text("Error in the panel")


def test_a_closed_view_leaves_nothing_behind(own: PanelPage) -> None:
    own.show()
    own.page.evaluate("cleanUp()")
    own.page.evaluate(COUNT_LIVES)
    own.page.evaluate(RENDER)
    panel = introduce(own)
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


def test_two_views_of_one_panel_are_two_to_the_kernel(own: PanelPage) -> None:
    shown = introduce(own.show())
    shown.page.evaluate(
        "document.body.append(Object.assign(document.createElement('div'), { id: 'second' }))"
    )
    shown.page.evaluate(RENDER.replace("cell", "second"))
    introduce(shown)
    assert len({message["view"] for message in shown.sent("hello")}) == 2
    shown.draw(*heat_message(np.ones((1, 5)), ["stem.conv1"]))
    shown.page.wait_for_function("sent.filter((message) => message.type === 'ack').length === 2")


def test_the_echo_of_an_older_click_does_not_undo_a_newer_one(still: PanelPage) -> None:
    word = still.action("line-options")
    word.click()
    still.page.locator("[data-role=log-y] [data-value=false]").click()
    still.page.locator("[data-role=log-x] [data-value=true]").click()
    still.say(selection_message(log_y=False))  # the answer to the first click
    expect(word).to_have_text("log x")
    still.say(selection_message(log_y=False, log_x=True))
    expect(word).to_have_text("log x")
    still.say(selection_message(log_y=True))  # somebody else changed it
    expect(word).to_have_text("log y")


def test_the_kernel_has_the_last_word_on_the_selection(still: PanelPage) -> None:
    word = still.action("line-options")
    word.click()
    still.page.locator("[data-role=log-y] [data-value=false]").click()
    still.say(selection_message(smooth=0.5))
    expect(word).to_have_text("plain")
    still.page.clock.run_for(1100)
    expect(word).to_have_text("log y · smooth 0.5")
    expect(still.page.locator(".nbp-weight")).to_have_text("0.50")


def test_a_silent_kernel_is_named_after_three_seconds(still: PanelPage) -> None:
    still.wait_sent("visible")
    clock, route = still.page.clock, still.page.locator(".nbp-route")
    expect(route).to_have_text("")
    clock.run_for(4000)
    expect(route).to_have_text("kernel busy or restarted")
    still.say(status_message(step=1300))
    expect(route).to_have_text("")
    still.say(status_message(state="idle"))
    clock.run_for(4000)  # an idle run has nothing to say
    expect(route).to_have_text("")
    still.action("pause").click()
    clock.run_for(4000)  # but an answer to a click is due
    expect(route).to_have_text("kernel busy or restarted")


@pytest.mark.parametrize(
    ("status", "says", "title"),
    [
        ("dead", "kernel dead", "nbp.open_run("),
        ("autorestarting", "kernel restarted", "nbp.open_run("),
        ("busy", "kernel busy", "No message for some seconds"),
        ("unknown", "kernel busy or restarted", "No message for some seconds"),
    ],
)
def test_a_front_end_that_knows_the_kernel_has_it_named(
    still: PanelPage, status: str, says: str, title: str
) -> None:
    still.wait_sent("visible")
    clock, route = still.page.clock, still.page.locator(".nbp-route")
    known = "(status) => { fake.widget_manager = { kernel: { status } }; }"
    still.page.evaluate(known, "idle")
    clock.run_for(1000)
    expect(route).to_have_text("")
    still.page.evaluate(known, status)
    clock.run_for(4000)
    expect(route).to_have_text(says)
    expect(route).to_have_attribute("title", re.compile(re.escape(title)))
    still.page.evaluate(known, "idle")  # of a new kernel, or of the old one
    clock.run_for(1000)
    expect(still.page.locator(".nbp-bar")).to_have_attribute("data-state", "silent")
    still.say(status_message(step=1300))
    expect(route).to_have_text("")


def test_a_killed_idle_kernel_is_named_at_once(still: PanelPage) -> None:
    still.wait_sent("visible")
    still.say(status_message(state="idle"))
    still.page.evaluate("() => { fake.widget_manager = { kernel: { status: 'dead' } }; }")
    still.page.clock.run_for(600)
    expect(still.page.locator(".nbp-route")).to_have_text("kernel dead")


def test_an_idle_kernel_is_not_called_silent_as_soon_as_something_is_clicked(
    still: PanelPage,
) -> None:
    """It has said nothing for long, as it had nothing to say."""
    still.wait_sent("visible")
    clock, route, word = still.page.clock, still.page.locator(".nbp-route"), ".nbp-state"
    still.say(status_message(state="idle"))
    clock.run_for(60_000)
    still.row("head.fc1").click()  # which may need no answer
    clock.run_for(10_000)
    expect(route).to_have_text("")
    still.action("pause").click()
    clock.run_for(2000)
    expect(route).to_have_text("")
    expect(still.page.locator(word)).to_have_text("idle")
    still.say(status_message(state="idle"))
    clock.run_for(10_000)
    expect(still.page.locator(word)).to_have_text("idle")


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


def test_a_training_elsewhere_that_is_not_heard_is_not_said_to_train(still: PanelPage) -> None:
    bar, word = still.page.locator(".nbp-bar"), still.page.locator(".nbp-state")
    still.say(status_message(unheard=True))
    expect(word).to_have_text("no answer")
    expect(word).to_have_attribute("title", "The last answer of the training: training")
    expect(bar).to_have_attribute("data-state", "silent")
    expect(bar.locator(".nbp-rate")).to_have_text("")
    expect(bar.locator(".nbp-route")).to_have_text("")
    still.say(status_message())
    expect(word).to_have_text("training")
    expect(bar.locator(".nbp-rate")).to_have_text("· 87.4/s")


def test_a_click_that_cannot_be_sent_says_so_and_throws_nothing(shown: PanelPage) -> None:
    shown.page.evaluate("() => { fake.send = () => { throw new Error('Cannot send'); } }")
    shown.row("head.fc1").click()
    shown.action("attach").click()
    expect(shown.ticket).to_contain_text("✕not sent: the kernel has ended")
    expect(shown.page.locator(".nbp-route")).to_have_text("kernel busy or restarted")
    shown.action("pause").click()
    expect(shown.action("pause")).not_to_have_class(re.compile("nbp-asked"))
    assert shown.errors == []


def colour_of(node: Locator) -> str:
    return str(node.evaluate("(node) => getComputedStyle(node).color"))
