"""The color of a series, chosen at the swatch of its chip."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import lines_message, selection_message
from tests.browser.panel_page import PanelPage, introduce

LOSS, NORM = ("(root)", "loss"), ("head", "grad_norm")
LINES = {LOSS: ([0, 1, 2], [2.0, 1.0, 0.5]), NORM: ([0, 1, 2], [1.0, 0.5, 0.25])}
STROKE = "(node) => node.style.getPropertyValue('--nbp-stroke')"


@pytest.fixture
def panel(bare: PanelPage) -> PanelPage:
    shown = introduce(bare.show(880))
    shown.say(selection_message(series=[LOSS, NORM]))
    shown.draw(*lines_message(LINES))
    return shown


def swatch(panel: PanelPage, name: str = "loss") -> Locator:
    return panel.page.get_by_role("button", name=f"Color of {name}", exact=True)


def test_a_color_is_chosen_by_keyboard_and_has_a_name(panel: PanelPage) -> None:
    swatch(panel).focus()
    panel.page.keyboard.press("Enter")
    dialog = panel.page.get_by_role("dialog", name="Color of loss")
    expect(dialog.get_by_role("radio")).to_have_count(28)
    expect(dialog.get_by_role("radio", name="blue, solid", exact=True)).to_be_focused()
    expect(dialog.get_by_role("radio", checked=True)).to_have_attribute("title", "blue, solid")
    expect(panel.action("automatic-color")).to_have_attribute("aria-pressed", "true")
    panel.picture("series-colors")
    panel.page.keyboard.press("ArrowDown")
    panel.page.keyboard.press("ArrowRight")
    expect(dialog.get_by_role("radio", name="vermilion, dashed")).to_be_focused()
    assert panel.sent("selection") == [], "an arrow moves, Enter chooses"
    panel.page.keyboard.press("Enter")
    assert panel.wait_sent("selection")["chosen_colors"] == [[*LOSS, 8]]
    expect(dialog.get_by_role("radio", checked=True)).to_have_attribute("data-color", "8")
    panel.page.keyboard.press("Escape")
    expect(swatch(panel)).to_be_focused()


def test_the_choice_can_be_taken_back(panel: PanelPage) -> None:
    swatch(panel).click()
    panel.page.locator(".nbp-color[data-color='4']").click()
    assert panel.wait_sent("selection")["chosen_colors"] == [[*LOSS, 4]]
    panel.page.keyboard.press("Escape")
    expect(panel.action("undo")).to_have_attribute("title", "Undo: color (z)")
    panel.action("undo").click()
    assert panel.wait_sent("selection", 2)["chosen_colors"] == []


def test_a_series_is_automatic_again_and_the_others_keep_their_colors(panel: PanelPage) -> None:
    panel.say(selection_message(series=[LOSS, NORM], chosen_colors=[(*NORM, 5), (*LOSS, 4)]))
    swatch(panel).click()
    expect(panel.page.get_by_role("radio", checked=True)).to_have_attribute("data-color", "4")
    panel.action("automatic-color").click()
    assert panel.wait_sent("selection")["chosen_colors"] == [[*NORM, 5]]


def test_the_chip_has_the_color_and_the_dash_of_its_line(panel: PanelPage) -> None:
    chip = panel.root.locator(".nbp-chip.nbp-on").first
    before = chip.evaluate(STROKE)
    frame, buffers = lines_message(LINES, seq=2)
    frame["series"][0]["colour"] = 8
    panel.draw(frame, buffers)
    assert before != chip.evaluate(STROKE)
    assert "repeating-linear-gradient" in chip.evaluate(STROKE)


@pytest.mark.parametrize("ground", [[255, 255, 255], [17, 17, 17], [0, 0, 0], [120, 120, 120]])
def test_every_color_stands_out_from_the_ground(panel: PanelPage, ground: list[int]) -> None:
    ratios = panel.evaluate(
        """(ground) => [...Array(28).keys()].map((index) =>
        parts.contrast(parts.rgbOf(parts.seriesColour(index, ground)), ground))""",
        ground,
    )
    assert len(ratios) == 28
    assert min(ratios) >= 3
