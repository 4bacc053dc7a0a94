"""Back to a checkpoint by a click in a real JupyterLab: the loop goes on as a branch."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

LOOP = """
import time
import torch
from notebook_probe.train import Checkpoints, Loop, Trainer

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
loop = Loop(Trainer(model, torch.nn.functional.cross_entropy,
                    torch.optim.SGD(model.parameters(), 0.05)))
loop.add(Checkpoints("kept", every=20))
loop.on_step(lambda loop, metrics: time.sleep(0.01))
data = [(torch.randn(16, 8), torch.randint(0, 4, (16,))) for _ in range(10)]
first = loop.watch(store="runs/rewound.zarr", name="rewound")
first.pause_when(step=70)
first.explore()
"""
START = "training = loop.start(data, epochs=40)"
BRANCH = """
run = loop.run
assert run is not first and first.closed
print(run.name, [event.step for event in run.events if event.kind == "branch"])
training.stop()
training.wait();
"""


def test_a_click_on_a_checkpoint_takes_loop_and_panel_along(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([LOOP, START, BRANCH])
    notebook.run(0, 1)
    panel = Panel(notebook, 0)
    panel.wait_state("paused")
    strip = panel.root.locator(".nbp-history")
    expect(strip).to_contain_text("3 checkpoints")
    strip.locator('.nbp-diamond[data-step="40"]').click()
    dialog = panel.root.get_by_role("dialog", name="Back to step 40")
    dialog.get_by_role("button", name="denser").click()
    dialog.get_by_label("Until step").fill("60")
    dialog.get_by_role("button", name="Rewind and run").click()
    expect(dialog.locator(".nbp-ticket")).to_contain_text("applied at step 70")
    dialog.get_by_role("button", name="Close").click()
    panel.wait_state("paused")  # the breakpoint has gone along
    expect(strip).to_contain_text("before, to step 70")
    expect(strip).to_contain_text("now, from step 40")
    panel.press("resume")
    panel.wait_step(90)
    expect(panel.root.locator(".nbp-branch")).to_have_text("branch 2")
    panel.show()
    notebook.screenshot(PICTURES / "rewound.png")
    notebook.run(2)
    assert notebook.text(2) == "rewound [40]\n"


ENDED = "loop.run_epochs(data, 8)"
AFTER = """
run = loop.run
run.controls.status_head().background or run.flush()
while run.controls.status_head().background:
    time.sleep(0.05)
print(run is not first, first.closed, loop.n_updates, run.data.sizes["step"])
"""


def test_a_loop_that_has_ended_continues_in_the_background_by_a_click(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    setup = LOOP.replace("rewound", "ended").replace("kept", "ended")
    notebook = open_notebook([setup.replace("first.pause_when(step=70)\n", ""), ENDED, AFTER])
    notebook.run(0, 1)
    panel = Panel(notebook, 0)
    panel.wait_state("idle")
    panel.root.locator('.nbp-history .nbp-diamond[data-step="40"]').click()
    dialog = panel.root.get_by_role("dialog", name="Back to step 40")
    dialog.get_by_role("button", name="Rewind and continue in the background").click()
    expect(dialog).to_contain_text("Branch 2 continues from step 40")
    expect(dialog).to_contain_text("In cells it is loop.run.")
    dialog.get_by_role("button", name="Close").click()
    panel.wait_state("idle")
    expect(panel.root.locator(".nbp-branch")).to_have_text("branch 2")
    panel.show()
    notebook.screenshot(PICTURES / "rewound-after-the-end.png")
    notebook.run(2)
    assert notebook.text(2) == "True True 80 80\n"
