"""The panel on a bare page, with a fake kernel that the test speaks for."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from notebook_probe.explorer.assets import css, esm
from tests.browser.lab import PATIENCE_S
from tests.browser.panel_messages import (
    Message,
    model_message,
    selection_message,
    status_message,
)
from tests.browser.panel_parts import PARTS

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
THEMES = Path(sys.prefix) / "share/jupyter/lab/themes/@jupyterlab"

Frame = tuple[Message, Sequence[bytes]]
"""A message with its buffers."""

# The module of the panel, once for all panels of a page.
LOAD = """
async ([source, styles]) => {
  const sheet = document.createElement("style");
  sheet.textContent = styles;
  document.head.append(sheet);
  document.head.append(Object.assign(document.createElement("style"), { id: "around" }));
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const panel = await import(url);
  window.parts = { ...panel.$parts, default: panel.default };
}
"""
# An empty cell, if the module is there. What anywidget hands to `render`, plus a record of
# everything sent and of what is listened to; a view of before keeps its own.
PREPARE = """
([around, body, width]) => {
  if (!("parts" in window)) return false;
  window.cleanUp?.();
  delete window.cleanUp;
  getSelection().removeAllRanges();
  document.documentElement.removeAttribute("style");
  document.getElementById("around").textContent = around;
  for (const { name } of [...document.body.attributes]) document.body.removeAttribute(name);
  for (const [name, value] of Object.entries(body)) document.body.setAttribute(name, value);
  const cell = Object.assign(document.createElement("div"), { id: "cell" });
  cell.style.width = `${width}px`;
  document.body.replaceChildren(cell);
  scrollTo(0, 0);
  const sent = [];
  const subscribers = [];
  Object.assign(window, { sent, subscribers });
  window.fake = {
    on: (name, run) => subscribers.push(run),
    off: (name, run) => { subscribers.splice(subscribers.indexOf(run), 1); },
    send: (content) => sent.push(structuredClone(content)),
  };
  window.deliver = (message, texts) => {
    const views = texts.map((text) => {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      return new DataView(bytes.buffer);
    });
    for (const run of [...subscribers]) run(message, views);
  };
  return true;
}
"""
# Each message in a separate task, as from a socket. No timer: a page's clock may stand still.
DELIVER_ALL = """async (told) => {
  const { port1, port2 } = new MessageChannel();
  for (const [message, texts] of told) {
    deliver(message, texts);
    await new Promise((next) => { port1.onmessage = next; port2.postMessage(null); });
  }
  port1.close();
}"""
RENDER = """() => { window.cleanUp = parts.default.render({
  model: fake, el: document.getElementById("cell") }); }"""

DRESS = """([around, isLight]) => {
  document.getElementById("around").textContent = around;
  document.body.setAttribute("data-jp-theme-light", isLight);
}"""

CUT = """() => {
  const root = document.querySelector(".nbp-panel");
  const room = root.getBoundingClientRect();
  const seen = { visibilityProperty: true, opacityProperty: true };
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  const hasText = (node) => [...node.childNodes].some(isText);
  const overflow = (node) => getComputedStyle(node).overflowX;
  const clipOf = (node) => {
    let at = node;
    while (at !== root && overflow(at) === "visible") at = at.parentElement;
    return at === root ? null : at;
  };
  const isCut = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const { left, right, width } = range.getBoundingClientRect();
    const clip = clipOf(node);
    if (!width || (clip && ["auto", "scroll"].includes(overflow(clip)))) return false;
    if (!clip) return left < room.left - 1 || right > room.right + 1;
    if (right <= clip.getBoundingClientRect().right + 1) return false;
    return !(node.closest("[title]") ?? clip.closest("[title]"));
  };
  const nodes = [...root.querySelectorAll("*")].filter((one) => one.checkVisibility(seen));
  return nodes.filter((one) => hasText(one) && isCut(one)).map((one) => one.textContent);
}"""


class PanelPage:
    """One view of the panel. ``say`` is the kernel's side, ``sent`` what the panel said."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def forget(self) -> None:
        """Leave the document: after a test that has changed what belongs to all of it."""
        self.page.goto("about:blank")

    def show(self, width: int = 1060, theme: str = "light", lab: bool = False) -> PanelPage:
        """Render at ``width`` pixels; ``lab`` puts JupyterLab's own theme variables around it."""
        self.errors.clear()
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        size: ViewportSize = {"width": width + 32, "height": 900}
        if self.page.viewport_size != size:
            self.page.set_viewport_size(size)
        ground = "#fff" if theme == "light" else "#111"
        around = f":root {{{theme_variables(theme) if lab else ''}}} body {{background: {ground}}}"
        body = {"style": "margin: 16px"}
        if lab:
            body["data-jp-theme-light"] = str(theme == "light").lower()
        if not self.page.evaluate(PREPARE, [around, body, width]):
            self.page.set_content("<!doctype html><body></body>")
            self.page.evaluate(LOAD, [f"{esm()}\n{PARTS}", css()])
            self.page.evaluate(PREPARE, [around, body, width])
        self.page.mouse.move(0, 0)
        self.page.evaluate(RENDER)
        expect(self.root).to_have_count(1)
        return self

    def dress(self, theme: str) -> None:
        """Change to another theme of JupyterLab, as a user does while the panel is open."""
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        ground = "#fff" if theme == "light" else "#111"
        around = f":root {{{theme_variables(theme)}}} body {{background: {ground}}}"
        self.page.evaluate(DRESS, [around, str(theme == "light").lower()])
        for _ in range(3):  # the panel reads its colors two frames later
            self.wait_frame()

    @property
    def root(self) -> Locator:
        return self.page.locator(".nbp-panel")

    @property
    def lines(self) -> Locator:
        return self.page.locator(".nbp-lines")

    @property
    def heat(self) -> Locator:
        return self.page.locator(".nbp-heat")

    @property
    def ticket(self) -> Locator:
        return self.page.locator("[data-role=ticket]")

    def row(self, module: str) -> Locator:
        return self.page.locator(f'.nbp-row[data-module="{module}"]')

    def action(self, name: str) -> Locator:
        return self.page.locator(f"[data-action={name}]")

    def choose(self, quantity: str) -> None:
        """Pick a quantity in the attach box."""
        self.page.locator("[data-role=quantity]").click()
        self.page.get_by_role("combobox", name="Find a quantity").fill(quantity)
        self.page.locator(f".nbp-pick[data-quantity={quantity}]").click()

    def say(self, message: Message, buffers: Sequence[bytes] = ()) -> None:
        """Deliver a message from the kernel."""
        given = [message, as_texts(buffers)]
        self.page.evaluate("([message, texts]) => deliver(message, texts)", given)

    def say_all(self, *told: Message | Frame) -> None:
        """Deliver messages and frames from the kernel, one after the other."""
        frames = [one if isinstance(one, tuple) else (one, ()) for one in told]
        self.page.evaluate(DELIVER_ALL, [[one, as_texts(buffers)] for one, buffers in frames])

    def draw(self, message: Message, buffers: Sequence[bytes]) -> None:
        """Deliver a frame and wait until it is painted."""
        self.say(message, buffers)
        self.wait_painted(message)

    def wait_painted(self, message: Message) -> None:
        """Wait until a frame that was delivered is painted."""
        self.page.wait_for_function(
            "([kind, seq]) => sent.some((m) => m.painted?.[kind] === seq)",
            arg=[message["type"], message["seq"]],
        )

    def wait_frame(self) -> None:
        """Wait until what was to be painted by now has been."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def sent(self, type: str) -> list[dict[str, Any]]:
        """Everything of one type that the panel has sent so far."""
        found: list[dict[str, Any]] = self.page.evaluate(
            "(type) => sent.filter((message) => message.type === type)", type
        )
        return found

    def wait_sent(self, type: str, count: int = 1) -> dict[str, Any]:
        """The ``count``-th message of a type, once it has been sent."""
        self.page.wait_for_function(
            "([type, count]) => sent.filter((m) => m.type === type).length >= count",
            arg=[type, count],
        )
        return self.sent(type)[count - 1]

    def call(self, function: str, *arguments: Any) -> Any:
        """What one function of the panel returns."""
        return self.evaluate("([name, given]) => parts[name](...given)", [function, arguments])

    def evaluate(self, source: str, given: Any = None) -> Any:
        """What an expression is on this page, or a function that is called with ``given``."""
        return self.page.evaluate(source, given)

    def x_of_step(self, canvas: Locator, step: float) -> float:
        """Where a step lies on a linear axis, in CSS pixels of the canvas."""
        left, _, right, _ = json.loads(canvas.get_attribute("data-box") or "")
        low, high = json.loads(canvas.get_attribute("data-axis") or "")
        return float(left + (right - left) * (step - low) / (high - low))

    def pixel(self, canvas: Locator, x: float, y: float) -> tuple[int, int, int, int]:
        """RGBA of a canvas at CSS pixels."""
        found = canvas.evaluate(
            """(canvas, [x, y]) => { const ratio = canvas.width / canvas.clientWidth;
            return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data]; }""",
            [x, y],
        )
        red, green, blue, alpha = found
        return red, green, blue, alpha

    def count_colour(self, canvas: Locator, rgb: tuple[int, int, int]) -> int:
        """Pixels of exactly this colour."""
        found: int = canvas.evaluate(
            """(canvas, rgb) => {
              const { width, height } = canvas;
              const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
              let count = 0;
              for (let k = 0; k < data.length; k += 4)
                count += rgb.every((value, i) => data[k + i] === value) && data[k + 3] === 255;
              return count; }""",
            list(rgb),
        )
        return found

    def cursor_step(self) -> float | None:
        """Where the line stands in the heat map; None where there is none."""
        found: Any = self.page.evaluate(
            """() => { const plot = document.querySelector(".nbp-heat").parentNode;
            const line = plot.querySelector(".nbp-cursor");
            if (line.hidden) return null;
            const [left, , right] = JSON.parse(plot.querySelector("canvas").dataset.box);
            const [low, high] = JSON.parse(plot.querySelector("canvas").dataset.axis);
            const x = new DOMMatrix(getComputedStyle(line).transform).m41;
            return low + (high - low) * (x - left) / (right - left); }"""
        )
        return None if found is None else round(float(found))

    def cut(self) -> list[str]:
        """Return texts that no one can read: outside the panel, or cut and in no title."""
        found: list[str] = self.page.evaluate(CUT)
        return found

    def picture(self, name: str) -> None:
        """Keep a screenshot of the panel for a person to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.root.screenshot(path=SCREENSHOTS / f"{name}.png")


def as_texts(buffers: Sequence[bytes]) -> list[str]:
    """Return buffers as text, which a page can be given."""
    return [base64.b64encode(buffer).decode() for buffer in buffers]


@cache
def theme_variables(theme: str) -> str:
    """The custom properties of JupyterLab's own light or dark theme."""
    sheet = (THEMES / f"theme-{theme}-extension" / "index.css").read_text()
    return ";".join(re.findall(r"--(?:jp|md)-[\w-]+:[^;}]+", sheet))


def one_page(browser: Browser) -> Iterator[PanelPage]:
    """One page for many tests: opening one takes longer than most of them."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield PanelPage(page)
    page.close()


def introduce(panel: PanelPage, **status: Any) -> PanelPage:
    """Say what a kernel says first."""
    panel.say_all(model_message(), status_message(**status), selection_message())
    return panel
