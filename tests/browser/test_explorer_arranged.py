"""Charts in a real JupyterLab: arranged, saved under a name, and found again the next day."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.errands import Errands
from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

TRAIN = """
import torch
import notebook_probe as nbp

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
run = nbp.watch(model, optimizer, store="runs/arranged.zarr", budget=None)
for step in range(60):
    loss = (model(torch.randn(16, 8)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log(loss=loss.item(), accuracy=1 - 0.9 ** (step / 10 + 1))
run.flush()
run.explore()
"""
NEXT_DAY = """
run.close()
opened = nbp.open_run("runs/arranged.zarr")
opened.to_html("arranged.html", view="side by side")
opened.explore()
"""

CHARTS = "(root, wanted) => root.querySelector('.nbp-lines').dataset.charts.includes(wanted)"


def charts(panel: Panel) -> list[list[str]]:
    told = json.loads(panel.root.locator(".nbp-lines").get_attribute("data-charts") or "[]")
    return [one["series"] for one in told]


def test_two_charts_and_a_formula_are_there_the_next_day(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([TRAIN, NEXT_DAY])
    notebook.run(0)
    panel = Panel(notebook, 0)
    panel.wait_points("loss", 60)
    errands = Errands(notebook.page)
    with errands.errand("put two charts side by side and find them there tomorrow"):
        panel.press("new-chart")
        panel.button("chart-options").last.click()
        dialog = panel.root.get_by_role("dialog", name="Options of the chart")
        search = dialog.get_by_label("Find a series for this chart")
        search.fill("= 1 - accuracy")
        search.press("Enter")
        panel.wait_until(CHARTS, "= 1 - accuracy")
        expect(dialog.get_by_role("list", name="Series of this chart")).to_contain_text(
            "= 1 - accuracy"
        )
        panel.root.page.keyboard.press("Escape")
        arranged = charts(panel)
        assert arranged[-1] == ["= 1 - accuracy"]
        panel.wait_points("= 1 - accuracy", 60)
        panel.press("saved-views")
        name = panel.root.get_by_label("Name of the view")
        name.fill("side by side")
        name.press("Enter")
        expect(panel.root.get_by_role("listitem")).to_contain_text(["side by side"])
    print(f"\n{errands.told()}")
    panel.show()
    notebook.screenshot(PICTURES / "arranged.png")

    notebook.run(1)
    later = Panel(notebook, 1)
    later.wait_until(CHARTS, "= 1 - accuracy")
    later.wait_points("= 1 - accuracy", 60)
    assert charts(later) == arranged
    page = notebook.page.context.new_page()
    page.goto((lab.notebooks / "arranged.html").as_uri())
    lines = page.locator(".nbp-lines")
    expect(lines).to_have_attribute("data-charts", re.compile("= 1 - accuracy"))
    told = json.loads(lines.get_attribute("data-charts") or "[]")
    assert [one["series"] for one in told] == arranged
    page.close()
