"""Kept looks as squares below the lines, the sample beside its number, and the keys of a look."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Locator, expect

import notebook_probe as nbp
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_looks import Kernel, opened, run, show

__all__ = ["run"]


def shown(bare: PanelPage) -> PanelPage:
    """Lines with a square for each look; a step of them is 10 pixels and more."""
    show(bare, 880)
    bare.say(kernel.selection_message(series=[("head", "grad_norm")]))
    told = [
        (0.0, "look", "of stem.conv1"),
        (1.0, "look", "of stem.conv1"),
        (2.0, "look", "of attn"),
    ]
    values = {("head", "grad_norm"): (np.arange(4), np.arange(1.0, 5.0))}
    bare.draw(*kernel.lines_message(values, events=told))
    return bare


def middle_of_square(panel: PanelPage, step: int) -> tuple[float, float]:
    """Where it stands in the canvas of the lines."""
    box = panel.lines.evaluate("(canvas) => JSON.parse(canvas.dataset.box)")
    return panel.x_of_step(panel.lines, step), box[3] + 5


def is_filled(panel: PanelPage, step: int) -> bool:
    panel.wait_frame()
    inside = panel.pixel(panel.lines, *middle_of_square(panel, step))
    return inside != (255, 255, 255, 255)  # the ground


def press_square(panel: PanelPage, step: int) -> None:
    x, y = middle_of_square(panel, step)
    panel.lines.click(position={"x": x, "y": y})


def test_a_square_that_is_clicked_shows_its_look_and_is_filled(
    panel: PanelPage, run: nbp.Run
) -> None:
    answering = Kernel(panel, run)
    answering.tells()
    assert not any(is_filled(panel, step) for step in range(3))
    press_square(panel, 2)
    answering.answers()
    expect(panel.page.locator(".nbp-look-module")).to_have_text("attn")
    assert [is_filled(panel, step) for step in range(3)] == [False, False, True]
    press_square(panel, 0)
    answering.answers()
    expect(panel.page.locator(".nbp-look-module")).to_have_text("stem.conv1")
    assert [is_filled(panel, step) for step in range(3)] == [True, False, False]
    panel.picture("look-squares")
    panel.action("leave-look").click()
    assert not any(is_filled(panel, step) for step in range(3))
    assert panel.errors == []


def value(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-look-value")


def test_arrows_choose_a_channel_and_with_shift_a_pixel_wherever_the_focus_is(
    panel: PanelPage, run: nbp.Run
) -> None:
    opened(panel, run)
    chosen = panel.page.locator(".nbp-look-large > b")
    large = panel.page.locator(".nbp-look-pair canvas").first
    for place in (panel.page.locator("[data-tensor=output]"), large, panel.action("leave-look")):
        before = int((chosen.text_content() or "").split()[1])
        place.press("ArrowRight")
        expect(chosen).to_have_text(f"channel {before + 1}")
    large.press("Shift+ArrowDown")
    expect(value(panel)).to_contain_text("row 7, column 7")  # begins in the middle
    panel.page.locator("[data-tensor=weight]").press("Shift+ArrowLeft")
    expect(value(panel)).to_contain_text("row 7, column 6")
    expect(chosen).to_have_text("channel 3")
    panel.page.locator("[data-role=look-sample]").press("ArrowDown")  # its own key
    expect(chosen).to_have_text("channel 3")


def test_painting_anew_leaves_the_focus_where_it_is(panel: PanelPage, run: nbp.Run) -> None:
    opened(panel, run)
    block = panel.page.locator("[data-tensor=output]")
    before = block.evaluate("(own) => { own.focus(); return own.toDataURL(); }")
    panel.page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    panel.page.wait_for_function(
        "([own, before]) => own.toDataURL() !== before", arg=[block.element_handle(), before]
    )
    expect(block).to_be_focused()


def test_the_input_of_the_chosen_sample_stands_beside_its_number(
    panel: PanelPage, run: nbp.Run
) -> None:
    answering = opened(panel, run)
    shown = panel.page.locator(".nbp-look-sample")
    expect(shown).to_have_attribute("title", "Input of sample 0")
    first = shown.evaluate("(canvas) => canvas.toDataURL()")
    panel.page.locator("[data-role=look-sample]").select_option("3")
    answering.answers()
    expect(shown).to_have_attribute("title", "Input of sample 3")
    assert shown.evaluate("(canvas) => canvas.toDataURL()") != first
    image = run.looks[1].data.input.values[3, 0]
    brightest, darkest = (
        np.unravel_index(place, image.shape) for place in (image.argmax(), image.argmin())
    )
    side = 18 / image.shape[0]
    for (row, column), level in ((brightest, 255), (darkest, 0)):
        middle = ((column + 0.5) * side, (row + 0.5) * side)
        assert abs(panel.pixel(shown, *middle)[0] - level) < 90  # neighbours are blended in
