"""Without the panel's packages a script trains on, and a notebook is told what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import notebook_probe as nbp


@pytest.mark.slow
def test_without_the_lab_packages_the_error_says_what_to_install() -> None:
    script = """
import sys
sys.modules["anywidget"] = None
try:
    from notebook_probe.explorer import Explorer
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == (
        'the panel needs anywidget, which is not installed: pip install "notebook-probe[lab]"\n'
    ), done.stderr


SCRIPT_WITHOUT_LAB = """
import sys
sys.modules |= dict.fromkeys(("anywidget", "ipywidgets", "IPython", "matplotlib", "comm"))
import torch, notebook_probe as nbp
model = torch.nn.Linear(2, 1)
with nbp.watch(model, store="run.zarr") as run:
    print(run.explore())
    run.to_html("run.html")
print("trained on")
sys.modules["ipykernel"] = sys
run.explore()
"""


@pytest.mark.slow
def test_without_the_lab_packages_a_script_trains_on_and_a_notebook_says_what_to_install(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SCRIPT_WITHOUT_LAB]
    environment = {**os.environ, "PYTHONPATH": str(Path(nbp.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "no notebook here to show a panel in" in done.stdout
    assert done.stdout.endswith("None\ntrained on\n")
    assert 'pip install "notebook-probe[lab]"' in done.stderr.splitlines()[-1]
    assert (tmp_path / "run.html").exists()
