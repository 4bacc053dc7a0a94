"""A network really trains in a real JupyterLab, and somebody clicks in its Explorer meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

import notebook_probe as nbp
from tests.browser.lab import ROOT, LabServer, Notebook, OpenNotebook

pytestmark = pytest.mark.browser

QUICKSTART = ROOT / "notebooks" / "quickstart.ipynb"
BEFORE, PANEL, TRAINING = (2, 4, 6), 8, 10
PICTURES = ROOT / "build" / "screenshots"


class Panel:
    """The Explorer of a cell, as a person uses it."""

    def __init__(self, notebook: Notebook, cell: int) -> None:
        self.notebook = notebook
        self.root = notebook.locate(cell).locator(".nbp-panel")
        self.show()

    def show(self) -> None:
        """Scroll to the panel; a cell out of sight is on the page, but not visible."""
        self.root.wait_for(state="attached")
        self.root.evaluate("(root) => root.scrollIntoView({ block: 'center' })")
        expect(self.root).to_be_visible()

    def action(self, name: str) -> Locator:
        return self.root.locator(f"button[data-action='{name}']")

    def mark(self, module: str) -> None:
        self.root.locator(f".nbp-row[data-module='{module}']").click()

    def attach(self, module: str, quantity: str, schedule: str) -> None:
        self.mark(module)
        self.root.locator("select[data-role='quantity']").select_option(quantity)
        self.root.locator("[data-role='schedule']").fill(schedule)
        self.action("attach").click()

    def wait_state(self, state: str) -> None:
        expect(self.root).to_have_attribute("data-state", state)

    @property
    def step(self) -> int:
        return int(self.root.get_attribute("data-step") or -1)

    def wait_step(self, at_least: int) -> None:
        self.wait_until("(root, n) => Number(root.dataset.step) >= n", at_least)

    def wait_until(self, condition: str, argument: object = None) -> None:
        handle = self.root.element_handle()
        self.notebook.page.wait_for_function(
            f"([root, argument]) => ({condition})(root, argument)",
            arg=[handle, argument],
            timeout=60_000,
        )

    def lines(self) -> dict[str, int]:
        """Series drawn now -> points of each."""
        canvas = self.root.locator("canvas.nbp-lines")
        names = json.loads(canvas.get_attribute("data-series") or "[]")
        return dict(
            zip(names, json.loads(canvas.get_attribute("data-points") or "[]"), strict=True)
        )

    def wait_points(self, series: str, at_least: int) -> None:
        self.wait_until(
            """(root, [series, n]) => {
              const data = root.querySelector("canvas.nbp-lines").dataset;
              const place = JSON.parse(data.series ?? "[]").indexOf(series);
              return place >= 0 && JSON.parse(data.points)[place] >= n;
            }""",
            [series, at_least],
        )

    def add_series(self, module: str, quantity: str) -> None:
        """Pick a series with the "+" of the line view."""
        self.action("add").click()
        search = self.root.locator(".nbp-popover input").last
        search.fill(f"{module} {quantity}")
        self.root.locator(
            f".nbp-popover [data-module='{module}'][data-quantity='{quantity}']"
        ).click()
        self.notebook.page.keyboard.press("Escape")


def open_quickstart(open_notebook: OpenNotebook) -> tuple[Notebook, Panel]:
    notebook = open_notebook(QUICKSTART)
    notebook.run(*BEFORE, PANEL)
    return notebook, Panel(notebook, PANEL)


def test_a_click_during_the_quickstarts_training_cell_begins_a_series(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook, panel = open_quickstart(open_notebook)
    notebook.start(TRAINING)
    notebook.wait_running(TRAINING)
    panel.show()
    panel.wait_state("training")
    panel.wait_step(20)

    panel.attach("bn2", "input_std", "every(2)")
    ticket = panel.root.locator("[data-role='ticket']")
    expect(ticket).to_have_attribute("data-state", "applied")
    notebook.screenshot(PICTURES / "attached.png")
    panel.wait_points("bn2 · input_std", 5)
    panel.add_series("conv1", "grad_norm")
    panel.wait_points("conv1 · grad_norm", 50)
    assert notebook.is_running(TRAINING), "all of this happened while the cell was blocking"
    notebook.screenshot(PICTURES / "training.png")

    notebook.interrupt()
    notebook.wait_finished(TRAINING)
    applied = int("".join(c for c in ticket.inner_text().split("step")[-1] if c.isdigit()))
    record = nbp.open_run(next(Path(notebook.path).parent.glob("runs/*.zarr")))
    steps = record.series("bn2", "input_std").step
    assert int(steps[0]) in (applied, applied + 1)
    assert (steps % 2 == 0).all()
