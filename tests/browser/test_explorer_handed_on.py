"""A notebook that is read elsewhere: what its outputs show without the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.explorer_page import PICTURES
from tests.browser.lab import PATIENCE_S, LabServer, Notebook

pytestmark = pytest.mark.stories

TRAIN = """
import torch
import notebook_probe as nbp
from torch import nn
torch.manual_seed(0)
layers = [layer for _ in range(12) for layer in (nn.Linear(6, 6), nn.Tanh())]
model = nn.Sequential(*layers, nn.Linear(6, 3), nn.Identity())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
run = nbp.watch(model, optimizer, store="run.zarr", budget=None)
run.explore()
x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
for step in range(60):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    run.log(loss=loss)
run.close()
"""
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """A notebook that was run without a front end."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(TRAIN)])
    folder = tmp_path_factory.mktemp("executed")
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


def saved(notebook: nbformat.NotebookNode, path: Path, widgets: bool = True) -> Path:
    """The notebook as a file; without ``widgets`` as front ends save it that keep no widget."""
    copy = nbformat.from_dict(notebook)
    if not widgets:
        del copy.metadata["widgets"]
    nbformat.write(copy, path)
    return path


def works(panel: Locator) -> None:
    """It was opened from what was saved, hovers, and picks."""
    expect(panel).to_have_count(1)
    panel.scroll_into_view_if_needed()
    expect(panel).to_contain_text("No kernel: hovering, zooming and selecting still work.")
    expect(panel.locator(".nbp-lines")).to_have_attribute("data-series", '["loss"]')
    panel.locator("canvas.nbp-heat").hover(position={"x": 200, "y": 50})
    expect(panel.locator(".nbp-plot:has(canvas.nbp-heat) .nbp-tip")).to_contain_text("update_ratio")
    panel.locator("[data-quantity=grad_norm]").click()
    expect(panel).to_contain_text("grad_norm was not saved with the notebook")


@pytest.mark.parametrize("widgets", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_jupyterlab_opens_the_panel_of_a_notebook_that_was_run_elsewhere(
    executed: nbformat.NotebookNode, lab: LabServer, page: Page, tmp_path: Path, widgets: bool
) -> None:
    path = lab.add(saved(executed, tmp_path / "run.ipynb", widgets))
    lab.trust(path)
    notebook = Notebook(page, lab, path)
    cell = notebook.locate(0)
    if not widgets:
        expect(cell.get_by_text("model not found")).to_be_hidden()
        expect(cell.get_by_text("model not found")).to_have_count(1)
        cell.locator(".nbp-handed-on").scroll_into_view_if_needed()
    works(cell.locator(".nbp-panel"))
    expect(cell.get_by_text("model not found").locator("visible=true")).to_have_count(0)
    expect(cell.locator("img").locator("visible=true")).to_have_count(0)
    notebook.screenshot(PICTURES / f"handed_on_lab_{'widgets' if widgets else 'html'}.png")
    lab.end_kernels()


def test_jupyterlab_shows_the_picture_of_a_notebook_that_is_not_trusted(
    executed: nbformat.NotebookNode, lab: LabServer, page: Page, tmp_path: Path
) -> None:
    theirs = nbformat.from_dict(executed)
    theirs.cells[0].source += "# signed by nobody"
    notebook = Notebook(page, lab, lab.add(saved(theirs, tmp_path / "run.ipynb")))
    cell = notebook.locate(0)
    expect(cell.locator("img")).to_be_visible()
    expect(cell.locator(".nbp-handed-on")).to_have_text("")
    expect(cell.get_by_text("notebook_probe panel")).to_be_visible()
    expect(cell.locator(".nbp-panel")).to_have_count(0)
    notebook.screenshot(PICTURES / "handed_on_lab_untrusted.png")
    lab.end_kernels()


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


@pytest.mark.filterwarnings("ignore")
def test_an_exported_page_holds_the_panel_and_works_offline(
    executed: nbformat.NotebookNode, offline: Page, tmp_path: Path
) -> None:
    text, _ = HTMLExporter().from_notebook_node(executed)
    file = tmp_path / "run.html"
    file.write_text(text, encoding="utf-8")
    offline.goto(file.as_uri(), wait_until="domcontentloaded")
    works(offline.locator(".nbp-panel"))
    expect(offline.locator(".jp-OutputArea-child img").locator("visible=true")).to_have_count(0)
    offline.locator(".nbp-panel").screenshot(path=PICTURES / "handed_on_nbconvert.png")
