"""The states of the panel one after the other, on a GPT of 74 modules, while its cell trains."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel, errors_of
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

GPT = """
import time
import torch
from torch import nn
from torch.nn import functional as F
import notebook_probe as nbp

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, 4, batch_first=True)
        wide = 2 * width
        self.mlp = nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x, mask):
        own = self.ln_1(x)
        x = x + self.attn(own, own, own, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))

class GPT(nn.Module):
    def __init__(self, n_tokens=27, width=32, n_blocks=8, length=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(n_tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(n_blocks))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, n_tokens)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.ln_f(x))

torch.manual_seed(0)
torch.set_num_threads(1)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
words = torch.arange(4096).mul(7).remainder(27)
run = nbp.watch(model, optimizer, store="runs/gpt.zarr", budget=None)
run.pause_when(step=40)
run.explore()
"""
TRAIN = """
while True:
    starts = torch.randint(len(words) - 17, (8,))
    rows = torch.stack([words[i : i + 17] for i in starts])
    loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MLP = "blocks.3.mlp.0"


def test_a_gpt_of_74_modules_goes_through_the_states_of_the_panel(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([GPT, TRAIN])
    notebook.run(0)
    panel = Panel(notebook, 0)
    notebook.start(1)
    _start_and_held(panel)
    _look(panel)
    _vectors(panel)
    _knobs(panel)
    _alert(panel)
    panel.press("stop")
    notebook.wait_finished(1)
    [error] = errors_of(notebook.outputs(1))
    assert error.startswith("TrainingStopped"), error
    record = nbp.open_run(lab.notebooks / "runs" / "gpt.zarr")
    assert len(record.modules) > 60
    assert record.series(MLP, "output_histogram").sizes["step"] > 0
    assert any(alert.severity == "severe" for alert in record.alerts)


def _start_and_held(panel: Panel) -> None:
    """The loss is drawn without a click, and a breakpoint says why the training is paused."""
    panel.wait_state("paused")
    assert panel.step == 40
    panel.wait_points("backward_loss", 40)
    expect(panel.heat.canvas).to_have_attribute("data-quantity", "update_ratio")
    expect(panel.root).to_contain_text("paused at step 40")
    panel.notebook.screenshot(PICTURES / "large-held.png")


def _look(panel: Panel) -> None:
    """Nothing is looked at before a module is marked; then tensors of the next step."""
    expect(panel.button("look").first).to_have_attribute("aria-disabled", "true")
    panel.root.locator("input[type=search]").first.fill(MLP)
    panel.mark(MLP)
    panel.press("look")
    panel.press("resume")
    expect(panel.root.locator(".nbp-look-place")).to_contain_text("kept")
    expect(panel.root.locator("[data-tensor=output]")).to_be_visible()
    panel.notebook.screenshot(PICTURES / "large-look.png")
    panel.press("leave-look")
    expect(panel.heat.canvas).to_be_visible()


def _vectors(panel: Panel) -> None:
    """A schedule that is none is refused beside it; histograms come as rows."""
    panel.attach(MLP, "output_histogram", "evry(3)")
    expect(panel.ticket).to_contain_text("every(3)")
    panel.attach(MLP, "output_histogram", "every(2)")
    assert panel.wait_attached() > 40
    panel.root.locator(".nbp-quantities [data-quantity=output_histogram]").click()
    expect(panel.root.locator("canvas.nbp-vectors")).to_have_attribute("data-rows", "1")
    panel.notebook.screenshot(PICTURES / "large-vectors.png")
    panel.compare("update_ratio")


def _knobs(panel: Panel) -> None:
    """No rate that is none is sent; one that is far too high acts from a step on."""
    panel.press("knobs")
    dialog = panel.root.get_by_role("dialog", name="Learning rate")
    field, said = dialog.locator("[data-knob=lr]"), dialog.locator("footer .nbp-ticket")
    field.fill("-1")
    field.press("Enter")
    expect(said).to_have_text("The learning rate must be positive")
    field.fill("100")
    field.press("Enter")
    expect(said).to_contain_text("applied at step")
    panel.notebook.screenshot(PICTURES / "large-knobs.png")
    panel.notebook.page.keyboard.press("Escape")


def _alert(panel: Panel) -> None:
    """What that does is told in the foot, and shown where it is."""
    expect(panel.root.locator(".nbp-newest .nbp-severity")).to_have_attribute(
        "data-severity", "severe"
    )
    panel.press("alerts")
    drawer = panel.root.get_by_role("region", name="Alerts")
    first = drawer.locator(".nbp-alert").first
    first.locator(".nbp-alert-text").click()
    expect(first).to_have_attribute("data-open", "true")
    panel.notebook.screenshot(PICTURES / "large-alert.png")
    first.locator("[data-action=show]").click()
    cursor = panel.root.locator(".nbp-cursor:visible").first
    expect(cursor).to_have_attribute("data-from", "alert")  # as long as the line has the focus
