"""The same panel on a record that another kernel writes, or has finished."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

UNTIL_ENOUGH = """
from pathlib import Path

def until_enough():
    while not Path("enough").exists():
        train(1)
    run.close()

job = run.train_in_background(until_enough)
"""
OPEN = "import notebook_probe as nbp\nnbp.open_run('runs/opened.zarr').explore()"

LAST_STEP = "(root, n) => JSON.parse(root.querySelector('.nbp-lines').dataset.lastStep)[0] >= n"
"""The line is drawn to a step: its points are as many as its pixels, however long it is."""


def test_a_record_grows_in_the_panel_of_another_kernel_until_it_is_finished(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    training = open_notebook([MODEL, watch("opened"), UNTIL_ENOUGH])
    training.run(0, 1, 2)
    Panel(training, 1).wait_step(20)

    notebook = open_notebook([OPEN, "import sys; print('torch' in sys.modules)"])
    notebook.run(0)
    panel = Panel(notebook, 0)
    panel.wait_state("training")
    panel.add_series("0", "grad_norm")
    panel.wait_points("0 · grad_norm", 20)
    panel.wait_step(panel.step + 20)
    panel.wait_until(LAST_STEP, panel.step + 20)
    for action in ("pause", "step", "stop", "attach"):
        expect(panel.button(action)).not_to_be_visible()
    notebook.screenshot(PICTURES / "opened.png")

    (lab.notebooks / "enough").touch()
    panel.wait_state("finished")
    notebook.run(1)
    assert notebook.text(1) == "False\n", "looking needs no torch"
    notebook.run(0)
    panel.wait_state("finished")
    record = nbp.open_run(lab.notebooks / "runs" / "opened.zarr")
    assert panel.step == int(record.series("0", "grad_norm").step[-1]) + 1, "completed ones"
    panel.show()
    notebook.screenshot(PICTURES / "finished.png")
