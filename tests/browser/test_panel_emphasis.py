"""What is pointed at is brought out in lines, chips, tree and table; all others are dimmed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.panel_messages import lines_message
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_arranged import ALL, LOSS, NORM, chart, charts, drawn, pinned

DIMMED = ".nbp-dimmed"


def colours(panel: PanelPage) -> int:
    """Pixels of the lines with much of their color."""
    panel.wait_frame()
    found: int = panel.lines.evaluate(
        """(canvas) => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const range = (some) => Math.max(...some) - Math.min(...some);
          let n = 0;
          for (let k = 0; k < data.length; k += 4)
            n += data[k + 3] > 150 && range(data.slice(k, k + 3)) > 90;
          return n; }"""
    )
    return found


def chip(panel: PanelPage, name: str) -> str:
    return f'.nbp-chips .nbp-chip[title="{name}"]'


def test_a_chip_brings_out_its_line(bare: PanelPage) -> None:
    panel = drawn(bare)
    before = colours(panel)
    panel.page.locator(chip(panel, "accuracy")).hover()
    expect(panel.page.locator(f".nbp-chip{DIMMED}")).to_have_count(2)
    assert colours(panel) < 0.6 * before, "two of three lines are faint"
    panel.picture("emphasis")
    panel.page.mouse.move(0, 0)
    expect(panel.page.locator(DIMMED)).to_have_count(0)
    assert colours(panel) == before


def test_a_line_brings_out_its_chip_and_its_module(bare: PanelPage) -> None:
    panel = drawn(bare, charts=[chart(NORM, LOSS)])
    only = charts(panel)[0]
    x = panel.x_of_step(panel.lines, 199)
    for y in range(int(only["bottom"]) - 2, int(only["top"]), -3):  # up to the line of the norm
        panel.lines.hover(position={"x": x, "y": y})
        if panel.page.locator(f"{chip(panel, 'loss')}{DIMMED}").count():
            break
    expect(
        panel.page.locator(f"{chip(panel, 'block.conv2 · grad_norm')}:not({DIMMED})")
    ).to_be_visible()
    expect(panel.row("block.conv2")).to_have_class("nbp-row nbp-pointed")
    panel.page.mouse.move(0, 0)
    expect(panel.page.locator(DIMMED)).to_have_count(0)


def test_a_row_of_the_tree_brings_out_the_lines_of_its_module(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.row("block.conv2").hover()
    expect(panel.page.locator(f".nbp-chip{DIMMED}")).to_have_count(2)
    panel.row("pool").hover()
    expect(panel.page.locator(DIMMED)).to_have_count(0)  # nothing of it is drawn


def test_a_row_of_the_heat_map_and_of_the_pins_do_as_well(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 100), "y": 100})
    expect(panel.page.locator(f".nbp-chip{DIMMED}")).to_have_count(2)
    section = pinned(panel, 50)
    section.get_by_role("row").nth(1).hover()
    expect(panel.page.locator(f".nbp-pin-row{DIMMED}")).to_have_count(2)
    expect(panel.page.locator(f"{chip(panel, 'accuracy')}{DIMMED}")).to_be_visible()


def test_a_line_alone_is_not_brought_out_of_anything(bare: PanelPage) -> None:
    panel = drawn(bare)
    panel.draw(*lines_message({LOSS: ALL[LOSS]}, seq=2))
    panel.page.locator(chip(panel, "loss")).hover()
    expect(panel.page.locator(DIMMED)).to_have_count(0)


@pytest.mark.parametrize("name", ["accuracy"])
def test_the_keyboard_brings_out_a_line_too(bare: PanelPage, name: str) -> None:
    panel = drawn(bare)
    panel.page.get_by_role("button", name=f"Remove {name}").focus()
    expect(panel.page.locator(f".nbp-chip{DIMMED}")).to_have_count(2)
