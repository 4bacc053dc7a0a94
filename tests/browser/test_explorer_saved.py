"""What is left of a panel: after another run of its cells, after close, in a saved notebook."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from tests.browser.explorer_page import MODEL, PICTURES, Panel, watch
from tests.browser.lab import Notebook, OpenNotebook

COUNT = """
import gc, json, threading
from ipywidgets.widgets.widget import _instances
gc.collect()
names = [thread.name for thread in threading.enumerate()]
ours = sorted(name for name in names if name.startswith("notebook"))
hooks = sum(len(module._forward_hooks) for module in model.modules())
print(json.dumps({"widgets": len(_instances), "threads": ours, "hooks": hooks}))
"""
KEPT = """
(cell) => {
    const outputs = notebookCell(cell).model.outputs.toJSON();
    const views = outputs.map(({ data }) => data?.["application/vnd.jupyter.widget-view+json"]);
    const kept = notebookPanel().context.model.getMetadata("widgets");
    const states = kept?.["application/vnd.jupyter.widget-state+json"]?.state ?? {};
    return views.some((view) => states[view?.model_id]?.state._saved);
}
"""
CELLS = [MODEL, watch("saved"), "train(40)", COUNT, "panel = run.explore()", "panel.close()"]
WATCH, TRAINING, COUNTED, AGAIN, CLOSE = range(1, 6)


def counted(notebook: Notebook) -> Any:
    """Widgets, hooks and threads of ours that live in the kernel now."""
    notebook.run(COUNTED)
    return json.loads(notebook.text(COUNTED))


def test_cells_run_again_leave_one_panel_and_a_saved_notebook_its_picture(
    open_notebook: OpenNotebook,
) -> None:
    notebook = open_notebook(CELLS)
    notebook.run(0)
    before = counted(notebook)
    notebook.run(WATCH, TRAINING)
    Panel(notebook, WATCH).wait_step(40)
    once = counted(notebook)
    assert once["widgets"] > before["widgets"]

    notebook.run(WATCH, WATCH, TRAINING, AGAIN, AGAIN)
    again = counted(notebook)
    for counts in (once, again):  # a thread that draws the saved picture ends with the picture
        counts["threads"] = [one for one in counts["threads"] if one != "notebook_probe picture"]
    assert again == once, "nothing piles up"
    first, second = Panel(notebook, WATCH), Panel(notebook, AGAIN)
    for panel in (first, second):
        panel.show()
        panel.wait_step(80)
    expect(notebook.page.locator(".nbp-panel")).to_have_count(2)

    picture = notebook.locate(WATCH).locator("img")
    expect(picture).not_to_be_visible()
    notebook.run(CLOSE)
    expect(notebook.page.locator(".nbp-panel")).to_have_count(0)
    expect(picture).to_be_visible()
    after = counted(notebook)
    assert after["widgets"] == before["widgets"]
    assert after["threads"] == ["notebook_probe record"]

    notebook.run(WATCH, TRAINING)
    Panel(notebook, WATCH).wait_step(120)
    notebook.wait_until(KEPT, WATCH)
    notebook.save()
    notebook.restart()
    notebook.reload()
    saved = notebook.locate(WATCH).locator(".nbp-saved .nbp-panel")
    expect(saved).to_be_visible()
    expect(saved).to_contain_text("No kernel: hovering, zooming and selecting still work.")
    expect(saved).to_contain_text("in this notebook · full record")
    expect(notebook.locate(WATCH)).not_to_contain_text("model not found")
    expect(notebook.locate(WATCH).locator(".nbp-panel")).to_have_count(1)
    expect(picture.locator("visible=true")).to_have_count(0)
    expect(saved.locator(".nbp-lines")).to_have_attribute("data-series", '["loss"]')
    saved.locator("[data-quantity=grad_norm]").click()
    expect(saved).to_contain_text("grad_norm was not saved with the notebook")
    saved.locator("[data-quantity=update_ratio]").click()
    heat = Panel(notebook, WATCH).heat
    expect(heat.canvas).to_have_attribute("data-quantity", "update_ratio")  # else empty, no tip
    heat.hover(0.5, 0.5)
    expect(saved.locator(".nbp-plot:has(canvas.nbp-heat) .nbp-tip")).to_contain_text("update_ratio")
    notebook.screenshot(PICTURES / "reopened.png")
