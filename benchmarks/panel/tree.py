"""Time a key in the search and a frame of scrolling, with 10,000 modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from playwright.sync_api import sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
from tests.browser.panel_messages import (
    Module,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_page import PanelPage

N_BLOCKS = 1000
PARTS = [("", "Block", 4_000), ("norm", "LayerNorm", 64), ("attn", "Attention", 3_000)]
PARTS += [(f"attn.{name}", "Linear", 1_000) for name in ("q", "k", "v")]
PARTS += [(f"mlp.{name}", "Linear", 500) for name in ("up", "gate", "down", "out")]
KEYS = "blocks.7"
N_FRAMES, SCROLL_PX = 240, 180

# Time of the handlers of a key, then until the frame that shows what was found is painted.
TYPE = """async (text) => {
  const field = document.querySelector("[data-role=search]");
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
  const times = [];
  for (let n = 1; n <= text.length; n++) {
    await painted();
    field.value = text.slice(0, n);
    const begun = performance.now();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const handled = performance.now() - begun;
    const before = performance.now();
    await painted();
    times.push([handled, performance.now() - before]);
  }
  field.value = "";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return times;
}"""
SCROLL = """async ([frames, pixels]) => {
  const tree = document.querySelector(".nbp-tree");
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < frames; n++) {
    tree.scrollTop += pixels;
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  tree.scrollTop = 0;
  return gaps;
}"""


def tree() -> None:
    """Keys in the search field, and scrolling, with heat map and lines on the screen."""
    with wide_panel() as panel:
        for text in (KEYS, "Linear", "*.attn.q"):
            handled, painted = np.array(panel.evaluate(TYPE, text)).T
            print(f"  {text!r}, a key: {words(handled)}; then to the paint {words(painted)}")
        gaps = np.array(panel.evaluate(SCROLL, [N_FRAMES, SCROLL_PX]))
        print(f"  gap of frames while scrolling {SCROLL_PX} px a frame: {words(gaps)}")


@contextmanager
def wide_panel() -> Iterator[PanelPage]:
    """A panel of 10,000 modules on a bare page, with values of a tenth of them."""
    modules = wide_model()
    paths = [path for path, kind, *_ in modules if kind == "Linear"]
    with sync_playwright() as playwright:
        chromium = find_chromium(playwright)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        panel = PanelPage(browser.new_page()).show(1100)
        panel.say(model_message(modules))
        attached = [(path, "grad_norm", "every(1)") for path in paths]
        recorded = {"grad_norm": paths, "loss": ["(root)"]}
        panel.say(status_message(attached=attached, tallies=[], recorded=recorded))
        loss = ("(root)", "loss")
        panel.say(selection_message(series=[loss]))
        random = np.random.default_rng(0)
        panel.draw(*heat_message(random.lognormal(size=(len(paths), 100)), paths))
        panel.draw(*lines_message({loss: (range(1000), random.lognormal(size=1000))}))
        try:
            yield panel
        finally:
            browser.close()


def wide_model() -> list[Module]:
    """One thousand equal blocks of ten modules, counted from the root."""
    modules: list[Module] = [
        ("(root)", "Wide", 4_000_000, 0, -1),
        ("blocks", "ModuleList", 4_000_000, 0, 0),
    ]
    for block in range(N_BLOCKS):
        first = len(modules)
        for name, kind, size in PARTS:
            path = f"blocks.{block}" + (f".{name}" if name else "")
            parent = 1 if not name else first + 2 if name.startswith("attn.") else first
            modules.append((path, kind, size, size if kind == "Linear" else 0, parent))
    return modules


def words(times_ms: npt.NDArray[np.float64]) -> str:
    """Return the median, the slow end and the slowest."""
    middle, late, most = np.quantile(times_ms, [0.5, 0.95, 1.0])
    return f"median {middle:.1f} ms, p95 {late:.1f} ms, most {most:.1f} ms"
