"""A slow press on every button, after an edit of each field: nothing moves, no click is lost."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import ElementHandle, Locator

from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_arranged import chart

PRESS_MS = 150  # a finger on a button
ROWS = ["stem.conv1", "stem.bn1", "block.conv2"]
LOSS = ("(root)", "loss")
CAN = dict.fromkeys(["attach", "detach", "preset", "look", "pause", "step", "stop", "budget"], "")
PROBES = {"v": 1, "type": "probes", "n_measured": 64, "step_s": 0.02, "budget": 5.0, "presets": []}

WATCH = """() => {
  if (window.press) return;
  const press = { down: null, moved: 0, clicked: null };
  window.press = press;
  const buttonOf = (event) => event.target.closest?.("button") ?? null;
  const place = (node) => { const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height]; };
  let before = [];
  document.addEventListener("pointerdown", (event) => {
    press.down = buttonOf(event);
    before = press.down ? place(press.down) : [];
  }, true);
  document.addEventListener("pointerup", () => {
    if (!press.down) return;
    const after = place(press.down);
    press.moved = Math.max(...before.map((one, k) => Math.abs(one - after[k])));
  }, true);
  document.addEventListener("click", (event) => {
    if (event.isTrusted) press.clicked = buttonOf(event); // the panel presses some itself
  }, true);
}"""
IS_FREE = """(button) => {
  const { x, y, width, height } = button.getBoundingClientRect();
  const at = document.elementFromPoint(x + width / 2, y + height / 2);
  return at !== null && (at === button || button.contains(at));
}"""
OUTCOME = """(button) => {
  if (press.down !== button) return "was not under the pointer";
  if (press.moved > 0.5) return `moved or changed by ${press.moved.toFixed(1)} px`;
  return press.clicked === button ? "" : "lost the click";
}"""


def filled(bare: PanelPage, width: int) -> PanelPage:
    """A panel with rows, lines and everything that a kernel allows."""
    bare.show(width)
    bare.say(model_message())
    bare.say(status_message(can=CAN, logged=["loss"]))
    bare.say(PROBES)
    bare.say(selection_message(series=[LOSS], charts=[chart(LOSS), chart()]))
    bare.draw(*heat_message([[1.0] * 40] * len(ROWS), ROWS, last_step=1239))
    bare.draw(*lines_message({LOSS: (range(100), [1.0] * 100)}))
    return bare


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


def press(panel: PanelPage, button: ElementHandle) -> str:
    """Press it slowly; what went wrong, "" for nothing."""
    panel.page.evaluate("() => Object.assign(press, { down: null, moved: 0, clicked: null })")
    box = button.bounding_box()
    if box is None:
        return "has gone"
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    panel.page.mouse.click(x, y, delay=PRESS_MS)
    return str(panel.page.evaluate(OUTCOME, button))


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
def test_no_press_is_lost_after_an_edit(bare: PanelPage, width: int, opener: str | None) -> None:
    scope = opened(filled(bare, width), opener)
    n_fields, n_buttons = shown(fields(scope)), shown(scope.locator("button"))
    assert n_buttons
    wrong: list[Any] = []
    n_pressed = 0
    each: list[int | None] = [*n_fields] or [None]  # a narrow panel has none
    for field in each:
        for place in n_buttons:
            scope = opened(filled(bare, width), opener)
            bare.page.evaluate(WATCH)
            # Taken before the edit, which may bring other buttons.
            button = scope.locator("button").nth(place).element_handle()
            if not button.evaluate(IS_FREE):
                continue  # out of sight, or below another one
            name = button.evaluate("(node) => node.dataset.action ?? node.textContent")
            if field is not None:
                edited(fields(scope).nth(field))
            outcome = press(bare, button)
            n_pressed += 1
            if outcome:
                wrong.append((field, name, outcome))
    assert wrong == []
    assert n_pressed
    bare.forget()  # what watches the whole document
