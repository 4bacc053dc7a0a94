"""JupyterLab hides its notebooks while it changes the theme: what is drawn then is drawn whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import notebook_probe as nbp
from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_looks import Kernel

# As JupyterLab 4.6 does it: gone in the task that changes the theme, there again in the next frame.
DARKEN = """
() => {
  const cell = document.getElementById("cell");
  cell.style.display = "none";
  document.body.style.setProperty("--jp-layout-color1", "#212121");
  document.body.style.setProperty("--jp-ui-font-color1", "#eee");
  document.body.setAttribute("data-jp-theme-light", "false");
  queueMicrotask(() => requestAnimationFrame(() => (cell.style.display = "")));
}
"""
MAPS = "(canvas) => canvas.toDataURL()"
SHOWN_ROWS = ".nbp-row:not([hidden])"


@pytest.fixture
def run(tmp_path: Path) -> nbp.Run:
    """One step of one layer, which is looked at."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4))
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run.look("0")
    model(torch.randn(8, 6)).square().mean().backward()
    optimizer.step()
    run.close()
    return run


def shown(panel: PanelPage, n: int) -> PanelPage:
    modules = [("(root)", "Sequential", 28 * n, 0, -1)]
    modules += [(str(k), "Linear", 28, 28, 0) for k in range(n)]
    panel.say({**kernel.model_message(), "modules": modules, "entries": [], "kinds": []})
    panel.say(kernel.status_message(state="paused"))
    return panel


def looked_at(panel: PanelPage, run: nbp.Run) -> str:
    """The maps of the weight, as they are painted."""
    kernel = Kernel(shown(panel, 1), run)
    kernel.tells()
    panel.row("0").click()
    panel.action("look").click()
    kernel.answers()
    return weight_maps(panel)


def weight_maps(panel: PanelPage) -> str:
    canvas = panel.page.locator(".nbp-look-maps[data-tensor=weight]")
    expect(canvas).to_be_visible()
    panel.wait_frame()
    return str(canvas.evaluate(MAPS))


def test_the_tree_stays_full_when_the_theme_changes(bare: PanelPage) -> None:
    shown(bare.show(880), 60)
    n = bare.page.locator(SHOWN_ROWS).count()
    assert n > 15
    bare.page.evaluate(DARKEN)
    for _ in range(3):
        bare.wait_frame()
    expect(bare.page.locator(SHOWN_ROWS)).to_have_count(n)


def test_the_maps_of_a_look_take_the_colours_of_the_new_theme(
    bare: PanelPage, run: nbp.Run
) -> None:
    bare.show(880)
    bare.page.evaluate(DARKEN)
    dark = looked_at(bare, run)
    light = looked_at(bare.show(880), run)
    assert light != dark
    bare.page.evaluate(DARKEN)
    bare.page.wait_for_function(
        "([maps, dark]) => document.querySelector(maps).toDataURL() === dark",
        arg=[".nbp-look-maps[data-tensor=weight]", dark],
    )
