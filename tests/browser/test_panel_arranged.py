"""Charts that a user arranges, each with its series, axis, smoothing and height."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

LOSS, ACCURACY, NORM = ("(root)", "loss"), ("(root)", "accuracy"), ("block.conv2", "grad_norm")
RECORDED = {"grad_norm": ["stem.conv1", "block.conv2"], "loss": ["(root)"], "accuracy": ["(root)"]}
AS_HIGH = """(height) => {
  const charts = JSON.parse(document.querySelector("[data-charts]").dataset.charts);
  return charts.length === 3 && Math.abs(charts[0].bottom - charts[0].top - height) < 1.5; }"""
"""The picture has grown for the third chart, which the browser tells after the next paint."""
STEPS = np.arange(200)
FALLING = 2.3 * np.exp(-STEPS / 60) + 0.01
RISING = 0.97 - 0.87 * np.exp(-STEPS / 40)
ALL = {LOSS: (STEPS, FALLING), ACCURACY: (STEPS, RISING), NORM: (STEPS, FALLING / 7)}


def chart(*series: tuple[str, str], **changes: Any) -> dict[str, Any]:
    plain = {"log_y": None, "y_limits": None, "outliers": False, "smooth": 0.0, "height": 150}
    return {"series": [*series], **plain, **changes}


def drawn(bare: PanelPage, width: int = 1100, theme: str = "light", **changes: Any) -> PanelPage:
    """Three series: the kernel has put the accuracy into a chart below."""
    bare.show(width, theme, lab=True)
    bare.say(model_message())
    bare.say(status_message(step=200, logged=["loss", "accuracy"], recorded=RECORDED))
    bare.say(selection_message(series=[*ALL], log_y=None, **changes))
    bare.draw(*heat_message([[1.0] * 40] * 2, RECORDED["grad_norm"], last_step=199))
    bare.draw(*lines_message(ALL, charts={ACCURACY: 1}))
    return bare


def charts(panel: PanelPage) -> list[dict[str, Any]]:
    panel.wait_frame()
    found: list[dict[str, Any]] = json.loads(panel.lines.get_attribute("data-charts") or "[]")
    return found


def check_shown(panel: PanelPage, expected: list[list[str]]) -> None:
    """Wait until the charts show these series: a busy machine paints several frames later."""
    panel.page.wait_for_function(
        """(expected) => {
          const told = document.querySelector("[data-charts]")?.dataset.charts ?? "[]";
          const names = JSON.parse(told).map((one) => one.series);
          return JSON.stringify(names) === JSON.stringify(expected); }""",
        arg=expected,
    )


def arranged(panel: PanelPage, field: str, expected: list[Any]) -> list[dict[str, Any]]:
    """The charts as the panel sends them, once that field of each is as expected."""
    panel.page.wait_for_function(
        """([field, expected]) => {
          const told = sent.findLast(({ type }) => type === "selection")?.charts ?? [];
          return JSON.stringify(told.map((one) => one[field])) === expected; }""",
        arg=[field, json.dumps(expected, separators=(",", ":"))],
    )
    found: list[dict[str, Any]] = panel.sent("selection")[-1]["charts"]
    return found


def handle(panel: PanelPage, at: int) -> Locator:
    return panel.action("move-chart").nth(at)


def options(panel: PanelPage, at: int) -> Locator:
    panel.action("chart-options").nth(at).click()
    return panel.page.get_by_role("dialog", name="Options of the chart")


def test_one_chart_alone_has_no_handle(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.draw(*lines_message(ALL, seq=2))
    expect(handle(panel, 0)).to_be_hidden()


def test_a_new_chart_is_below_the_others_and_what_was_drawn_stays(bare: PanelPage) -> None:
    panel = drawn(bare)
    before = charts(panel)
    panel.action("new-chart").click()
    panel.page.wait_for_function(AS_HIGH, arg=before[0]["bottom"] - before[0]["top"])
    after = charts(panel)
    check_shown(panel, [["loss", "block.conv2 · grad_norm"], ["accuracy"], []])
    for one, other in zip(before, after[:2], strict=True):
        assert other["bottom"] - other["top"] == pytest.approx(one["bottom"] - one["top"], abs=1.5)
        assert (one["log"], one["low"], one["high"]) == (other["log"], other["low"], other["high"])
    arranged(panel, "series", [[LOSS, NORM], [ACCURACY], []])


def test_a_series_comes_into_a_chart_from_another_one(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.action("new-chart").click()
    dialog = options(panel, 2)
    dialog.get_by_label("Find a series for this chart").fill("conv2")
    found = dialog.locator(".nbp-chart-found .nbp-item")
    expect(found).to_have_text(["block.conv2 · grad_normfrom another chart"])
    found.click()
    check_shown(panel, [["loss"], ["accuracy"], ["block.conv2 · grad_norm"]])
    listed = dialog.get_by_role("list", name="Series of this chart")
    expect(listed).to_contain_text("block.conv2 · grad_norm")
    dialog.get_by_label("Find a series for this chart").fill("conv1")
    dialog.get_by_label("Find a series for this chart").press("Enter")
    arranged(panel, "series", [[LOSS], [ACCURACY], [NORM, ("stem.conv1", "grad_norm")]])
    assert panel.sent("selection")[-1]["series"] == [*map(list, ALL), ["stem.conv1", "grad_norm"]]


def test_each_chart_has_its_own_scale_limits_smoothing_and_height(bare: PanelPage) -> None:
    panel = drawn(bare)
    dialog = options(panel, 1)
    dialog.get_by_role("radio", name="log").click()
    dialog.get_by_label("Lowest value").fill("0.5")
    dialog.get_by_label("Highest value").fill("2")
    dialog.get_by_label("Highest value").press("Enter")
    upper, lower = charts(panel)
    assert (lower["log"], lower["low"], lower["high"]) == (True, 0.5, 2.0)
    assert upper["high"] != 2.0
    dialog.get_by_label("Smoothing").fill("1")
    dialog.get_by_role("button", name="Taller").click()
    heights = [one["bottom"] - one["top"] for one in (upper, lower)]
    sent = arranged(panel, "height", [heights[0], heights[1] + 40])
    assert [one["smooth"] for one in sent] == [0.0, 0.9]
    assert sent[0]["y_limits"] is None
    after = charts(panel)[1]
    assert after["bottom"] - after["top"] == pytest.approx(heights[1] + 40, abs=1.5)


def test_a_choice_of_the_panel_is_for_every_chart(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS), chart(ACCURACY, NORM)])
    panel.action("line-options").click()
    dialog = panel.page.get_by_role("dialog", name="Options of the lines")
    expect(dialog.get_by_text("Limits")).to_be_hidden()
    dialog.locator("[data-role=log-y]").get_by_role("radio", name="log", exact=True).click()
    arranged(panel, "log_y", [True, True])
    assert [one["log"] for one in charts(panel)] == [True, True]


def test_a_chart_is_moved_by_drag_and_by_keys(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS), chart(ACCURACY), chart(NORM)])
    box = panel.lines.bounding_box()
    assert box is not None
    grip = handle(panel, 0).bounding_box()
    assert grip is not None
    panel.page.mouse.move(grip["x"] + 8, grip["y"] + 8)
    panel.page.mouse.down()
    panel.page.mouse.move(grip["x"] + 8, box["y"] + charts(panel)[1]["bottom"], steps=4)
    expect(panel.page.locator(".nbp-chart-target")).to_be_visible()
    panel.page.mouse.up()
    expect(panel.page.locator(".nbp-chart-target")).to_be_hidden()
    check_shown(panel, [["accuracy"], ["loss"], ["block.conv2 · grad_norm"]])
    handle(panel, 1).focus()
    panel.page.keyboard.press("ArrowDown")
    check_shown(panel, [["accuracy"], ["block.conv2 · grad_norm"], ["loss"]])
    expect(handle(panel, 2)).to_be_focused()
    panel.page.keyboard.press("ArrowDown")
    check_shown(panel, [["accuracy"], ["block.conv2 · grad_norm"], ["loss"]])
    panel.page.keyboard.press("Delete")
    check_shown(panel, [["accuracy"], ["block.conv2 · grad_norm"]])
    arranged(panel, "series", [[ACCURACY], [NORM]])
    assert panel.sent("selection")[-1]["series"] == [list(ACCURACY), list(NORM)]


def test_a_series_that_was_moved_is_drawn_in_the_scale_of_its_chart_at_once(
    bare: PanelPage,
) -> None:
    panel = drawn(bare, charts=[chart(LOSS), chart(ACCURACY, NORM)])
    [_, below] = charts(panel)
    assert below["series"] == ["accuracy", "block.conv2 · grad_norm"]
    assert below["log"] is False
    least = min(float(np.min(values)) for values in (RISING, FALLING / 7))
    assert below["low"] <= least
    assert below["low"] > -1.0, "its logarithms would be below"


def wait_bottom(panel: PanelPage, expected: float) -> None:
    """Wait until the first chart ends there: the canvas takes its height a frame later."""
    panel.page.wait_for_function(
        """(expected) => {
          const [first] = JSON.parse(document.querySelector(".nbp-lines").dataset.charts);
          return Math.abs(first.bottom - expected) <= 2; }""",
        arg=expected,
    )


def test_an_edge_changes_the_height_of_the_chart_above(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS), chart(ACCURACY)])
    edge = panel.page.locator(".nbp-chart-edge").first
    place = edge.bounding_box()
    assert place is not None
    before = charts(panel)[0]
    panel.page.mouse.move(place["x"] + 40, place["y"] + 2)
    panel.page.mouse.down()
    panel.page.mouse.move(place["x"] + 40, place["y"] + 62, steps=5)
    panel.page.mouse.up()
    wait_bottom(panel, before["bottom"] + 60)
    after = charts(panel)[0]
    edge.focus()
    panel.page.keyboard.press("ArrowUp")
    wait_bottom(panel, after["bottom"] - 20)
    value = int(edge.get_attribute("aria-valuenow") or 0)
    assert value == pytest.approx(after["bottom"] - after["top"] - 20, abs=2)
    arranged(panel, "height", [value, 150])


def test_the_cross_of_a_chip_takes_the_series_out_of_its_chart(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS, NORM), chart(ACCURACY)])
    panel.page.get_by_role("button", name="Remove accuracy").click()
    check_shown(panel, [["loss", "block.conv2 · grad_norm"], []])
    arranged(panel, "series", [[LOSS, NORM], []])


def pinned(panel: PanelPage, *steps: int) -> Locator:
    """Click at these steps of the lines; the section with their values."""
    box = panel.lines.bounding_box()
    assert box is not None
    for step in steps:
        panel.page.mouse.click(box["x"] + panel.x_of_step(panel.lines, step), box["y"] + 60)
        panel.page.mouse.move(0, 0)
        panel.wait_frame()
    return panel.page.get_by_role("region", name="Pinned steps")


def test_a_click_pins_a_step_and_two_show_the_difference(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(LOSS), chart(ACCURACY)])
    before = panel.lines.bounding_box()
    section = pinned(panel, 50)
    assert panel.lines.bounding_box() == before, "what is clicked stays where it is"
    expect(section.get_by_role("columnheader")).to_have_text(["pinned", "A: step 50"])
    expect(section).to_contain_text("Click another step for the difference.")
    pinned(panel, 150)
    expect(section.get_by_role("columnheader").last).to_have_text("B / A")
    expect(section.get_by_role("columnheader").nth(3)).to_have_text("B − A: 100 steps")
    loss = section.get_by_role("row").nth(1).get_by_role("cell")
    values = [float(text.replace("−", "-")) for text in loss.all_inner_texts()]
    at = FALLING.astype(np.float32)
    expected = [at[50], at[150], at[150] - at[50], at[150] / at[50]]
    assert values == pytest.approx(expected, rel=5e-3)
    pinned(panel, 100)
    expect(section.get_by_role("columnheader").nth(2)).to_have_text("B: step 100")
    pinned(panel, 50)
    expect(section.get_by_role("columnheader")).to_have_text(["pinned", "A: step 100"])
    panel.page.keyboard.press("Escape")
    panel.lines.focus()
    panel.page.keyboard.press("Escape")
    expect(section).to_be_hidden()


def test_a_double_click_zooms_out_and_pins_nothing(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.lines.dblclick(position={"x": panel.x_of_step(panel.lines, 100), "y": 60})
    assert panel.wait_sent("selection")["window"] is None
    expect(panel.page.get_by_role("region", name="Pinned steps")).to_be_hidden()


def test_a_key_pins_the_step_under_the_cursor(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.lines.focus()
    panel.page.keyboard.press("ArrowRight")
    panel.page.keyboard.press("p")
    section = panel.page.get_by_role("region", name="Pinned steps")
    expect(section).to_contain_text("A: step 100")
    panel.page.keyboard.press("p")
    expect(section).to_be_hidden()


def test_a_series_without_a_value_says_so(bare: PanelPage) -> None:
    panel = drawn(bare)
    lost = np.full(200, np.nan)
    panel.draw(*lines_message({**ALL, ACCURACY: (STEPS, lost)}, seq=2))
    section = pinned(panel, 50)
    expect(section.get_by_role("row").nth(2)).to_have_text("accuracyno value")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [700, 1100, 1600])
def test_arranged_charts_can_be_looked_at(bare: PanelPage, width: int, theme: str) -> None:
    panel = drawn(
        bare, width, theme, charts=[chart(LOSS), chart(ACCURACY, height=100), chart(NORM)]
    )
    panel.action("new-chart").click()
    pinned(panel, 50, 150)
    panel.picture(f"arranged-{width}-{theme}")
    options(panel, 1)
    panel.picture(f"chart-options-{width}-{theme}")
