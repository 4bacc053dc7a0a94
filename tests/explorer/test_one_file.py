"""The panel as one file, where nothing is installed but what recording needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.panel import Panel
from tests.explorer.fakes import FakeSource

MISSING = ("IPython", "anywidget", "comm", "ipykernel", "ipywidgets", "matplotlib", "traitlets")
WRITE = """
import sys
sys.modules |= dict.fromkeys(sys.argv[3:])  # as if they were not installed
import notebook_probe as nbp
print(nbp.open_run(sys.argv[1]).to_html(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_record_becomes_a_page_without_torch_jupyter_and_matplotlib(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, store=tmp_path / "run.zarr"):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
    words = [str(tmp_path / "run.zarr"), str(tmp_path / "run.html"), "torch", *MISSING]

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WRITE, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    page = Path(done.stdout.strip()).read_text("utf-8")
    assert 'id="package"' in page
    assert "data:image/png" not in page


@pytest.mark.parametrize("name", ["run.pdf", "run", "run.html.gz"])
def test_a_page_is_written_into_a_file_whose_name_says_html(tmp_path: Path, name: str) -> None:
    said = rf"^path='.*/{name}'; allowed: a file name that ends with \.html or \.htm$"
    with pytest.raises(ValueError, match=said):
        Panel(FakeSource()).to_html(tmp_path / name)
    assert not [*tmp_path.iterdir()]
