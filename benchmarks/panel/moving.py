"""The gaps between frames while 100 series are zoomed and moved along the steps."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks.panel.tree import words
from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
from tests.browser.panel_messages import (
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

__all__ = ["MOVE", "moving"]

N_SERIES, N_POINTS, N_COLUMNS, N_STEPS, N_FRAMES = 100, 140, 370, 1_000_000, 120

# A notch of the wheel, or some pixels of a drag, before each frame.
MOVE = """async ([kind, frames]) => {
  const canvas = document.querySelector("canvas.nbp-lines");
  const place = canvas.getBoundingClientRect();
  const [left, , right, bottom] = JSON.parse(canvas.dataset.box);
  const send = (type, x, y, more) => canvas.dispatchEvent(new type.of(type.name,
    { clientX: place.x + x, clientY: place.y + y, bubbles: true, cancelable: true, ...more }));
  const wheel = { of: WheelEvent, name: "wheel" };
  const down = { of: PointerEvent, name: "pointerdown" };
  const moved = { of: PointerEvent, name: "pointermove" };
  const up = { of: PointerEvent, name: "pointerup" };
  canvas.setPointerCapture = () => {};
  const middle = (left + right) / 2;
  if (kind === "pan") send(down, middle, bottom + 4, {});
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < frames; n++) {
    const turn = Math.sin(n / 12);
    if (kind === "zoom") send(wheel, middle, 60, { ctrlKey: true, deltaY: -60 * Math.cos(n / 12) });
    else send(moved, middle + 120 * turn, bottom + 4, {});
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  if (kind === "pan") send(up, middle, bottom + 4, {});
  return gaps;
}"""


def moving() -> None:
    """Zoom by the wheel and drag of the axis, drawn from what is there, before any answer."""
    names = [f"layers.{k}" for k in range(N_SERIES)]
    series = [(name, "grad_norm") for name in names]
    random = np.random.default_rng(0)
    steps = np.linspace(0, N_STEPS - 1, N_POINTS).round()
    with sync_playwright() as playwright:
        chromium = find_chromium(playwright)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        panel = PanelPage(browser.new_page()).show(1100)
        panel.say(model_message([(name, "Linear", 10, 10, -1) for name in names]))
        panel.say(
            status_message(step=N_STEPS, attached=[], tallies=[], recorded={"grad_norm": names})
        )
        panel.say(selection_message(series=series))
        cells = random.lognormal(size=(N_SERIES, N_COLUMNS))
        panel.draw(*heat_message(cells, names, last_step=N_STEPS - 1))
        panel.draw(
            *lines_message({one: (steps, random.lognormal(size=N_POINTS)) for one in series})
        )
        for kind in ("zoom", "pan"):
            gaps = np.array(panel.evaluate(MOVE, [kind, N_FRAMES]))
            print(f"  {kind}, {N_SERIES} series of {N_STEPS:,} steps: gap of frames {words(gaps)}")
        browser.close()
