"""The Explorer in a notebook, as a person uses it, and a small network to watch with it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Locator, expect

from tests.browser.lab import PATIENCE_S, ROOT, Notebook

PICTURES = ROOT / "build" / "screenshots"

MODEL = """
import time
import torch
from torch import nn
import notebook_probe as nbp

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train(n_steps=10**9):
    for _ in range(n_steps):
        loss = model(torch.randn(32, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss)
        time.sleep(0.01)  # a larger network
"""


def watch(store: str) -> str:
    """The cell that watches the small network and shows its panel."""
    return (
        f"run = nbp.watch(model, optimizer, store='runs/{store}.zarr', budget=None)\nrun.explore()"
    )


class Plot:
    """One of the two pictures of a panel; places in it are shares of its box, 0 to 1."""

    def __init__(self, panel: Panel, kind: str) -> None:
        self._panel = panel
        self.canvas = panel.root.locator(f"canvas.nbp-{kind}")
        self.tip = panel.root.locator(f".nbp-plot:has(canvas.nbp-{kind}) .nbp-tip")

    @property
    def axis(self) -> tuple[float, float]:
        """First and last step shown."""
        low, high = json.loads(self.canvas.get_attribute("data-axis") or "[-1, -1]")
        return low, high

    def wait_axis(self, condition: str, argument: object = None) -> None:
        """Wait for a JavaScript condition on ``low``, ``high`` and ``argument``."""
        self._panel.wait_until(
            f"""(root, [kind, argument]) => {{
              const axis = root.querySelector(kind).dataset.axis;
              const [low, high] = JSON.parse(axis ?? "[-1, -1]");
              return {condition};
            }}""",
            [f"canvas.{self.canvas.get_attribute('class')}", argument],
        )

    def hover(self, x: float, y: float) -> str:
        """Point at a place; the words that appear there."""
        self._panel.notebook.page.mouse.move(*self._at(x, y))
        expect(self.tip).to_be_visible()
        return self.tip.inner_text()

    def click(self, x: float, y: float) -> None:
        self._panel.notebook.page.mouse.click(*self._at(x, y))

    def double_click(self, x: float, y: float) -> None:
        self._panel.notebook.page.mouse.dblclick(*self._at(x, y))

    def drag(self, start: float, end: float) -> None:
        """Mark a range of steps."""
        mouse = self._panel.notebook.page.mouse
        mouse.move(*self._at(start, 0.5))
        mouse.down()
        mouse.move(*self._at((start + end) / 2, 0.5))
        mouse.move(*self._at(end, 0.5))
        mouse.up()

    def _at(self, x: float, y: float) -> tuple[float, float]:
        place = self.canvas.bounding_box()
        assert place is not None, "the plot is not on the page"
        left, top, right, bottom = json.loads(self.canvas.get_attribute("data-box") or "")
        return place["x"] + left + x * (right - left), place["y"] + top + y * (bottom - top)


class Panel:
    """The Explorer in the output of a cell."""

    def __init__(self, notebook: Notebook, cell: int, within: str = "") -> None:
        self.notebook = notebook
        self.root = notebook.locate(cell).locator(f"{within} .nbp-panel")
        self.heat, self.lines = Plot(self, "heat"), Plot(self, "lines")
        self.ticket = self.root.locator("[data-role='ticket']")
        self.problems = self.root.locator(".nbp-problems")
        self.show()

    def show(self) -> None:
        """Scroll to the panel; a cell out of sight is on the page, but not visible."""
        self.root.wait_for(state="attached")
        self.root.evaluate("(root) => root.scrollIntoView({ block: 'center' })")
        expect(self.root).to_be_visible()

    # ------------------------------------------------------------------------- what a person does

    def button(self, action: str) -> Locator:
        return self.root.locator(f"button[data-action='{action}']")

    def press(self, action: str) -> None:
        self.button(action).click()

    def mark(self, module: str) -> None:
        self.root.locator(f".nbp-row[data-module='{module}']").click()

    def attach(self, module: str, quantity: str, schedule: str) -> None:
        self.mark(module)
        self.root.locator("[data-role='quantity']").click()
        self.root.locator(".nbp-picker input[type=search]").fill(quantity)
        self.root.locator(f".nbp-pick[data-quantity='{quantity}']").click()
        self.root.locator("[data-role='schedule']").fill(schedule)
        self.press("attach")

    def compare(self, quantity: str) -> None:
        """Have the heat map show a quantity, by its chip."""
        self.root.locator(f".nbp-quantities [data-quantity='{quantity}']").click()
        expect(self.heat.canvas).to_have_attribute("data-quantity", quantity)

    def add_series(self, module: str, quantity: str) -> None:
        """Pick a series with the "+" of the line view."""
        self.press("add")
        self.root.locator(".nbp-popover input").last.fill(f"{module} {quantity}")
        self.root.locator(
            f".nbp-popover [data-module='{module}'][data-quantity='{quantity}']"
        ).click()
        self.notebook.page.keyboard.press("Escape")

    # --------------------------------------------------------------------- what a person then sees

    @property
    def step(self) -> int:
        return int(self.root.get_attribute("data-step") or -1)

    @property
    def series(self) -> dict[str, int]:
        """Series drawn now, and how many points of each."""
        names, points = self.lines.canvas.evaluate(
            "({ dataset }) => [dataset.series, dataset.points].map((text) => JSON.parse(text))"
        )
        return dict(zip(names, points, strict=True))

    def wait_until(self, condition: str, argument: object = None) -> None:
        """Wait for a JavaScript condition on the panel's root and ``argument``."""
        self.notebook.page.wait_for_function(
            f"([root, argument]) => ({condition})(root, argument)",
            arg=[self.root.element_handle(), argument],
            timeout=PATIENCE_S * 1000,
        )

    def wait_state(self, state: str) -> None:
        expect(self.root).to_have_attribute("data-state", state)

    def wait_step(self, at_least: int) -> None:
        self.wait_until("(root, n) => Number(root.dataset.step) >= n", at_least)

    def wait_points(self, series: str, at_least: int) -> None:
        self.wait_until(
            """(root, [series, n]) => {
              const data = root.querySelector("canvas.nbp-lines").dataset;
              const place = JSON.parse(data.series ?? "[]").indexOf(series);
              return place >= 0 && JSON.parse(data.points)[place] >= n;
            }""",
            [series, at_least],
        )

    def wait_attached(self) -> int:
        """The step at which the last click on Attach acted, as the panel says it."""
        expect(self.ticket).to_have_attribute("data-state", "applied")
        told = re.search(r"attached at step (\d+)", plain(self.ticket.inner_text()))
        assert told is not None
        return int(told[1])


def plain(text: str) -> str:
    """The panel's numbers without thin spaces, and with an ASCII minus."""
    return text.replace("\u202f", "").replace("−", "-")


def errors_of(outputs: Sequence[dict[str, Any]]) -> list[str]:
    """The errors among a cell's outputs, as the page shows them."""
    return ["\n".join(one["traceback"]) for one in outputs if one["output_type"] == "error"]
