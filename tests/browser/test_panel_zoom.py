"""Zoom at the pointer, moving the steps, what is drawn before the answer; both plots together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.panel_messages import heat_message, lines_message, selection_message
from tests.browser.panel_page import PanelPage, introduce

CONV1 = ("stem.conv1", "grad_norm")
NOTCH = -120  # pixels that a notch of a wheel away from the user sends
STEPS = 1000


def shown(bare: PanelPage) -> PanelPage:
    """A heat map and a line of a thousand steps."""
    panel = introduce(bare.show(880), step=STEPS)
    panel.say(selection_message(series=[CONV1]))
    panel.draw(*heat_message(cells(0, STEPS), ["stem.conv1"], last_step=STEPS - 1))
    panel.draw(*lines_message({CONV1: (range(STEPS), 1.0 + np.arange(STEPS))}))
    return panel


def cells(low: int, high: int) -> np.ndarray:
    return np.linspace(1.0 + low, 1.0 + high, 100)[None]


def axis(canvas: Locator) -> tuple[float, float]:
    low, high = json.loads(canvas.get_attribute("data-axis") or "")
    return low, high


def place(panel: PanelPage, canvas: Locator, step: float) -> tuple[float, float]:
    """The middle of a step on the page."""
    box = canvas.bounding_box()
    _, top, _, bottom = json.loads(canvas.get_attribute("data-box") or "")
    assert box is not None
    return box["x"] + panel.x_of_step(canvas, step), box["y"] + (top + bottom) / 2


def turn(panel: PanelPage, canvas: Locator, step: float, pixels: float = NOTCH) -> None:
    """A notch of the wheel at a step, with Ctrl held."""
    panel.page.mouse.move(*place(panel, canvas, step))
    panel.page.keyboard.down("Control")
    panel.page.mouse.wheel(0, pixels)
    panel.page.keyboard.up("Control")


def drag(panel: PanelPage, start: tuple[float, float], pixels: float) -> None:
    x, y = start
    panel.page.mouse.move(x, y)
    panel.page.mouse.down()
    panel.page.mouse.move(x + pixels / 2, y)
    panel.page.mouse.move(x + pixels, y)
    panel.page.mouse.up()


@pytest.mark.parametrize("kind", ["heat", "lines"])
def test_the_wheel_with_ctrl_zooms_both_plots_at_the_pointer(panel: PanelPage, kind: str) -> None:
    canvas = getattr(panel, kind)
    before = place(panel, canvas, 250)
    turn(panel, canvas, 250)
    low, high = panel.wait_sent("selection")["window"]
    assert high - low == pytest.approx(STEPS * np.exp(-0.0024 * 120), abs=3)
    panel.wait_frame()
    assert axis(panel.heat) == axis(panel.lines) == (low, high)
    assert place(panel, canvas, 250)[0] == pytest.approx(before[0], abs=2)


def test_the_wheel_alone_scrolls_the_page_and_zooms_nothing(panel: PanelPage) -> None:
    panel.page.mouse.move(*place(panel, panel.lines, 250))
    panel.page.mouse.wheel(0, NOTCH)
    panel.wait_frame()
    assert panel.sent("selection") == []


def test_zooming_out_ends_at_all_steps_which_follow_the_run_again(panel: PanelPage) -> None:
    turn(panel, panel.lines, 900, 5 * NOTCH)
    panel.wait_frame()
    assert axis(panel.lines)[1] - axis(panel.lines)[0] == pytest.approx(STEPS / 2, abs=9)
    for _ in range(2):
        turn(panel, panel.lines, 900, -5 * NOTCH)
    expect(panel.page.locator("[data-role=reset]")).to_be_hidden()
    panel.wait_frame()
    assert axis(panel.lines)[0] == 0


def test_a_zoom_ends_at_two_steps(panel: PanelPage) -> None:
    for _ in range(10):
        turn(panel, panel.lines, 500, 5 * NOTCH)
    low, high = axis(panel.lines)
    assert low <= 500 <= high
    assert 2 <= high - low <= 4


def test_a_drag_with_shift_or_in_the_axis_moves_the_steps_as_far_as_there_are(
    panel: PanelPage,
) -> None:
    turn(panel, panel.lines, 500, 5 * NOTCH)
    panel.wait_frame()
    low, high = axis(panel.lines)
    pixels = panel.x_of_step(panel.lines, low + 50) - panel.x_of_step(panel.lines, low)
    panel.page.keyboard.down("Shift")
    drag(panel, place(panel, panel.lines, 500), pixels)
    panel.page.keyboard.up("Shift")
    panel.wait_frame()
    assert axis(panel.lines) == axis(panel.heat)
    assert axis(panel.lines)[0] == pytest.approx(low - 50, abs=2)
    x, _ = place(panel, panel.heat, 500)
    foot = panel.heat.bounding_box()["y"] + panel.heat.bounding_box()["height"] - 4  # type: ignore[index]
    drag(panel, (x, foot), -pixels)
    panel.wait_frame()
    assert axis(panel.lines)[0] == pytest.approx(low, abs=2)
    drag(panel, (x, foot), 900)
    panel.wait_frame()
    assert axis(panel.lines)[0] == 0
    assert axis(panel.lines)[1] == pytest.approx(high - low, abs=2)


WHEELED = """(canvas, [x, y]) => {
  for (let n = 0; n < 20; n++) canvas.dispatchEvent(new WheelEvent("wheel",
    { clientX: x, clientY: y, ctrlKey: true, deltaY: -20, bubbles: true, cancelable: true }));
}"""


def test_the_kernel_is_told_of_a_zoom_when_the_hand_rests(panel: PanelPage) -> None:
    canvas = panel.lines
    canvas.evaluate(WHEELED, [*place(panel, canvas, 500)])
    told = panel.wait_sent("selection")
    panel.wait_frame()
    assert axis(panel.lines) == axis(panel.heat) == tuple(told["window"])
    assert len(panel.sent("selection")) == 1, "the plots need no answer to move"
    moved = panel.sent("moved")
    assert len(moved) <= 2, "of twenty turns, in less than half a second"
    assert all(one.keys() == {"v", "type", "window"} for one in moved)


def test_a_double_click_shows_all_steps(panel: PanelPage) -> None:
    turn(panel, panel.lines, 500)
    panel.page.mouse.dblclick(*place(panel, panel.lines, 500))
    panel.wait_frame()
    assert axis(panel.lines)[0] == 0
    assert axis(panel.lines)[1] >= STEPS - 1


def test_keys_zoom_move_and_show_all(panel: PanelPage) -> None:
    panel.lines.focus()
    panel.page.keyboard.press("+")
    panel.wait_frame()
    low, high = axis(panel.lines)
    assert high - low == pytest.approx(STEPS / 1.5, abs=4)
    panel.page.keyboard.press("<")
    panel.wait_frame()
    assert axis(panel.lines)[0] == pytest.approx(low - (high - low) / 4, abs=3)
    panel.page.keyboard.press(">")
    panel.page.keyboard.press("-")
    panel.page.keyboard.press("0")
    panel.wait_frame()
    assert axis(panel.lines)[0] == 0


def test_steps_that_are_moved_into_sight_are_drawn_before_the_answer(panel: PanelPage) -> None:
    panel.say(selection_message(series=[CONV1], window=(400, 600)))
    panel.draw(*heat_message(cells(400, 600), ["stem.conv1"], seq=2, first_step=400, last_step=599))
    steps = np.arange(400, 600)
    panel.draw(*lines_message({CONV1: (steps, 1.0 + steps)}, seq=2))
    left, top, right, bottom = json.loads(panel.heat.get_attribute("data-box") or "")
    drag(panel, (place(panel, panel.heat, 500)[0], foot_of(panel)), (right - left) / 2)
    panel.wait_frame()
    assert axis(panel.heat)[0] == pytest.approx(300, abs=3)
    for step in (320, 380, 420, 490):
        x = panel.x_of_step(panel.heat, step)
        assert panel.pixel(panel.heat, x, (top + bottom) / 2)[3] == 255, step
    assert lit(panel, 330) > 0
    panel.picture("zoom-before-the-answer")


def foot_of(panel: PanelPage) -> float:
    box = panel.heat.bounding_box()
    assert box is not None
    return box["y"] + box["height"] - 4


def lit(panel: PanelPage, step: float) -> int:
    """How many pixels of the line's colour there are in the column of a step."""
    found: int = panel.lines.evaluate(
        """(canvas, x) => {
          const ratio = canvas.width / canvas.clientWidth;
          const pen = canvas.getContext("2d");
          const { data } = pen.getImageData(x * ratio, 20 * ratio, 1, canvas.height - 60 * ratio);
          let n = 0;
          for (let k = 0; k < data.length; k += 4)
            n += data[k + 2] > data[k] + 40 && data[k + 3] > 100;
          return n; }""",
        panel.x_of_step(panel.lines, step),
    )
    return found


@pytest.mark.parametrize(
    ("pixels", "mode", "factor"), [(100, 0, 1.27), (3, 1, 1.27), (4, 0, 1.05), (1e5, 0, 2.0)]
)
def test_a_notch_of_a_wheel_and_the_pinch_of_a_touchpad_have_their_own_speed(
    panel: PanelPage, pixels: float, mode: int, factor: float
) -> None:
    x, y = place(panel, panel.lines, 500)
    panel.lines.evaluate(
        """(canvas, [x, y, deltaY, deltaMode]) => canvas.dispatchEvent(new WheelEvent("wheel",
          { clientX: x, clientY: y, deltaY, deltaMode, ctrlKey: true, cancelable: true }))""",
        [x, y, -pixels, mode],
    )
    low, high = panel.wait_sent("selection")["window"]
    assert high - low == pytest.approx(STEPS / factor, abs=12)
