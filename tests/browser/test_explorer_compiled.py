"""A compiled model trains in a real JupyterLab; one click in the panel brings its values back."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

WATCH, TRAINING, FLUSH = 1, 2, 3
EVERY = 5

MODEL = """
import time
import torch
from torch import nn
import notebook_probe as nbp

torch.manual_seed(0)
torch.set_num_threads(1)

class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.act, self.head = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.act(self.body(x)))

model = Regression()
model.compile(backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train(n_steps=10**9):
    for _ in range(n_steps):
        loss = model(torch.randn(32, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)  # a larger network
"""

WATCHED = f"""
run = nbp.watch(model, optimizer, store='runs/compiled.zarr', probes=None, budget=None)
run.on_compiled = 'skip'
run.attach('*', 'output_std', 'every({EVERY})')
run.attach(['body', 'head'], 'grad_norm')
run.explore()
"""


def test_the_button_of_the_notice_brings_values_while_the_training_cell_runs(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([MODEL, WATCHED, "train()", "run.flush()"])
    notebook.run(0, WATCH)
    panel = Panel(notebook, WATCH)
    notice = panel.root.locator(".nbp-notice")
    expect(notice).to_be_hidden()
    notebook.start(TRAINING)
    panel.wait_state("training")
    panel.wait_step(2 * EVERY)
    expect(notice).to_contain_text("This model is compiled and runs no hooks")
    expect(notice).to_contain_text("body, act, head")
    expect(panel.button("silent")).to_contain_text("no values")
    panel.add_series("body", "grad_norm")
    panel.wait_points("body · grad_norm", 10)
    notebook.screenshot(PICTURES / "compiled.png")

    panel.press("eager")
    expect(notice).to_be_hidden()
    panel.add_series("body", "output_std")
    panel.wait_points("body · output_std", 5)
    expect(panel.button("silent")).to_be_hidden()
    assert notebook.is_running(TRAINING), "all of this happened while the cell was blocking"
    panel.root.locator(".nbp-row[data-module='body']").click()
    panel.press("here")
    notebook.screenshot(PICTURES / "eager.png")

    notebook.interrupt()
    notebook.wait_finished(TRAINING)
    assert "KeyboardInterrupt" in notebook.text(TRAINING)
    notebook.run(FLUSH)
    record = nbp.open_run(lab.notebooks / "runs" / "compiled.zarr")
    whole, probed = record.series("body", "grad_norm"), record.series("body", "output_std")
    np.testing.assert_array_equal(whole.step, np.arange(len(whole.step)))
    assert (probed.step % EVERY == 0).all()
    assert int(probed.step[0]) >= 2 * EVERY, "nothing was measured before the click"
    assert (np.diff(probed.step) == EVERY).all()
    assert (probed > 0).all()


SLOW = """
def compile_slowly(graph, inputs):
    origins = [getattr(node.target, "__module__", None) or "" for node in graph.graph.nodes]
    if any(one.startswith("notebook_probe") for one in origins):  # it has readings
        time.sleep(5)  # as Inductor takes
    return graph.forward

model = Regression()
model.compile(backend=compile_slowly, fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
run = nbp.watch(model, optimizer, store='runs/inside.zarr', probes=None, budget=None)
run.attach(['body', 'head'], 'grad_norm')
run.explore()
"""
COUNT = """
from torch._dynamo.utils import counters
run.flush()
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""


def test_a_click_attaches_inside_the_graphs_of_a_model_that_trains_compiled(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([MODEL, SLOW, "train()", COUNT])
    notebook.run(0, WATCH)
    panel = Panel(notebook, WATCH)
    notebook.start(TRAINING)
    panel.wait_state("training")
    panel.wait_step(2 * EVERY)
    panel.attach("body", "output_std", f"every({EVERY})")
    expect(panel.root.locator(".nbp-progress")).to_have_text("compiling the readings")
    notebook.screenshot(PICTURES / "compiling.png")
    panel.wait_points("body · output_std", 5)
    expect(panel.root.locator(".nbp-progress")).to_be_hidden()
    expect(panel.root.locator(".nbp-notice")).to_be_hidden()
    assert notebook.is_running(TRAINING), "all of this happened while the cell was blocking"

    notebook.interrupt()
    notebook.wait_finished(TRAINING)
    notebook.run(FLUSH)
    assert notebook.text(FLUSH).split() == ["2", "0"], "graphs with readings and without, no breaks"
    probed = nbp.open_run(lab.notebooks / "runs" / "inside.zarr").series("body", "output_std")
    assert (np.diff(probed.step) == EVERY).all()
    assert (probed > 0).all()
