"""The history: checkpoints above the step axis of the heat map, and the way back to them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.history_messages import branched, history
from tests.browser.panel_page import PanelPage

WIDTHS = [(640, "dark"), (880, "light"), (1280, "dark")]


def shown(bare: PanelPage, width: int = 880, theme: str = "light") -> PanelPage:
    bare.show(width, theme)
    bare.say(kernel.model_message())
    bare.say(kernel.status_message(step=842))
    bare.say(kernel.selection_message())
    cells = np.random.default_rng(0).lognormal(size=(len(kernel.WEIGHTED), 842))
    bare.draw(*kernel.heat_message(cells, kernel.WEIGHTED, last_step=841))
    return bare


def diamonds(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-diamond")


BOTTOM_IS = "(foot) => JSON.parse(document.querySelector('.nbp-heat').dataset.box)[3] === foot"


def bottom_of_rows(panel: PanelPage) -> float:
    return float(json.loads(panel.heat.get_attribute("data-box") or "")[3])


def test_a_loop_without_checkpoints_has_no_strip(panel: PanelPage) -> None:
    strip = panel.page.locator(".nbp-history")
    expect(strip).to_be_hidden()
    panel.say(history(200, 400))
    expect(strip).to_be_visible()
    expect(strip).to_contain_text("2 checkpoints")
    panel.say(history())
    expect(strip).to_be_hidden()


def test_each_stands_at_its_step_between_the_rows_and_their_axis(panel: PanelPage) -> None:
    foot = bottom_of_rows(panel)
    panel.say(history(200, 400, 800))
    panel.page.wait_for_function(BOTTOM_IS, arg=foot)  # the plot has grown by the strip
    expect(diamonds(panel)).to_have_count(3)
    canvas = panel.heat.bounding_box()
    assert canvas is not None
    for k, step in enumerate((200, 400, 800)):
        box = diamonds(panel).nth(k).bounding_box()
        assert box is not None
        at = canvas["x"] + panel.x_of_step(panel.heat, step)
        assert box["x"] + box["width"] / 2 == pytest.approx(at, abs=1)
        assert box["y"] >= canvas["y"] + foot
        assert box["y"] + box["height"] <= canvas["y"] + canvas["height"] - 22  # the axis


def test_two_lines_of_history_take_twice_the_room_and_give_it_back(panel: PanelPage) -> None:
    foot, tall = bottom_of_rows(panel), panel.heat.evaluate("(canvas) => canvas.clientHeight")
    for message, lines in ((branched(100, 200, 300), 2), (history(200), 1), (history(), 0)):
        panel.say(message)
        panel.page.wait_for_function(
            "(tall) => document.querySelector('.nbp-heat').clientHeight === tall",
            arg=tall + 20 * lines,
        )
        panel.page.wait_for_function(BOTTOM_IS, arg=foot)
        panel.picture(f"history-{lines}")
    assert panel.errors == []


def test_a_click_says_what_it_is_and_how_to_go_back(panel: PanelPage) -> None:
    panel.say(history(200, 400))
    diamonds(panel).first.click()
    dialog = panel.page.get_by_role("dialog", name="Back to step 200")
    expect(dialog).to_contain_text("checkpoint 14\u202fmin ago · 314\u202fkB · loss 0.571")
    expect(dialog).to_contain_text("Rows after step 200 stay in the record, as branch 1: 642 steps")
    expect(dialog.locator("pre")).to_have_text('run = loop.rewind(200, probes="default")')
    panel.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(diamonds(panel).first).to_be_focused()
    panel.page.keyboard.press("ArrowRight")
    expect(diamonds(panel).last).to_be_focused()


def test_dragged_along_the_strip_the_cursor_goes_to_the_nearest_and_let_go_it_opens(
    panel: PanelPage,
) -> None:
    panel.say(history(200, 400, 800))
    canvas, strip = panel.heat.bounding_box(), panel.page.locator(".nbp-history").bounding_box()
    assert canvas is not None
    assert strip is not None
    mouse, y = panel.page.mouse, strip["y"] + strip["height"] / 2

    def at(step: int) -> float:
        return canvas["x"] + panel.x_of_step(panel.heat, step)

    mouse.move(at(260), y)
    mouse.down()
    expect(diamonds(panel).nth(0)).to_be_focused()
    mouse.move(at(650), y)
    expect(diamonds(panel).nth(2)).to_be_focused()
    expect(panel.page.get_by_role("dialog")).to_have_count(0)
    mouse.move(at(450), y)
    mouse.up()
    expect(panel.page.get_by_role("dialog", name="Back to step 400")).to_be_visible()
    panel.page.keyboard.press("Escape")


def test_one_whose_file_is_gone_says_so(panel: PanelPage) -> None:
    panel.say(history(200, 400, gone=200))
    first = diamonds(panel).first
    expect(first).to_have_attribute("title", "the checkpoint of step 200 was removed")
    first.click()
    dialog = panel.page.get_by_role("dialog")
    expect(dialog).to_contain_text("loop.rewind takes the newest one before it")
    expect(dialog.locator("pre")).to_have_count(0)


@pytest.mark.parametrize(("width", "theme"), WIDTHS)
def test_it_fits_into_a_panel_of_every_width(bare: PanelPage, width: int, theme: str) -> None:
    panel = shown(bare, width, theme)
    panel.say(history(100, 200, 300, 400, 500, 600, 700, 800, gone=100))
    diamonds(panel).nth(2).click()
    inside = panel.page.get_by_role("dialog").bounding_box()
    around = panel.root.bounding_box()
    assert inside is not None
    assert around is not None
    assert around["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= around["x"] + around["width"]
    panel.picture(f"history-{theme}-{width}")
