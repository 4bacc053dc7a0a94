"""Where alerts stand beside the drawer: badges in the tree, marks at the steps of both plots."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import alert_messages as gpt
from tests.browser.panel_page import PanelPage


def shown(bare: PanelPage) -> PanelPage:
    gpt.say_all(bare.show(880))
    return bare


@pytest.fixture(autouse=True)
def _no_error(bare: PanelPage) -> Iterator[None]:
    yield
    assert bare.errors == []


def badge(panel: PanelPage, module: str) -> Locator:
    return panel.page.locator(f'.nbp-row[data-module="{module}"]:not([hidden]) .nbp-badge')


def bottom_of(canvas: Locator) -> float:
    """Where the step axis of a plot lies."""
    return float(json.loads(canvas.get_attribute("data-box") or "")[3])


def test_a_row_has_a_badge_of_its_own_alerts_and_folded_of_all_inside(panel: PanelPage) -> None:
    expect(badge(panel, "(root)").locator("> span")).to_have_text("2")
    expect(badge(panel, "drop")).to_be_hidden()
    expect(badge(panel, "blocks")).to_be_hidden()  # open, and nothing of its own
    expect(badge(panel, "blocks.0.ln1")).to_be_visible()
    panel.row("blocks").locator(".nbp-fold").click()
    inside = badge(panel, "blocks")
    expect(inside).to_have_attribute("data-severity", "severe")
    expect(inside.locator("> span")).to_have_text("5")  # of the seven, each once
    title = panel.row("blocks").get_attribute("title")
    assert str(title).endswith("\n5 alerts inside, 2 severe")


def test_marks_stand_on_both_axes_and_the_heavier_hides_what_is_near(panel: PanelPage) -> None:
    bad, brand = (179, 38, 30), (11, 98, 196)
    for plot in (panel.heat, panel.lines):
        bottom = bottom_of(plot)
        for step, colour in {330: bad, 205: brand}.items():
            x = panel.x_of_step(plot, step)
            near = [
                panel.pixel(plot, x + dx, bottom + dy)[:3] for dx in (-0.5, 0, 0.5) for dy in (3, 5)
            ]
            assert colour in near, (step, near)
    box = panel.heat.bounding_box()
    assert box is not None
    x = panel.x_of_step(panel.heat, 330)
    panel.page.mouse.move(box["x"] + x, box["y"] + bottom_of(panel.heat) + 5)
    tip = panel.page.locator(".nbp-tip:visible")
    expect(tip).to_contain_text("step 330")
    expect(tip).to_contain_text("attention_logit_large at blocks.2.attn")
    expect(tip).to_contain_text("adam_spike_ahead")  # which it hides
    panel.page.mouse.down()
    panel.page.mouse.up()
    panel.page.mouse.move(5, 5)
    assert panel.cursor_step() == 330
