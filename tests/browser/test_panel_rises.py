"""From a chart to the step at which a line rises most, and to the batch of that step."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

LOSS, NORM = ("(root)", "loss"), ("block.conv2", "grad_norm")
STEPS = np.arange(200)


def drawn(bare: PanelPage, norms: npt.ArrayLike, log_y: bool = True, **changes: Any) -> PanelPage:
    """A loss that falls evenly, and norms of gradients in the same chart."""
    bare.show(1100)
    bare.say(model_message())
    recorded = {"grad_norm": ["block.conv2"], "loss": ["(root)"]}
    bare.say(status_message(step=200, logged=["loss"], recorded=recorded))
    bare.say(selection_message(series=[LOSS, NORM], log_y=log_y, **changes))
    bare.draw(*heat_message([[1.0] * 40], ["block.conv2"], last_step=199))
    losses = np.linspace(2.0, 1.0, 200)
    bare.draw(*lines_message({LOSS: (STEPS, losses), NORM: (STEPS, np.asarray(norms))}))
    return bare


def pinned(panel: PanelPage) -> list[str]:
    return panel.page.locator(".nbp-pin-heads [role=columnheader]").all_inner_texts()


def said(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-pins [role=status]")


def spiked() -> npt.NDArray[np.float64]:
    norms = np.full(200, 0.5)
    norms[120], norms[60] = 40.0, 3.0
    return norms


def test_a_click_pins_the_largest_rise_and_the_step_before_and_another_the_next(
    bare: PanelPage,
) -> None:
    panel = drawn(bare, spiked())
    panel.action("largest-rise").click()
    expect(said(panel)).to_have_text("Rise 1 of 2 in sight: block.conv2 · grad_norm.")
    assert pinned(panel)[1:3] == ["A: step 119", "B: step 120"]
    row = panel.page.locator(".nbp-pin-row", has_text="grad_norm")
    expect(row).to_contain_text("40")
    expect(row.get_by_role("cell").last).to_contain_text("80")
    panel.action("largest-rise").click()
    assert pinned(panel)[1:3] == ["A: step 59", "B: step 60"]
    panel.action("largest-rise").click()
    assert pinned(panel)[1:3] == ["A: step 119", "B: step 120"]
    assert panel.errors == []


def test_the_letters_of_two_neighboring_steps_stand_below_each_other(bare: PanelPage) -> None:
    panel = drawn(bare, spiked())
    panel.action("largest-rise").click()
    panel.wait_frame()
    _, top, _, _ = json.loads(panel.lines.get_attribute("data-box") or "")
    x = panel.x_of_step(panel.lines, 120) - 5
    for y in (2, 16):
        assert panel.pixel(panel.lines, x, top + y)[:3] == (0x0B, 0x62, 0xC4)


def test_on_a_linear_axis_it_is_the_largest_difference(bare: PanelPage) -> None:
    rng = np.random.default_rng(3)
    norms = np.exp(rng.normal(size=200).cumsum() / 4)
    for log_y, change in ((False, np.diff(norms)), (True, np.diff(np.log(norms)))):
        panel = drawn(bare, norms, log_y)
        panel.action("largest-rise").click()
        at = int(np.argmax(change))
        assert pinned(panel)[1:3] == [f"A: step {at}", f"B: step {at + 1}"]


def test_what_is_not_in_sight_is_left_out_and_gaps_are_bridged(bare: PanelPage) -> None:
    norms = spiked()
    norms[59] = np.nan
    panel = drawn(bare, norms, window=(10, 100))
    panel.action("largest-rise").click()
    assert pinned(panel)[1:3] == ["A: step 58", "B: step 60"]
    expect(said(panel)).to_contain_text("Rise 1 of 1 in sight")


def test_where_nothing_rises_it_is_said(bare: PanelPage) -> None:
    panel = drawn(bare, np.linspace(1.0, 0.5, 200))
    expect(said(panel)).to_be_hidden()
    panel.action("largest-rise").click()
    expect(said(panel)).to_have_text("Nothing rises in sight.")
    expect(panel.page.get_by_role("table", name="Values at the pinned steps")).to_be_hidden()
    panel.action("clear-pins").click()
    expect(said(panel)).to_be_hidden()


def test_from_the_rise_a_click_leads_to_the_batch_of_its_step(bare: PanelPage) -> None:
    panel = drawn(bare, spiked())
    row = {"module": "(root)", "step": 120, "nbytes": 9, "why": "by request", "is_batch": True}
    looks = {"v": 1, "type": "looks", "looks": [row], "most": 64, "asked": [], "missed": []}
    panel.say(looks)
    panel.action("largest-rise").click()
    panel.page.get_by_role("button", name="batch of step 120").click()
    wanted = panel.wait_sent("show_look")
    assert (wanted["module"], wanted["step"]) == ("(root)", 120)
    assert json.loads(panel.lines.get_attribute("data-series") or "") == [
        "loss",
        "block.conv2 · grad_norm",
    ]
