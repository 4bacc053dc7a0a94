"""The two pictures: what is painted, what is said about it, what a pointer does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser import alert_messages as gpt
from tests.browser.panel_messages import (
    STEPS,
    WEIGHTED,
    gradient_norms,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

RED = (255, 42, 85)
CONV1 = ("stem.conv1", "grad_norm")
FC1 = ("head.fc1", "grad_norm")


def read(panel: PanelPage, name: str) -> Any:
    return json.loads(panel.lines.get_attribute(f"data-{name}") or "null")


def hover(panel: PanelPage, kind: str, x: float, y: float) -> None:
    box = getattr(panel, kind).bounding_box()
    panel.page.mouse.move(box["x"] + x, box["y"] + y)


def heat_point(panel: PanelPage, share: float) -> float:
    """x of a share of the steps that the heat map holds, in CSS pixels of its canvas."""
    return panel.x_of_step(
        panel.heat, share * (int(panel.heat.get_attribute("data-last-step") or 0) + 1)
    )


def test_a_frame_is_painted_described_and_acknowledged(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1, FC1]))
    steps = list(range(100, 160))
    shown.draw(
        *lines_message({CONV1: (steps, np.linspace(1, 2, 60)), FC1: (steps[::2], [3.0] * 30)})
    )
    assert read(shown, "series") == ["stem.conv1 · grad_norm", "head.fc1 · grad_norm"]
    assert read(shown, "points") == [60, 30]
    assert read(shown, "first-step") == [100, 100]
    assert read(shown, "last-step") == [159, 158]
    ack = shown.sent("ack")[-1]
    assert ack == {
        "v": 1,
        "type": "ack",
        "view": shown.sent("hello")[0]["view"],
        "painted": {"lines": 1},
    }
    expect(shown.root).to_have_attribute("data-frames", "1")
    assert float(shown.root.get_attribute("data-draw-ms") or "nan") >= 0


def test_of_several_frames_the_newest_wins(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    frames = [lines_message({CONV1: ([0, k], [1.0, 2.0])}, seq=k) for k in (1, 2, 3)]
    for message, buffers in frames[:2]:
        shown.say(message, buffers)
    shown.draw(*frames[2])
    assert read(shown, "last-step") == [3]


def test_steps_beyond_what_float32_can_count_stay_exact(shown: PanelPage) -> None:
    x0 = 2.0**24 + 1
    shown.say(selection_message(series=[CONV1], log_y=False))
    shown.draw(*lines_message({CONV1: ([x0, x0 + 1, x0 + 2], [1.0, 5.0, 3.0])}, x0=x0))
    left = 60
    box = shown.lines.bounding_box()
    assert box is not None
    hover(shown, "lines", left, box["height"] / 2)
    expect(shown.page.locator(".nbp-tip:visible")).to_contain_text("16\u202f777\u202f217")


def test_a_removed_series_vanishes_at_once(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1, FC1]))
    shown.draw(*lines_message({CONV1: ([0, 1], [1.0, 2.0]), FC1: ([0, 1], [3.0, 4.0])}))
    shown.page.locator('.nbp-chip[data-module="stem.conv1"] .nbp-remove').click()
    expect(shown.lines).to_have_attribute("data-series", '["head.fc1 · grad_norm"]')
    assert shown.wait_sent("selection")["series"] == [list(FC1)]


def test_a_value_that_is_not_finite_breaks_the_line_and_is_marked(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1], log_y=False))
    values = np.ones(200)
    values[90:110] = np.nan
    shown.draw(*lines_message({CONV1: (range(200), values)}))
    blue = (0, 114, 178)
    row = """(canvas, rgb) => {
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      const columns = new Set();
      for (let k = 0; k < data.length; k += 4)
        if (rgb.every((value, i) => Math.abs(data[k + i] - value) < 30))
          columns.add((k / 4) % width);
      return [...columns].sort((a, b) => a - b); }"""
    columns = np.array(shown.lines.evaluate(row, blue))
    gaps = np.diff(columns)
    assert gaps.max() > 30, "the line bridges the gap"
    assert shown.count_colour(shown.lines, (179, 38, 30)) > 0, "the gap is not marked"


def lane_of(panel: PanelPage) -> tuple[float, float]:
    """Top and bottom of the lane below the lowest decade, in CSS pixels."""
    _, _, _, bottom = json.loads(panel.lines.get_attribute("data-box") or "")
    return bottom - 18, bottom


def rows_of_colour(panel: PanelPage, rgb: tuple[int, int, int], low: float, high: float) -> bool:
    """Whether anything between two heights of the lines has about this colour."""
    found: bool = panel.lines.evaluate(
        """(canvas, [rgb, low, high]) => {
          const ratio = canvas.width / canvas.clientWidth;
          const rows = [Math.ceil(low * ratio), Math.floor((high - low) * ratio)];
          const { data } = canvas.getContext("2d").getImageData(0, rows[0], canvas.width, rows[1]);
          for (let k = 0; k < data.length; k += 4)
            if (rgb.every((value, i) => Math.abs(data[k + i] - value) < 30)) return true;
          return false; }""",
        [list(rgb), low, high],
    )
    return found


def choose(panel: PanelPage, word: str, role: str, value: str) -> None:
    """One of the options behind the word of a view."""
    panel.action(word).click()
    panel.page.locator(f"[data-role={role}] [data-value={value}]").click()
    panel.page.keyboard.press("Escape")


def test_what_has_no_logarithm_lies_in_a_lane_below_the_lowest_decade(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    shown.draw(*lines_message({CONV1: ([0, 1], [-1.0, 0.0])}))
    note = shown.page.locator(".nbp-plot:has(.nbp-lines) .nbp-note")
    expect(note).to_be_hidden()
    low, high = lane_of(shown)
    blue = (0, 114, 178)
    assert rows_of_colour(shown, blue, low, high), "0 and below lie in the lane"
    shown.draw(*lines_message({CONV1: (range(5), [0.0, 1.0, 100.0, 1.0, -2.0])}, seq=2))
    above = rows_of_colour(shown, blue, 0, low - 2)
    assert rows_of_colour(shown, blue, low, high)
    assert above
    _, _, right, _ = json.loads(shown.lines.get_attribute("data-box") or "")
    hover(shown, "lines", right - 1, (low + high) / 2)
    expect(shown.page.locator(".nbp-tip:visible")).to_contain_text("−2")
    choose(shown, "line-options", "log-y", "false")
    assert shown.wait_sent("selection")["log_y"] is False


def test_hover_over_lines_gives_every_value_exactly(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1, FC1]))
    shown.draw(
        *lines_message({CONV1: ([0, 1, 2], [0.125, 0.015625, 2]), FC1: ([0, 2], [0.5, 0.25])})
    )
    right = shown.lines.bounding_box()["width"] - 1  # type: ignore[index]
    hover(shown, "lines", right - shown.call("rightMargin", right + 1), 60)
    tip = shown.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("step 2")
    expect(tip).to_contain_text("head.fc1 · grad_norm0.25")
    expect(tip).to_contain_text("stem.conv1 · grad_norm2")
    assert shown.sent("selection") == [], "hover never asks the kernel"


def test_along_time_the_axis_is_a_duration_and_hover_still_names_the_step(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1], x_axis="time"))
    series = {CONV1: ([5.0, 35.0, 65.0], [1.0, 2.0, 3.0])}
    message, buffers = lines_message(series, x0=5.0, x_axis="time", knots=[])
    message["series"][0]["first_step"] = 100
    message["series"][0]["last_step"] = 300
    shown.draw(message, buffers)
    low, high = json.loads(shown.lines.get_attribute("data-axis") or "")
    assert low == 5
    assert high >= 65
    hover(shown, "lines", shown.x_of_step(shown.lines, 35), 60)
    expect(shown.page.locator(".nbp-tip:visible")).to_contain_text("step 200 · 35\u202fs")


def test_along_epochs_the_axis_counts_them_and_hover_names_step_and_epoch(
    shown: PanelPage,
) -> None:
    shown.say(selection_message(series=[CONV1], x_axis="epoch"))
    series = {CONV1: ([0.0, 0.5, 1.0, 1.5, 2.0], [1.0, 2.0, 3.0, 2.0, 4.0])}
    knots = [(0, 0), (40, 1), (60, 2)]
    events = [(1.0, "epoch", "epoch 2 begins")]
    shown.draw(*lines_message(series, x_axis="epoch", knots=knots, events=events))
    low, high = json.loads(shown.lines.get_attribute("data-axis") or "")
    assert (low, high) == (0, 2)
    hover(shown, "lines", shown.x_of_step(shown.lines, 1.5), 60)
    tip = shown.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("step 50 · epoch 1.5")
    shown.picture("views-epochs")
    hover(shown, "lines", shown.x_of_step(shown.lines, 1), 60)
    expect(tip).to_contain_text("epoch 2 begins")
    expect(tip).to_contain_text("step 40 · epoch 1")


def test_steps_and_epochs_are_mapped_to_each_other_beyond_the_known_ones_too(
    shown: PanelPage,
) -> None:
    knots = [[10, 0], [40, 1], [60, 2]]
    steps = [-5, 10, 25, 50, 100]
    mapped = """([knots, steps]) => {
      const { x, step } = parts.alongKnots(knots);
      return [steps.map(x), steps.map(x).map(step)];
    }"""
    assert shown.evaluate(mapped, [knots, steps]) == [[-0.5, 0, 0.5, 1.5, 4], steps]


def test_a_log_step_axis_keeps_step_zero(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1], log_x=True))
    shown.draw(*lines_message({CONV1: (range(1001), np.linspace(1, 2, 1001))}))
    left = json.loads(shown.lines.get_attribute("data-box") or "")[0]
    hover(shown, "lines", left, 60)
    expect(shown.page.locator(".nbp-tip:visible")).to_contain_text("step 0")


def test_a_heat_frame_is_painted_and_described(shown: PanelPage) -> None:
    norms = gradient_norms()
    cells = np.array([norms[path] for path in WEIGHTED])
    shown.draw(*heat_message(cells, WEIGHTED, last_step=1239))
    expect(shown.heat).to_have_attribute("data-quantity", "grad_norm")
    expect(shown.heat).to_have_attribute("data-rows", str(len(WEIGHTED)))
    expect(shown.heat).to_have_attribute("data-columns", str(STEPS))
    expect(shown.heat).to_have_attribute("data-last-step", "1239")


def test_not_finite_cells_have_their_own_colour_and_unmeasured_ones_are_hatched(
    shown: PanelPage,
) -> None:
    cells = np.ones((2, 10))
    cells[0, 4:6] = np.inf
    unmeasured = np.zeros((2, 10), dtype=bool)
    unmeasured[1] = True
    shown.draw(*heat_message(cells, ["a", "b"], unmeasured=unmeasured))
    assert shown.count_colour(shown.heat, RED) > 1000
    half = heat_point(shown, 0.5)
    column = [shown.pixel(shown.heat, half, y)[3] for y in range(80, 110)]
    assert 0 in column, "an unmeasured cell is not painted over"
    assert max(column) > 0, "an unmeasured cell is hatched, not blank"


def test_a_log_colour_scale_shows_zero_as_its_lowest_colour(shown: PanelPage) -> None:
    shown.draw(*heat_message([[0.0, 1.0, 100.0]], ["a"]))
    red, green, blue, alpha = shown.pixel(shown.heat, heat_point(shown, 0.1), 6)
    assert (red, green, blue, alpha) == (68, 1, 84, 255)


def test_hover_over_a_cell_says_whether_it_is_one_step_or_a_mean(shown: PanelPage) -> None:
    tip = shown.page.locator(".nbp-tip:visible")
    shown.draw(*heat_message([[0.5, 0.25]], ["stem.conv1"], last_step=1))
    hover(shown, "heat", heat_point(shown, 0.25), 6)
    expect(tip).to_have_text("stem.conv1  step 0grad_norm  0.5")
    many = heat_message([[0.5, 0.25]], ["stem.conv1"], last_step=1239, maximum=[[0.75, 3.5]], seq=2)
    shown.draw(*many)
    hover(shown, "heat", heat_point(shown, 0.75), 6)
    expect(tip).to_have_text(
        "stem.conv1  steps 620–1\u202f239grad_norm  0.25 in the meanat most 3.5"
    )


def test_hover_names_what_was_not_measured_and_what_was_not_finite(shown: PanelPage) -> None:
    cells = np.array([[np.nan, np.nan, 1.0]])
    shown.draw(*heat_message(cells, ["a"], unmeasured=[[False, True, False]]))
    tip = shown.page.locator(".nbp-tip:visible")
    hover(shown, "heat", heat_point(shown, 0.1), 6)
    expect(tip).to_contain_text("contains NaN or infinity")
    hover(shown, "heat", heat_point(shown, 0.5), 6)
    expect(tip).to_contain_text("not measured")


def test_a_spike_of_one_step_survives_in_a_cell_of_many(shown: PanelPage) -> None:
    mean = np.full((1, 10), 1.0)
    largest = mean.copy()
    largest[0, 5] = 1000.0
    shown.draw(*heat_message(mean, ["a"], last_step=9999, maximum=largest))
    x = heat_point(shown, 0.55)
    assert shown.pixel(shown.heat, x, 6)[:3] == (253, 231, 37)
    choose(shown, "heat-options", "cells", "mean")
    assert shown.wait_sent("selection")["cells"] == "mean", "so that a picture shows it, too"
    expect(shown.action("heat-options")).to_have_text("log · mean")
    frame = heat_message(mean, ["a"], last_step=9999, maximum=largest, seq=2, limits=(0.5, 10.0))
    shown.draw(*frame)
    assert shown.pixel(shown.heat, x, 6)[:3] != (253, 231, 37)


def test_a_click_on_a_cell_draws_that_series(shown: PanelPage) -> None:
    shown.draw(*heat_message(np.ones((2, 5)), ["stem.conv1", "head.fc1"]))
    shown.heat.click(position={"x": heat_point(shown, 0.5), "y": 100})
    assert shown.wait_sent("selection")["series"] == [list(FC1)]
    expect(shown.page.locator(".nbp-chip.nbp-on")).to_have_attribute("data-module", "head.fc1")


def test_a_drag_zooms_both_pictures_and_a_double_click_shows_all_again(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    shown.draw(*heat_message(np.ones((1, 100)), ["stem.conv1"]))
    shown.draw(*lines_message({CONV1: (range(100), np.linspace(1, 2, 100))}))
    box = shown.heat.bounding_box()
    assert box is not None
    shown.page.mouse.move(box["x"] + heat_point(shown, 0.25), box["y"] + 30)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + heat_point(shown, 0.5), box["y"] + 35, steps=4)
    expect(shown.page.locator(".nbp-band:visible")).to_have_count(1)
    shown.page.mouse.up()
    low, high = shown.wait_sent("selection")["window"]
    assert abs(low - 25) <= 2
    assert abs(high - 50) <= 2
    shown.heat.dblclick(position={"x": 200, "y": 30})
    shown.page.wait_for_function(
        "sent.filter((m) => m.type === 'selection').at(-1).window === null"
    )
    assert shown.sent("selection")[-1]["series"] == [list(CONV1)]


def test_both_pictures_share_the_cursor(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    shown.draw(*heat_message(np.ones((1, 100)), ["stem.conv1"]))
    shown.draw(*lines_message({CONV1: (range(100), np.linspace(1, 2, 100))}))
    hover(shown, "heat", heat_point(shown, 0.4), 30)
    cursors = shown.page.locator(".nbp-cursor:visible")
    expect(cursors).to_have_count(2)
    places = [cursors.nth(k).bounding_box()["x"] for k in (0, 1)]  # type: ignore[index]
    assert places[0] == pytest.approx(places[1], abs=1)
    shown.page.mouse.move(2, 2)
    expect(cursors).to_have_count(0)


def test_events_are_ticks_with_their_text_on_hover(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    events = [(50.0, "attach", "zero_fraction attached to head.fc1")]
    shown.draw(*lines_message({CONV1: (range(101), np.linspace(1, 2, 101))}, events=events))
    assert shown.count_colour(shown.lines, (11, 98, 196)) > 0
    for x in range(300, 420, 3):
        hover(shown, "lines", x, 60)
        if "zero_fraction attached" in shown.page.locator(".nbp-tip:visible").inner_text():
            return
    pytest.fail("no hover shows the event")


def test_an_alert_is_a_tick_whose_tip_tells_its_rule_and_its_place(shown: PanelPage) -> None:
    shown.say(selection_message(series=[CONV1]))
    shown.draw(*lines_message({CONV1: (range(101), np.linspace(1, 2, 101))}))
    dead = [
        gpt.alert(step, "dead_units", ["block.relu2", "block.relu3"], ["dead_fraction"], "60 % of")
        for step in (50, 70)
    ]
    shown.say(gpt.alerts_message(dead[:1]))
    shown.say(gpt.alerts_message(dead[1:], before=dead[:1]))
    shown.wait_frame()
    for step in (50, 70):
        hover(shown, "lines", shown.x_of_step(shown.lines, step), 60)
        tip = shown.page.locator(".nbp-tip:visible")
        expect(tip).to_contain_text("dead_units at block.relu2 and 1 more: 60 % of")
    hover(shown, "lines", shown.x_of_step(shown.lines, 60), 60)
    expect(tip).not_to_contain_text("dead_units")
    shown.say(gpt.alerts_message([]))
    shown.wait_frame()
    hover(shown, "lines", shown.x_of_step(shown.lines, 50), 60)
    expect(tip).not_to_contain_text("dead_units")


def test_the_tree_shows_a_swatch_of_the_home_quantity(shown: PanelPage) -> None:
    shown.draw(*heat_message([[1.0, 2.0], [3.0, 4.0]], ["stem.conv1", "head.fc1"]))
    painted = (
        """(canvas) => canvas.getContext("2d").getImageData(0, 0, 128, 10).data.some((v) => v)"""
    )
    shown.page.wait_for_function(
        f"({painted})(document.querySelector('.nbp-row[data-module=\"stem.conv1\"] canvas'))"
    )
    assert not shown.row("stem.relu1").locator("canvas").evaluate(painted)


def test_the_quantity_of_the_heat_map_is_always_among_the_chips_in_sight(bare: PanelPage) -> None:
    panel = bare.show(846)
    names = ["weight_norm", "grad_norm", "update_ratio", "output_mean", "output_std"]
    panel.say(model_message())
    panel.say(status_message(recorded=dict.fromkeys(names, WEIGHTED)))
    for quantity in reversed(names):  # there is not room for all of them
        panel.say(selection_message(home=quantity))
        chip = panel.page.locator(f".nbp-quantities [data-quantity={quantity}]")
        expect(chip).to_have_attribute("aria-pressed", "true")
        under = panel.page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).dataset.quantity", middle_of(chip)
        )
        assert under == quantity


def middle_of(node: Locator) -> list[float]:
    box = node.bounding_box()
    assert box is not None
    return [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
