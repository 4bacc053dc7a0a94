"""The graph of a real network: built by a click while it trains, and in a file without a kernel."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from torch import Tensor, nn

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.graph_messages import box
from tests.browser.lab import PATIENCE_S, OpenNotebook
from tests.browser.panel_page import PanelPage


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv2(self.relu(self.bn1(self.conv1(x))))
        return cast("Tensor", self.relu(x + y))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.layer1 = nn.Sequential(Block(8), Block(8))
        self.layer2 = nn.Sequential(Block(8), Block(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.layer2(self.layer1(self.stem(x))))
        return cast("Tensor", self.head(x.flatten(1)))


TRAINING = f"""
import time
from typing import cast
import torch
from torch import Tensor, nn
import notebook_probe as nbp

{inspect.getsource(Block)}
{inspect.getsource(Residual)}

torch.manual_seed(0)
torch.set_num_threads(1)
model = Residual()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
run = nbp.watch(model, optimizer, store="runs/residual.zarr", budget=None)
run.explore()
"""
LOOP = """
for step in range(100_000):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 1, 12, 12)), torch.randint(0, 4, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log(loss=loss)
    time.sleep(0.01)  # a larger network
    if run.closed:
        break
"""


def box_of(panel: Panel, module: str) -> Locator:
    return panel.root.locator(f'.nbp-graph-box[data-module="{module}"]')


@pytest.mark.stories
def test_a_click_builds_the_graph_while_it_trains_and_a_box_draws_its_series(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook([TRAINING, LOOP])
    notebook.run(0)
    notebook.start(1)
    panel = Panel(notebook, 0)
    panel.wait_step(5)
    panel.press("graph")
    panel.press("build-graph")
    for module in ("stem", "layer1", "layer2", "pool", "head"):
        expect(box_of(panel, module)).to_be_visible()
    built_at = panel.step
    expect(box_of(panel, "layer1.0")).to_have_class(re.compile("nbp-coloured"))
    box_of(panel, "head").click()
    expect(panel.root.locator(".nbp-row[data-module=head]")).to_have_attribute(
        "aria-selected", "true"
    )
    home = panel.heat.canvas.get_attribute("data-quantity")
    expect(panel.lines.canvas).to_have_attribute("data-series", re.compile(f"head · {home}"))
    box_of(panel, "layer1.1").dblclick()
    expect(box_of(panel, "layer1.1.relu")).to_have_count(2)
    panel.wait_step(built_at + 5)
    panel.show()
    notebook.screenshot(PICTURES / "graph-live.png")
    panel.press("stop")
    notebook.wait_finished(1)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few steps of the same network, handed on."""
    folder = tmp_path_factory.mktemp("graph")
    torch.manual_seed(0)
    model = Residual()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(4, 1, 12, 12)
    with nbp.watch(model, optimizer, store=folder / "run.zarr", budget=None) as run:
        for _ in range(20):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        run.graph(x)
    return nbp.open_run(folder / "run.zarr").to_html(folder / "run.html")


@pytest.fixture(scope="module")
def offline(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(offline=True, viewport={"width": 912, "height": 900})
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


def test_a_file_without_a_kernel_has_the_graph_in_the_colours_of_its_heat_map(
    offline: Page, file: Path
) -> None:
    panel = PanelPage(offline)
    offline.goto(file.as_uri())
    expect(panel.heat).to_have_attribute("data-quantity", "update_ratio")
    panel.action("graph").click()
    expect(box(panel, "layer1.0")).to_have_class(re.compile("nbp-coloured"))
    expect(panel.action("build-graph")).to_be_hidden()
    box(panel, "head").click()
    expect(panel.lines).to_have_attribute("data-series", re.compile("head · update_ratio"))
    panel.picture("graph-file")
    assert panel.errors == []
