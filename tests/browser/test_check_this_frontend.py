"""The notebook that checks a front end reports correctly about JupyterLab."""

from __future__ import annotations

import nbformat

from tests.browser.lab import ROOT, Notebook, OpenNotebook

NOTEBOOK = ROOT / "notebooks" / "check_this_frontend.ipynb"


def test_it_clicks_by_itself_and_prints_what_happened(open_notebook: OpenNotebook) -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = {cell.id: cell.source for cell in cells if cell.cell_type == "code"}
    del code["colab"]  # which is for another front end
    notebook = open_notebook([*code.values()])
    names = [*code]
    for name in ("model", "panel", "clicker", "training"):
        notebook.run(names.index(name))
    rows = table_with(notebook, names.index("table"), "the panel's answer")
    assert rows["panel"] == "shown"
    assert rows["live while a cell trains"].startswith("yes, steps ")
    act = rows["a click acts while a cell trains"]
    assert act.startswith("yes, at step ")
    assert 5 < int(act.split()[3]) < 599
    assert rows["error"] == "none"


def table_with(notebook: Notebook, cell: int, name: str) -> dict[str, str]:
    """The printed table, once it has a value: the page reports after the cell."""
    while True:
        notebook.run(cell)
        lines = [one.strip("| ") for one in notebook.text(cell).splitlines()]
        rows = dict(one.split(" | ", 1) for one in lines if " | " in one)
        if rows[name] != "none":
            return rows
