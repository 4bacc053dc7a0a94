"""A network really trains in a real JupyterLab, and somebody clicks in its Explorer meanwhile."""

from __future__ import annotations

import re

import nbformat
import pytest

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel, plain
from tests.browser.lab import ROOT, LabServer, OpenNotebook

QUICKSTART = ROOT / "notebooks" / "quickstart.ipynb"
BEFORE, PANEL, TRAINING, FLUSH = (0, 1, 2), 3, 4, 5
MEASURED = ("conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "head")  # rows of the heat map


def quickstart_code() -> list[str]:
    """Its code cells."""
    cells = nbformat.read(QUICKSTART, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def endless_quickstart() -> list[str]:
    """Its code up to the training, which ends by an interrupt: a busy browser takes its time."""
    code = quickstart_code()
    assert code[TRAINING].startswith("for epoch in range(60):")
    endless = code[TRAINING].replace("range(60)", "range(10**9)")
    return [*code[:TRAINING], endless, "run.flush()"]


def test_a_click_during_the_quickstarts_training_cell_begins_a_series(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    notebook = open_notebook(endless_quickstart())
    notebook.run(*BEFORE, PANEL)
    panel = Panel(notebook, PANEL)
    notebook.start(TRAINING)
    notebook.wait_running(TRAINING)
    panel.show()
    panel.wait_state("training")
    panel.wait_step(20)

    panel.attach("bn2", "input_std", "every(2)")
    applied = panel.wait_attached()
    notebook.screenshot(PICTURES / "attached.png")
    panel.wait_points("bn2 · input_std", 5)
    panel.add_series("conv1", "grad_norm")
    panel.wait_points("conv1 · grad_norm", 50)

    panel.compare("grad_norm")
    row = MEASURED.index("conv2")
    in_heat = panel.heat.hover(0.3, (row + 0.5) / len(MEASURED))
    notebook.screenshot(PICTURES / "hover-heat.png")
    panel.heat.click(0.3, (row + 0.5) / len(MEASURED))
    panel.wait_points("conv2 · grad_norm", 50)
    in_lines = panel.lines.hover(0.3, 0.5)
    notebook.screenshot(PICTURES / "hover-lines.png")
    check_zoom(panel)
    assert notebook.is_running(TRAINING), "all of this happened while the cell was blocking"
    panel.notebook.page.mouse.move(0, 0)
    notebook.screenshot(PICTURES / "training.png")

    notebook.interrupt()
    notebook.wait_finished(TRAINING)
    notebook.run(FLUSH)
    [store] = lab.notebooks.glob("runs/quickstart-*.zarr")
    record = nbp.open_run(store)
    steps = record.series("bn2", "input_std").step
    assert int(steps[0]) in (applied, applied + 1)
    assert (steps % 2 == 0).all()
    check_value(record, in_heat, "conv2", "grad_norm")
    check_value(record, in_lines, "conv1", "conv1 · grad_norm")


def check_zoom(panel: Panel) -> None:
    """A drag shows the same few steps in both pictures; a double-click shows all again."""
    series = list(panel.series)
    panel.heat.drag(0.25, 0.5)
    last = panel.step  # asked after the drag: the axis grew until then
    for plot in (panel.heat, panel.lines):
        plot.wait_axis("low > 0 && high < argument", last)
    assert panel.heat.axis == panel.lines.axis
    panel.heat.double_click(0.5, 0.5)
    for plot in (panel.heat, panel.lines):
        plot.wait_axis("low === 0 && high > argument", last)
    assert list(panel.series) == series, "a double-click draws nothing"


def check_value(record: nbp.OpenedRun, tip: str, module: str, name: str) -> None:
    """What hovering told is what was recorded, to the six digits that are shown.

    A place of the heat map is the mean of several steps where there are more than pixels, or the
    value of a step before it.
    """
    steps = re.search(r"(?:steps?|measured at) (\d+)(?:–(\d+))?(?!.*measured at)", plain(tip))
    told = re.search(rf"{name}\s+(\S+)(?: at (\d+))?", plain(tip))
    assert steps is not None, tip
    assert told is not None, tip
    first, last = told[2] or steps[1], told[2] or steps[2] or steps[1]
    recorded = record.series(module, "grad_norm").sel(step=slice(int(first), int(last)))
    assert float(told[1]) == pytest.approx(recorded.mean().item(), rel=5e-6), tip
