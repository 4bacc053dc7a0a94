"""Training in a background thread: the kernel is free, and the panel outlives the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

LOOP = """
def talk():
    print("begun")
    train(100)
    print("a hundred steps")
    train()

job = run.train_in_background(talk)
"""
BROKEN = """
@nbp.quantity(units="1")
def broken(output):
    "Cannot be measured."
    raise RuntimeError("no such thing")

handle = run.attach("1", broken)
"""
FAILING = """
def failing():
    train(20)
    raise ValueError("the data ran out")

job = run.train_in_background(failing)
"""
KEPT = """() => {
  const widgets = notebookPanel().model.getMetadata("widgets") ?? {};
  const { state } = widgets["application/vnd.jupyter.widget-state+json"] ?? { state: {} };
  return Object.values(state).map((one) => one.state._picture).find(Boolean) ?? "";
}"""
"""The picture that a reopened notebook would show."""
FLUSH_AND_WAIT = "run.flush()\njob.wait()"
CELLS = [MODEL, watch("background"), LOOP, BROKEN, "job.wait()", FAILING, FLUSH_AND_WAIT]
WATCH, TRAINING, MISTAKE, WAIT, FAIL, FAILED = range(1, 7)


def test_a_background_training_is_live_across_a_reload_and_shows_how_it_ends(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook(CELLS)
    notebook.run(0, WATCH, TRAINING)
    panel = Panel(notebook, WATCH)
    panel.wait_state("training")
    panel.attach("0", "input_std", "every(2)")
    attached = panel.wait_attached()
    panel.wait_points("0 · input_std", 5)

    notebook.run(MISTAKE)
    expect(panel.problems).to_contain_text("1 · broken: RuntimeError: no such thing")
    expect(panel.problems).to_contain_text("off now")
    panel.attach("2", "input_std", "evry(2)")
    expect(panel.ticket).to_have_attribute("data-state", "refused")
    expect(panel.ticket).to_contain_text("every")
    panel.show()
    notebook.screenshot(PICTURES / "mistakes.png")
    notebook.wait_text(TRAINING, "a hundred steps\n")
    assert notebook.text(TRAINING) == "begun\na hundred steps\n", "in the cell that started it"
    assert notebook.text(MISTAKE) == ""

    notebook.save()
    notebook.reload()
    kept = notebook.page.evaluate(KEPT)
    panel = Panel(notebook, WATCH)
    panel.wait_step(panel.step + 10)
    panel.wait_points("0 · input_std", 10)
    panel.attach("2", "input_std", "every(2)")
    panel.wait_attached()
    panel.press("stop")
    notebook.run(WAIT)
    assert notebook.text(WAIT) == "", "Stop is no error"

    notebook.run(FAIL)
    panel.wait_state("failed")
    expect(panel.problems).to_contain_text("ValueError: the data ran out")
    panel.show()
    notebook.screenshot(PICTURES / "failed.png")
    notebook.page.wait_for_function(f"(kept) => ({KEPT})() !== kept", arg=kept)
    notebook.run(FAILED)
    assert "ValueError: the data ran out" in notebook.text(FAILED)
    record = nbp.open_run(lab.notebooks / "runs" / "background.zarr")
    steps = record.series("0", "input_std").step
    assert int(steps[0]) in (attached, attached + 1)
