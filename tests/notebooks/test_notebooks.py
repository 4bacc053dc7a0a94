"""Every notebook runs from top to bottom, checks itself, and fits a small free machine."""

import os
import resource
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.notebooks.claims import CLAIMS
from tests.notebooks.claims_broken import CLAIMS_BROKEN

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = [*sorted(FOLDER.glob("*.ipynb")), *sorted(FOLDER.glob("broken/*.ipynb"))]
EVERY_CLAIM = {**CLAIMS, **CLAIMS_BROKEN}
CELL_LIMIT_S = 150
ADDRESS_SPACE = 2 * 2**30  # what a free Binder session has
# Every thread and memory arena reserves address space that it never fills; a small machine has
# few of them.
SMALL = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def in_two_gib() -> None:
    """Bound the kernel's address space, in the child before it starts."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def execute(path: Path, **kernel: Any) -> nbformat.NotebookNode:
    """Run a copy beside its runs; a failing cell raises."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=CELL_LIMIT_S, resources={"metadata": {"path": str(path.parent)}}
    )
    client.execute(**kernel)
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


LONG = {
    path: pytest.mark.slow if path.stem == "quickstart" else pytest.mark.stories
    for path in NOTEBOOKS
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=mark) for path, mark in LONG.items()]
)
def test_a_notebook_runs_quietly_in_two_gib(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(path, tmp_path))

    notebook = execute(copy, preexec_fn=in_two_gib, env={**os.environ, **SMALL})

    printed_on_stderr = [o.text for o in outputs(notebook) if o.get("name") == "stderr"]
    assert printed_on_stderr == []
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook))
    EVERY_CLAIM.get(path.stem, lambda folder: None)(tmp_path)
