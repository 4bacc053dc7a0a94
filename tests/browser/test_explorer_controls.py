"""Pause, Step, Resume and Stop from the panel, while the user's cell blocks."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import MODEL, PICTURES, Panel, errors_of, watch
from tests.browser.lab import LabServer, OpenNotebook

pytestmark = pytest.mark.stories

WATCH, TRAINING, AFTER = 1, 2, 3


def test_pause_step_resume_and_stop_act_between_two_steps(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook([MODEL, watch("controls"), "train()", "run.flush(); print('usable')"])
    notebook.run(0, WATCH)
    panel = Panel(notebook, WATCH)
    notebook.start(TRAINING)
    panel.wait_state("training")
    panel.wait_step(10)

    panel.press("pause")
    panel.wait_state("paused")
    held = panel.step
    panel.attach("0", "input_std", "every(1)")
    attached = panel.wait_attached()
    assert panel.step == held, "a paused run takes clicks, but no step"
    expect(panel.button("resume")).to_be_enabled()
    notebook.screenshot(PICTURES / "paused.png")

    panel.press("step")
    panel.wait_step(held + 1)
    panel.attach("2", "input_std", "every(1)")
    assert panel.wait_attached() == held + 1
    panel.wait_state("paused")
    assert panel.step == held + 1, "one press, one step"

    panel.press("resume")
    panel.wait_state("training")
    panel.wait_step(held + 20)
    panel.press("stop")
    notebook.wait_finished(TRAINING)
    [error] = errors_of(notebook.outputs(TRAINING))
    assert error.startswith("TrainingStopped: stopped before step"), error
    assert "\n" not in error
    notebook.run(AFTER)
    assert notebook.text(AFTER) == "usable\n"
    panel.wait_state("idle")
    stopped = panel.step

    notebook.start(TRAINING)
    panel.wait_state("training")
    panel.wait_step(stopped + 20)
    notebook.interrupt()
    notebook.wait_finished(TRAINING)
    assert "KeyboardInterrupt" in notebook.text(TRAINING)
    panel.wait_state("idle")
    notebook.screenshot(PICTURES / "interrupted.png")
    notebook.run(AFTER)
    record = nbp.open_run(lab.notebooks / "runs" / "controls.zarr")
    steps = record.series("0", "weight_norm").step.values
    np.testing.assert_array_equal(steps, np.arange(len(steps)))
    assert len(steps) >= stopped + 20
    assert int(record.series("0", "input_std").step[0]) == attached
