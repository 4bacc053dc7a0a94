"""A day's errands in a real JupyterLab while a cell trains, each with its clicks and seconds."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.errands import Errands
from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

SETUP = """
import time
import torch
from torch import nn
import notebook_probe as nbp

def network():
    torch.manual_seed(0)
    layers = [nn.Linear(8, 16), nn.Sigmoid()]
    for _ in range(7):
        layers += [nn.Linear(16, 16), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(16, 1))

def train(run, model, optimizer, n_steps, jump=lambda step: 0.0):
    for step in range(n_steps):
        x = torch.randn(32, 8)
        loss = (model(x) - 1).square().mean() + 0.1 * torch.rand(()) + jump(step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss)
        time.sleep(0.005)

def begun(name):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    options = {"store": f"runs/{name}.zarr", "name": name, "budget": None}
    return nbp.watch(model, optimizer, **options), model, optimizer

run, model, optimizer = begun("yesterday")
train(run, model, optimizer, 150)
run.close()
run, model, optimizer = begun("today")
"""
TRAIN = "train(run, model, optimizer, 10**6, jump=lambda step: 3.0 * (step % 300 > 250))"


def test_the_errands_of_a_day_take_a_few_clicks_each(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([SETUP, "run.explore()", TRAIN, "run.flush()"])
    notebook.run(0, 1)
    panel = Panel(notebook, 1)
    notebook.start(2)
    panel.wait_state("training")
    panel.show()
    page, root = notebook.page, panel.root
    errands = Errands(page)

    with errands.errand("find the layer with vanishing gradients"):
        newest = root.locator(".nbp-newest")
        expect(newest).to_have_text(re.compile(r"^(began at )?0\b.*: nothing arrives here$"))
    with errands.errand("plot two layers' gradient norms on a log axis"):
        for module in ("0", "16"):
            panel.press("add")
            root.locator(".nbp-popover input").last.fill(f"{module} grad_norm")
            root.locator(f".nbp-popover [data-module='{module}'][data-quantity=grad_norm]").click()
            panel.wait_points(f"{module} · grad_norm", 5)
        panel.wait_until(
            """(root) => {
              const charts = JSON.parse(root.querySelector(".nbp-lines").dataset.charts);
              return ["0 · grad_norm", "16 · grad_norm"].every((name) =>
                charts.some((one) => one.log && one.series.includes(name)));
            }"""
        )
    page.keyboard.press("Escape")
    with errands.errand("find the step where the gradient jumped and look at its batch"):
        charts = json.loads(panel.lines.canvas.get_attribute("data-charts") or "[]")
        drawn = next(k for k, one in enumerate(charts) if "0 · grad_norm" in one["series"])
        panel.button("largest-rise").nth(drawn).click()
        expect(root.locator(".nbp-pins [role=status]")).to_have_text(re.compile("^Rise 1 of"))
        root.get_by_role("button", name=re.compile("^batch of step")).last.click()
        panel.wait_until(
            """(root) => [...root.querySelectorAll(".nbp-batch, .nbp-look")]
              .some((one) => one.checkVisibility())"""
        )
    page.keyboard.press("Escape")
    if root.locator(".nbp-look").is_visible():
        panel.press("leave-look")
    panel.press("clear-pins")
    with errands.errand("smooth the loss"):
        panel.press("line-options")
        slider = root.get_by_role("slider", name="Smoothing")
        slider.click(position={"x": 38, "y": 5})
        panel.wait_until("""(root) => root.querySelector("[data-action=line-options]")
          .textContent.includes("smooth 0.9")""")
    page.keyboard.press("Escape")
    with errands.errand("look at a layer's activations now"):
        panel.mark("0")
        panel.press("look")
        expect(root.locator(".nbp-look-maps").first).to_be_visible()
    notebook.screenshot(PICTURES / "errand-look.png")
    panel.press("leave-look")
    with errands.errand("change the learning rate"):
        panel.press("knobs")
        field = root.locator("[data-knob=lr]")
        field.fill("0.02")
        field.press("Enter")
        expect(panel.button("knobs")).to_contain_text("0.02")
    page.keyboard.press("Escape")
    with errands.errand("compare with yesterday's run"):
        panel.press("runs")
        root.get_by_role("checkbox", name="Compare with yesterday").check()
        panel.wait_until("""(root) => JSON.parse(root.querySelector(".nbp-lines").dataset.beside
          ?? "[]").some(([name, series, n]) => name === "yesterday" && series === "loss" && n > 50)
        """)
    page.keyboard.press("Escape")
    notebook.screenshot(PICTURES / "errand-compare.png")
    with errands.errand("break when the loss exceeds 2"):
        panel.press("breaks")
        dialog = root.get_by_role("dialog", name="Pause when")
        dialog.get_by_label("Module", exact=True).select_option("(root)")
        dialog.get_by_label("Quantity", exact=True).select_option("loss")
        dialog.get_by_label("Number", exact=True).fill("2")
        panel.press("add-break")
        panel.wait_state("paused")
    notebook.screenshot(PICTURES / "errand-break.png")
    page.keyboard.press("Escape")
    with errands.errand("export a figure and its code"):
        root.get_by_role("button", name="Picture ↓").click()
        with page.expect_download() as saving:
            root.locator("[data-export=png]").click()
        assert saving.value.suggested_filename.endswith(".png")
        root.locator("[data-export=code]").click()
        expect(root.get_by_role("textbox", name="Code")).to_have_value(re.compile("grad_norm"))
    print(f"\n{errands.told()}")
    assert max(clicks for clicks, _, _ in errands.done.values()) <= 5
    panel.press("stop")
    notebook.wait_finished(2)
    notebook.run(3)
    record = nbp.open_run(lab.notebooks / "runs" / "today.zarr")
    assert float(record.series("", "loss").values[-1]) > 2, "it was held at once"
