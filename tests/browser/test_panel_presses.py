"""A slow press on every button, after an edit of each field: nothing moves, no click is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import pytest
from playwright.sync_api import Browser, ElementHandle, Locator

from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage, one_page
from tests.browser.test_panel_arranged import chart

PRESS_MS = 150  # a finger on a button
ROWS = ["stem.conv1", "stem.bn1", "block.conv2"]
LOSS = ("(root)", "loss")
CAN = dict.fromkeys(["attach", "detach", "preset", "look", "pause", "step", "stop", "budget"], "")
PROBES = {"v": 1, "type": "probes", "n_measured": 64, "step_s": 0.02, "budget": 5.0, "presets": []}

WATCH = """() => {
  if (window.press) return;
  const watching = new AbortController();
  const press = { down: null, moved: 0, clicked: null, watching };
  const options = { capture: true, signal: watching.signal };
  window.press = press;
  const buttonOf = (event) => event.target.closest?.("button") ?? null;
  const place = (node) => { const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height]; };
  let before = [];
  document.addEventListener("pointerdown", (event) => {
    press.down = buttonOf(event);
    before = press.down ? place(press.down) : [];
  }, options);
  document.addEventListener("pointerup", () => {
    if (!press.down) return;
    const after = place(press.down);
    press.moved = Math.max(...before.map((one, k) => Math.abs(one - after[k])));
  }, options);
  document.addEventListener("click", (event) => {
    if (event.isTrusted) press.clicked = buttonOf(event); // the panel presses some itself
  }, options);
}"""
UNWATCH = "() => { window.press?.watching.abort(); delete window.press; }"
FREE = """(buttons) => {
  const isFree = (button) => {
    const { x, y, width, height } = button.getBoundingClientRect();
    const at = document.elementFromPoint(x + width / 2, y + height / 2);
    return at !== null && (at === button || button.contains(at));
  };
  return buttons.flatMap((one, k) => (one.checkVisibility() && isFree(one) ? [k] : []));
}"""
NAMED = "(button) => button.dataset.action ?? button.textContent"
AIMED = """(button) => {
  Object.assign(press, { down: null, moved: 0, clicked: null });
  if (!button.isConnected) return null;
  const { x, y, width, height } = button.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}"""
OUTCOME = """(button) => {
  if (press.down !== button) return "was not under the pointer";
  if (press.moved > 0.5) return `moved or changed by ${press.moved.toFixed(1)} px`;
  return press.clicked === button ? "" : "lost the click";
}"""


@dataclass(frozen=True)
class Press:
    """A finger on a button."""

    panel: PanelPage
    button: ElementHandle
    is_on: bool
    since: float

    def released(self) -> str:
        """Release the button, once the press was slow; return what went wrong, "" for nothing."""
        if not self.is_on:
            return "has gone"
        rest = PRESS_MS - 1000 * (time.monotonic() - self.since)
        if rest > 0:
            self.panel.page.wait_for_timeout(rest)
        self.panel.page.mouse.up()
        return str(self.button.evaluate(OUTCOME))


def begun(panel: PanelPage, button: ElementHandle) -> Press:
    """Begin to press a button, if it is still there."""
    middle = button.evaluate(AIMED)
    if middle is not None:
        panel.page.mouse.move(*middle)
        panel.page.mouse.down()
    return Press(panel, button, middle is not None, time.monotonic())


def press(panel: PanelPage, button: ElementHandle) -> str:
    """Press it slowly; what went wrong, "" for nothing."""
    return begun(panel, button).released()


@pytest.fixture(scope="module")
def another(browser: Browser) -> Iterator[PanelPage]:
    yield from one_page(browser)


@pytest.fixture
def pages(bare: PanelPage, another: PanelPage) -> Iterator[tuple[PanelPage, PanelPage]]:
    """Two pages: in one a panel is made ready while a button of the other is pressed."""
    yield bare, another
    bare.page.evaluate(UNWATCH)  # of the whole document, which other tests get


def filled(panel: PanelPage, width: int) -> PanelPage:
    """A panel with rows, lines and everything that a kernel allows."""
    panel.show(width)
    heat = heat_message([[1.0] * 40] * len(ROWS), ROWS, last_step=1239)
    lines = lines_message({LOSS: (range(100), [1.0] * 100)})
    panel.say_all(
        model_message(),
        # So slow that no silence of its kernel is news, however slow this machine is.
        status_message(can=CAN, logged=["loss"], steps_per_second=0.01),
        PROBES,
        selection_message(series=[LOSS], charts=[chart(LOSS), chart()]),
        heat,
        lines,
    )
    for message, _ in (heat, lines):
        panel.wait_painted(message)
    return panel


def fields(scope: Locator) -> Locator:
    return scope.locator("input:is([type=text], [type=search], :not([type])):not([readonly])")


def shown(nodes: Locator) -> list[int]:
    """Return those that are visible."""
    return [k for k, node in enumerate(nodes.all()) if node.is_visible()]


def opened(panel: PanelPage, opener: str | None) -> Locator:
    """The panel, or the dialog that a button of it opens."""
    if opener is None:
        return panel.root
    panel.action(opener).first.click()
    return panel.page.get_by_role("dialog")


def begun_after_edit(panel: PanelPage, scope: Locator, place: int, field: int | None) -> Press:
    """Begin to press a button after an edit."""
    panel.page.evaluate(WATCH)
    # Taken before the edit, which may bring other buttons.
    button = scope.locator("button").nth(place).element_handle()
    if field is not None:
        edited(fields(scope).nth(field))
    return begun(panel, button)


def edited(field: Locator) -> None:
    """Type into a field and leave the focus there."""
    field.click()
    field.press_sequentially("1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "opener"),
    [(640, None), (640, "line-options")]
    + [
        (width, opener)
        for width in (880, 1280)
        for opener in (None, "line-options", "probes", "saved-views", "chart-options")
    ],
)
def test_no_press_is_lost_after_an_edit(
    pages: tuple[PanelPage, PanelPage], width: int, opener: str | None
) -> None:
    scope = opened(filled(pages[0], width), opener)
    n_fields = shown(fields(scope))
    each: list[int | None] = [*n_fields] or [None]  # a narrow panel has none
    # Others are out of sight, or below another one.
    free: list[int] = scope.locator("button").evaluate_all(FREE)
    assert free
    wrong: list[Any] = []

    def release(field: int | None, one: Press) -> None:
        if outcome := one.released():
            wrong.append((field, one.button.evaluate(NAMED), outcome))

    waiting: list[tuple[int | None, Press]] = []
    for panel, (field, place) in zip(cycle(pages), product(each, free), strict=False):
        scope = opened(filled(panel, width), opener)
        waiting.append((field, begun_after_edit(panel, scope, place, field)))
        if len(waiting) == len(pages):
            release(*waiting.pop(0))
    for field, one in waiting:
        release(field, one)
    assert wrong == []
