"""Charts above each other: a loss and an accuracy, each on a value axis of its kind."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.panel_messages import (
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

LOSS, ACCURACY = ("(root)", "loss"), ("(root)", "accuracy")
STEPS = np.arange(200)
FALLING = 2.3 * np.exp(-STEPS / 60) + 0.01
RISING = 0.97 - 0.87 * np.exp(-STEPS / 40)
BOTH = {LOSS: (STEPS, FALLING), ACCURACY: (STEPS, RISING)}


def drawn(bare: PanelPage, width: int = 880, theme: str = "light", **changes: Any) -> PanelPage:
    """A panel with both series, as the kernel sends them: shares have the second chart."""
    bare.show(width, theme, lab=True)
    bare.say(model_message())
    bare.say(status_message(step=200, logged=["loss", "accuracy"]))
    bare.say(selection_message(series=[LOSS, ACCURACY], log_y=None, **changes))
    bare.draw(*lines_message(BOTH, charts={ACCURACY: 1}))
    return bare


def charts(panel: PanelPage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(panel.lines.get_attribute("data-charts") or "[]")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_accuracy_has_a_linear_axis_below_that_of_the_loss(bare: PanelPage, theme: str) -> None:
    panel = drawn(bare, 880, theme)
    upper, lower = charts(panel)
    assert (upper["series"], upper["log"]) == (["loss"], True)
    assert (lower["series"], lower["log"]) == (["accuracy"], False)
    assert upper["bottom"] < lower["top"]
    # The curve takes most of its axis, which is not what it would on that of the loss.
    assert lower["high"] - lower["low"] <= 1.5 * (RISING.max() - RISING.min())
    panel.picture(f"charts-{theme}")


def test_series_of_one_kind_share_one_chart(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.draw(*lines_message(BOTH, seq=2))
    [only] = charts(panel)
    assert only["series"] == ["loss", "accuracy"]


def test_a_chart_without_a_value_leaves_its_room_to_the_other(bare: PanelPage) -> None:
    panel = drawn(bare)
    none = np.array([])
    panel.draw(*lines_message({**BOTH, ACCURACY: (none, none)}, seq=2, charts={ACCURACY: 1}))
    [only] = charts(panel)
    assert only["series"] == ["loss"]
    box = json.loads(panel.lines.get_attribute("data-box") or "")
    assert [only["top"], only["bottom"]] == [box[1], box[3]]


def test_the_tip_lists_both_and_marks_the_line_that_is_pointed_at(bare: PanelPage) -> None:
    panel = drawn(bare)
    lower = charts(panel)[1]
    middle = (lower["top"] + lower["bottom"]) / 2
    panel.lines.hover(position={"x": panel.x_of_step(panel.lines, 100), "y": middle})
    tip = panel.page.locator(".nbp-plot:has(.nbp-lines) .nbp-tip")
    expect(tip.locator(".nbp-tip-row span")).to_have_text(["loss", "accuracy"])
    expect(tip.locator(".nbp-tip-row.nbp-on span")).to_have_text("accuracy")
    expect(tip.locator(".nbp-tip-row.nbp-on b")).to_contain_text("0.89858")


def test_limits_are_those_of_the_upper_chart_and_say_so(bare: PanelPage) -> None:
    panel = drawn(bare, y_limits=[0.5, 5.0])
    upper, lower = charts(panel)
    assert (upper["low"], upper["high"]) == (0.5, 5.0)
    assert lower["high"] <= 1.5
    panel.page.locator("[data-action=line-options]").click()
    limits = panel.page.locator(".nbp-choice-line", has_text="Limits")
    expect(limits.locator(".nbp-hint")).to_have_text("In the upper chart: loss.")
    panel.draw(*lines_message(BOTH, seq=2))  # one chart
    expect(limits.locator(".nbp-hint")).to_have_text("")


def test_a_chosen_scale_is_that_of_every_chart(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.say(selection_message(series=[LOSS, ACCURACY], log_y=True))
    panel.wait_frame()
    assert [one["log"] for one in charts(panel)] == [True, True]


def test_a_drag_in_the_lower_chart_zooms_both(bare: PanelPage) -> None:
    panel = drawn(bare)
    lower = charts(panel)[1]
    box = panel.lines.bounding_box()
    assert box is not None
    y = box["y"] + lower["top"] + 10
    panel.page.mouse.move(box["x"] + panel.x_of_step(panel.lines, 50), y)
    panel.page.mouse.down()
    panel.page.mouse.move(box["x"] + panel.x_of_step(panel.lines, 100), y, steps=3)
    panel.page.mouse.up()
    low, high = panel.wait_sent("selection")["window"]
    assert (round(low), round(high)) == (50, 100)
    panel.wait_frame()
    assert len(charts(panel)) == 2
