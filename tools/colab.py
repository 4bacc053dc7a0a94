"""Derive the quickstart for Colab: ``python -m tools.colab``; the quickstart is the one source.

Colab has neither this package nor a front end that shows other people's widgets unasked: a first
cell sees to both, and does nothing anywhere else. It leaves out the extra ``lab``, which would put
another ipykernel and another ipywidgets in the place of those that Colab runs on.
"""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat

__all__ = ["COLAB", "derived"]

ROOT = Path(__file__).resolve().parent.parent
QUICKSTART = ROOT / "notebooks" / "quickstart.ipynb"
COLAB = ROOT / "notebooks" / "colab" / "quickstart.ipynb"
FIRST = """\
# In Google Colab alone; anywhere else this cell does nothing.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet notebook-probe anywidget
    from google.colab import output

    output.enable_custom_widget_manager()  # shows widgets that Colab does not bring along"""


def derived() -> nbformat.NotebookNode:
    """The quickstart, below a cell that prepares Colab for it."""
    notebook = copy.deepcopy(nbformat.read(QUICKSTART, as_version=4))
    first = nbformat.v4.new_code_cell(FIRST, id="colab")
    notebook.cells.insert(1, first)  # below the title
    return notebook


def main() -> None:
    """Write it."""
    COLAB.parent.mkdir(exist_ok=True)
    nbformat.write(derived(), COLAB)


if __name__ == "__main__":
    main()
