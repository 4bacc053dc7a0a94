"""From a jump of the loss to its batch in a real JupyterLab, and looks when nothing trains."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.errands import Errands
from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

LOOP = """
import time
import torch
from torch import nn
from notebook_probe.train import Checkpoints, Loop, Trainer

def images(step):
    made = torch.Generator().manual_seed(step)
    labels = torch.randint(0, 4, (16,), generator=made)
    x = 0.3 * torch.randn(16, 1, 12, 12, generator=made)
    for one, label in zip(x, labels):
        row, column = divmod(int(label), 2)
        one[0, 6 * row : 6 * row + 6, 6 * column : 6 * column + 6] += 1
    return (20 * x, (labels + 1) % 4) if step == 173 else (x, labels)

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 4))
loop = Loop(Trainer(model, nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), 0.02)))
loop.add(Checkpoints("kept", every=50))
loop.on_step(lambda loop, metrics: time.sleep(0.01))
first = loop.watch(store="runs/batches.zarr", name="batches")
first.explore()
"""
START = "training = loop.start([images(step) for step in range(240)], epochs=1); training.wait()"
AFTER = "loop.run.flush(); print(loop.run.name)"


def test_a_jump_leads_to_its_batch_and_any_pinned_step_to_its_own(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([LOOP, START, AFTER])
    notebook.run(0, 1)
    panel = Panel(notebook, 0)
    panel.wait_state("idle")
    panel.show()
    page, root = notebook.page, panel.root
    errands = Errands(page)
    look = root.get_by_role("region", name="Look")
    with errands.errand("find the step where the loss jumped and look at its batch"):
        panel.press("alerts")
        root.get_by_role("button", name="batch of step 173").first.click()
        expect(look).to_have_attribute("data-step", "173")
    panel.show()
    notebook.screenshot(PICTURES / "batch-of-alert.png")
    expect(look).to_contain_text("target")
    panel.press("leave-look")
    panel.press("alerts")
    with errands.errand("look at the batch of any step"):
        panel.lines.click(0.5, 0.5)
        root.locator(".nbp-pins").get_by_role("button", name="batch of step").click()
        dialog = root.get_by_role("dialog", name="Batch of step")
        notebook.screenshot(PICTURES / "batch-not-kept.png")
        dialog.get_by_role("button", name="Rewind to 100 and keep it").click()
        panel.wait_until("""(root) => Number(root.querySelector(".nbp-look").dataset.step) > 100""")
    panel.show()
    notebook.screenshot(PICTURES / "batch-rewound.png")
    step = int(look.get_attribute("data-step") or -1)
    print(f"\n{errands.told()}")
    assert max(clicks for clicks, _, _ in errands.done.values()) <= 3
    panel.wait_state("paused")
    panel.press("stop")
    notebook.run(2)
    record = nbp.open_run(lab.notebooks / "runs" / "batches.zarr")
    assert [one.step for one in record.looks if one.module == "(root)"] == [step], (
        "the branch begins before the jump"
    )


def test_a_look_after_the_loop_shows_what_a_layer_returns_now(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    train = """
x = torch.randn(32, 8)
for _ in range(40):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    notebook = open_notebook([MODEL, watch("idle"), train])
    notebook.run(0, 1, 2)
    panel = Panel(notebook, 1)
    panel.wait_state("idle")
    errands = Errands(notebook.page)
    look = panel.root.get_by_role("region", name="Look")
    with errands.errand("look at a layer's activations when nothing trains"):
        panel.mark("2")
        panel.press("look")
        expect(look).to_be_visible()
    expect(look).to_contain_text("computed at rest from the inputs of step 39")
    panel.show()
    notebook.screenshot(PICTURES / "look-at-rest.png")
    print(f"\n{errands.told()}")
    assert max(clicks for clicks, _, _ in errands.done.values()) <= 2
