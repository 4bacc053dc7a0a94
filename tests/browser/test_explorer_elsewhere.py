"""The full panel on a script that trains in another process, and allows control."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel
from tests.browser.lab import LabServer, OpenNotebook
from tests.command_line.acting.training import endless_training

pytestmark = pytest.mark.stories

IMPORT = "import notebook_probe as nbp, sys"
SHOW = "nbp.open_run('runs/elsewhere.zarr').explore()"
LIVE = ".jp-OutputArea-child:first-child"
"""The output with the widget; the one after it is for readers without a kernel."""
LOADED = "print('torch' in sys.modules)"


@pytest.mark.parametrize("way", ["socket", "mailbox"])
def test_a_click_acts_on_a_script_in_another_process_and_its_series_appears(
    lab: LabServer, open_notebook: OpenNotebook, way: str
) -> None:
    place = lab.notebooks / "runs" / "elsewhere.zarr"
    with endless_training(place, way) as training:
        notebook = open_notebook([IMPORT, SHOW, LOADED])
        notebook.run(0, 1)
        panel = Panel(notebook, 1)
        panel.wait_state("training")
        panel.attach("2", "input_std", "every(2)")
        attached = panel.wait_attached()
        panel.wait_points("2 · input_std", 5)
        panel.attach("2", "input_std", "evry(2)")
        expect(panel.ticket).to_have_attribute("data-state", "refused")
        expect(panel.ticket).to_contain_text("every")
        panel.press("pause")
        panel.wait_state("paused")
        panel.show()
        notebook.screenshot(PICTURES / f"elsewhere_{way}.png")
        panel.press("resume")
        panel.wait_state("training")

        notebook.save()
        notebook.reload()
        panel = Panel(notebook, 1, LIVE)
        panel.attach("0", "input_std", "every(2)")
        panel.wait_attached()
        panel.wait_points("0 · input_std", 5)
        panel.press("stop")
        assert training.last_line() == "stopped 0.01"
        panel.wait_state("finished")
        notebook.run(2)
        assert notebook.text(2) == "False\n", "acting needs no torch"
    record = nbp.open_run(place)
    assert int(record.series("2", "input_std").step[0]) in (attached, attached + 1)
    asked = [event.text for event in record.events if event.kind == "remote"]
    assert [text.partition(",")[0] for text in asked] == [
        "attach",
        "refused: attach",
        "pause",
        "resume",
        "attach",
        "stop",
    ]
    assert all("asked by panel of " in text for text in asked)
    place.rename(place.with_name(f"elsewhere-{way}.zarr"))


def test_a_training_that_is_killed_and_started_again_is_controlled_by_the_same_panel(
    lab: LabServer, open_notebook: OpenNotebook
) -> None:
    place = lab.notebooks / "runs" / "elsewhere.zarr"
    with endless_training(place) as training:
        notebook = open_notebook([IMPORT, SHOW])
        notebook.run(0, 1)
        panel = Panel(notebook, 1)
        panel.wait_state("training")
        training.kill()
        panel.wait_state("idle")
        expect(panel.problems).to_contain_text("no process trains this run now")
        with endless_training(place):
            panel.wait_state("training")
            panel.attach("0", "input_std", "every(2)")
            panel.wait_attached()
            panel.wait_points("0 · input_std", 5)
    place.rename(place.with_name("elsewhere-killed.zarr"))
