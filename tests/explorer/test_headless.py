"""A notebook that is run without a front end: nothing waits for one, and the picture is kept."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.explorer.handed_on.unpacked import unpacked

CELLS = [
    """
import os, torch
import notebook_probe as nbp
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = nbp.watch(model, optimizer, store="run.zarr")
run.explore()
""",
    """
for _ in range(20):
    loss = model(torch.randn(16, 4)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    run.log(loss=loss)
""",
    """
import ipywidgets
explorer = run.explore()
explorer.close()
run.close()
print(len(ipywidgets.widgets.widget._instances), explorer)
""",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*without encryption")
def test_a_notebook_run_headless_keeps_the_picture_where_the_panel_was(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    panel, picture, saved = notebook.cells[0].outputs[-3:]
    assert panel.data["text/plain"] == "notebook_probe panel"
    assert "application/vnd.jupyter.widget-view+json" in panel.data
    assert "image/png" not in panel.data
    assert base64.b64decode(picture.data["image/png"]).startswith(b"\x89PNG")
    [text] = re.findall(r'openPackage\("([^"]+)", el\)', saved.data["text/html"])
    kept = unpacked(text)
    assert ("heat", "update_ratio") in kept.frames
    assert kept.frames["lines", ""].message["series"][0]["n_rows"] == 20
    assert notebook.cells[1].outputs == []
    assert notebook.cells[2].outputs[-1].text.startswith("0 <Explorer of 'Sequential', closed>")
