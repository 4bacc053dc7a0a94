"""One chart in the whole window, and changes of the view that are taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.panel_messages import selection_message
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_arranged import (
    ACCURACY,
    LOSS,
    NORM,
    chart,
    charts,
    check_shown,
    drawn,
)

THREE: Any = [chart(LOSS), chart(ACCURACY), chart(NORM)]


def enlarged(bare: PanelPage, at: int = 0, **options: Any) -> PanelPage:
    panel = drawn(bare, charts=THREE, **options)
    panel.action("enlarge-chart").nth(at).click()
    return panel


def test_a_chart_takes_the_whole_window_and_gives_it_back(bare: PanelPage) -> None:
    panel = enlarged(bare, 1)
    check_shown(panel, [["accuracy"]])
    expect(panel.page.locator(".nbp-enlarged-name")).to_have_text("2 of 3: accuracy")
    expect(panel.heat).to_be_hidden()
    [only] = charts(panel)
    high = panel.page.evaluate("innerHeight")
    assert only["bottom"] - only["top"] > 0.6 * high
    panel.page.keyboard.press("Escape")
    check_shown(panel, [["loss"], ["accuracy"], ["block.conv2 · grad_norm"]])
    expect(panel.heat).to_be_visible()
    expect(panel.action("enlarge-chart").nth(1)).to_be_focused()


def test_the_next_and_the_previous_chart_come_by_buttons_and_keys(bare: PanelPage) -> None:
    panel = enlarged(bare)
    panel.page.get_by_role("button", name="next ›").click()
    check_shown(panel, [["accuracy"]])
    panel.page.keyboard.press("PageDown")
    check_shown(panel, [["block.conv2 · grad_norm"]])
    panel.page.keyboard.press("PageDown")
    check_shown(panel, [["loss"]])
    panel.page.keyboard.press("PageUp")
    expect(panel.page.locator(".nbp-enlarged-name")).to_have_text("3 of 3: block.conv2 · grad_norm")
    panel.page.get_by_role("button", name="close").click()
    check_shown(panel, [["loss"], ["accuracy"], ["block.conv2 · grad_norm"]])


def test_a_chart_alone_can_be_enlarged_too(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS, ACCURACY, NORM)])
    panel.action("enlarge-chart").click()
    expect(panel.action("next-chart")).to_be_hidden()
    expect(panel.page.locator(".nbp-enlarged-name")).to_contain_text("1 of 1: loss, accuracy")
    panel.page.keyboard.press("Escape")


def test_what_is_arranged_stays_while_a_chart_is_enlarged(bare: PanelPage) -> None:
    panel = enlarged(bare, 2)
    panel.say(selection_message(series=[LOSS, ACCURACY, NORM], charts=THREE, smooth=0.5))
    check_shown(panel, [["block.conv2 · grad_norm"]])
    panel.say(selection_message(series=[LOSS], charts=[chart(LOSS)]))
    check_shown(panel, [["loss"]])
    expect(panel.heat).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [700, 1100, 1600])
def test_an_enlarged_chart_can_be_looked_at(bare: PanelPage, width: int, theme: str) -> None:
    panel = enlarged(bare, 0, width=width, theme=theme)
    panel.wait_frame()
    panel.picture(f"enlarged-{width}-{theme}")
    panel.page.keyboard.press("Escape")


def last(panel: PanelPage, field: str, expected: Any) -> None:
    """Wait until the panel has sent this."""
    panel.page.wait_for_function(
        """([field, expected]) => {
          const last = sent.findLast(({ type }) => type === "selection");
          return JSON.stringify(last?.[field]) === expected; }""",
        arg=[field, json.dumps(expected, separators=(",", ":"))],
    )


def test_changes_are_taken_back_and_made_again(bare: PanelPage) -> None:
    panel = drawn(bare)
    undo, redo = panel.action("undo"), panel.action("redo")
    expect(undo).to_have_attribute("aria-disabled", "true")
    expect(undo).to_have_attribute("title", "Nothing to undo in this view")
    panel.page.get_by_role("button", name="Remove accuracy").click()
    expect(undo).to_have_attribute("title", "Undo: series (z)")
    panel.action("new-chart").click()
    expect(undo).to_have_attribute("title", "Undo: charts (z)")
    undo.click()
    last(panel, "charts", [])
    undo.click()
    last(panel, "series", [LOSS, ACCURACY, NORM])
    expect(undo).to_have_attribute("aria-disabled", "true")
    redo.click()
    last(panel, "series", [LOSS, NORM])
    panel.lines.focus()
    panel.page.keyboard.press("Shift+Z")
    expect(redo).to_have_attribute("aria-disabled", "true")
    assert len(charts(panel)) == 2
    panel.page.keyboard.press("z")
    assert len(charts(panel)) == 1


def test_a_zoom_by_the_wheel_is_one_change(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.lines.hover(position={"x": panel.x_of_step(panel.lines, 100), "y": 60})
    panel.page.keyboard.down("Control")
    for _ in range(4):
        panel.page.mouse.wheel(0, -100)
    panel.page.keyboard.up("Control")
    undo = panel.action("undo")
    expect(undo).to_have_attribute("title", "Undo: zoom (z)")
    undo.click()
    last(panel, "window", None)
    expect(undo).to_have_attribute("aria-disabled", "true")


def test_what_another_view_has_changed_is_not_taken_back(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.page.get_by_role("button", name="Remove accuracy").click()
    # The echo of the click: what the kernel says then counts at once.
    panel.say(selection_message(series=[LOSS, NORM], log_y=None))
    panel.say(selection_message(series=[LOSS, NORM], log_y=None, smooth=0.5))
    panel.action("undo").click()
    last(panel, "series", [LOSS, ACCURACY, NORM])
    assert panel.sent("selection")[-1]["smooth"] == 0.5
