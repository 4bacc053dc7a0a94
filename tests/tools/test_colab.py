"""The quickstart for Colab is the quickstart, below one cell that does nothing elsewhere."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

from tools.colab import COLAB, QUICKSTART, derived


def test_the_committed_notebook_is_what_the_quickstart_gives() -> None:
    assert nbformat.read(COLAB, as_version=4) == derived(), "python -m tools.colab"


def test_it_is_the_quickstart_below_one_cell() -> None:
    own = nbformat.read(QUICKSTART, as_version=4).cells
    title, first, *others = derived().cells
    assert [title, *others] == own
    assert first.id == "colab"


def test_the_first_cell_does_nothing_outside_colab() -> None:
    notebook = nbformat.v4.new_notebook(cells=[derived().cells[1]])
    NotebookClient(notebook, timeout=60).execute()
    assert notebook.cells[0].outputs == []
