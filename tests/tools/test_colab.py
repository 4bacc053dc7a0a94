"""The first cell of the quickstart for Colab does nothing elsewhere."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

from tools.colab import derived


def test_the_first_cell_does_nothing_outside_colab() -> None:
    notebook = nbformat.v4.new_notebook(cells=[derived().cells[1]])
    NotebookClient(notebook, timeout=60).execute()
    assert notebook.cells[0].outputs == []
