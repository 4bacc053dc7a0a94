"""Lines of other runs beside this one: one by one, as a group, aligned."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.compare_messages import (
    LOSS,
    OTHERS,
    beside,
    beside_message,
    compared,
    decay,
    dialog,
    tells,
    tick,
    two_beside,
    wait_chosen,
)
from tests.browser.panel_page import PanelPage, introduce


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1280, "dark"), (640, "light")])
def test_lines_of_other_runs_stand_beside_in_the_same_colour_named_by_run(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = compared(introduce(bare.show(width, theme)))
    assert beside(panel) == []
    panel.say(*two_beside())
    assert beside(panel) == [
        ["digits-cnn-8", "loss", 465],
        ["digits-cnn-8", "block.conv3 · grad_norm", 465],
        ["digits-cnn-5", "loss", 465],
        ["digits-cnn-5", "block.conv3 · grad_norm", 0],
    ]
    _, high = json.loads(panel.lines.get_attribute("data-axis") or "")
    assert high < 1400, "the axis is this run's"
    panel.picture(f"compare-lines-{width}-{theme}")
    expect(panel.page.locator("[data-action=line-options]")).to_contain_text("by step")


def test_a_hover_tells_the_values_of_the_other_runs_too(panel: PanelPage) -> None:
    compared(panel).say(*two_beside())
    panel.wait_frame()
    panel.lines.hover(position={"x": panel.x_of_step(panel.lines, 620), "y": 60})
    tip = panel.page.locator(".nbp-plot:has(.nbp-lines) .nbp-tip")
    expect(tip).to_contain_text("digits-cnn-8: loss")
    expect(tip).to_contain_text("digits-cnn-5: loss")


def test_what_is_taken_away_is_drawn_no_more_at_once(panel: PanelPage) -> None:
    compared(panel).say(*two_beside())
    panel.action("runs").click()
    tick(panel, "digits-cnn-8").uncheck()
    assert [name for name, *_ in beside(panel)] == ["digits-cnn-5", "digits-cnn-5"]
    tick(panel, "digits-cnn-5").uncheck()
    assert beside(panel) == []


def test_several_runs_are_drawn_as_a_group_with_their_mean_and_their_extremes(
    panel: PanelPage,
) -> None:
    compared(panel)
    panel.action("runs").click()
    panel.page.locator("[data-role=grouped] [data-value=group]").click()
    wait_chosen(panel, grouped=True)
    panel.page.keyboard.press("Escape")
    steps = np.arange(0, 1241, 4)
    mean = decay(0.2, 3)[::4]
    panel.say(*beside_message({("", *LOSS): (steps, mean, 0.6 * mean, 1.5 * mean)}))
    assert beside(panel) == [["mean of 3 runs", "loss", len(steps)]]
    panel.picture("compare-group")


def test_runs_are_aligned_by_what_is_chosen_and_a_refusal_stands_beside_it(
    panel: PanelPage,
) -> None:
    compared(panel).action("runs").click()
    panel.page.locator("[data-role=aligned] [data-value=samples]").click()
    wait_chosen(panel, aligned="samples")
    refusal = "samples are not recorded in digits-cnn-5; run.log(samples=...) does it"
    tells(panel, refused={OTHERS[1]: refusal})
    expect(dialog(panel).locator(".nbp-refused")).to_have_text(refusal)
    expect(panel.page.locator("[data-action=line-options]")).to_contain_text("by samples")
    panel.page.locator("[data-role=aligned] [aria-checked=true]").press("ArrowRight")
    wait_chosen(panel, aligned="epochs")
    panel.picture("compare-refused")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1100, "dark")])
def test_compared_runs_become_references_by_a_click_and_are_dismissed_by_another(
    bare: PanelPage, width: int, theme: str
) -> None:
    panel = compared(introduce(bare.show(width, theme)))
    panel.action("runs").click()
    choice = panel.page.locator("[data-role=references]")
    expect(choice.get_by_role("radio", name="off")).to_be_checked()
    choice.get_by_role("radio", name="where it differs").click()
    [asked] = panel.sent("compare_with")
    assert asked["runs"] == OTHERS
    tells(panel, references=["digits-cnn-8", "digits-cnn-5"], are_references=True)
    expect(choice.get_by_role("radio", name="where it differs")).to_be_checked()
    panel.picture(f"compare-references-{width}-{theme}")
    tells(panel, references=["good-1"], are_references=False)
    expect(dialog(panel)).to_contain_text("now compared with good-1")
    choice.get_by_role("radio", name="off").click()
    assert panel.sent("compare_with")[-1]["runs"] == []
