"""Lines that a cell prints in a real JupyterLab: in the output of the cell and in the panel."""

from __future__ import annotations

from playwright.sync_api import expect

import notebook_probe as nbp
from notebook_probe.record.views.printed_lines import printed_lines
from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import LabServer, OpenNotebook


def test_lines_of_a_blocking_cell_reach_the_panel_and_stay_in_the_cell(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    kept = watch("printed").replace("run.explore()", "nbp.keep_output(run)\nrun.explore()")
    training = "for step in range(150):\n    train(1); print('done', step)"
    notebook = open_notebook([MODEL, kept, training, "run.close()"])
    notebook.run(0, 1)
    panel = Panel(notebook, 1)
    notebook.start(2)
    panel.wait_state("training")
    expect(panel.button("output")).to_be_visible()
    panel.press("output")
    log = panel.root.get_by_role("log", name="Last lines")
    expect(log).to_contain_text("done 3")
    notebook.screenshot(PICTURES / "output.png")
    notebook.wait_finished(2)
    expect(log).to_contain_text("done 149")
    printed = [f"done {step}" for step in range(150)]
    assert notebook.text(2).splitlines() == printed, "all of it is in the cell, in order"
    notebook.run(3)
    record = nbp.open_run(lab.notebooks / "runs" / "printed.zarr")
    lines = printed_lines(record.events, 200)
    assert [line.text for line in lines] == printed
    assert [line.step for line in lines] == [step + 1 for step in range(150)]
