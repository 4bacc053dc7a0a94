"""Run the quickstart without a browser and keep what came of it under ``build/``.

Leaves the page ``build/quickstart.html`` (readable offline), the executed notebook and the run's
record, and prints what was recorded; behind ``make demo``.
"""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from time import monotonic
from typing import Any

import nbformat
import xarray as xr
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"
BUILD = ROOT / "build"
LIMIT_S = 600
WIDGET = "application/vnd.jupyter.widget-view+json"
BAR = "{n_fmt}/{total_fmt} cells |{bar:30}| {elapsed} {desc}"
# The scripts of a page come from elsewhere (formulas, diagrams, the player of widgets), so a page
# to be read offline has none.
WITHOUT_SCRIPTS = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
"""


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run every cell in ``folder``, with a bar that keeps moving inside a long cell."""
    n_code = sum(cell.cell_type == "code" for cell in notebook.cells)
    with tqdm(total=n_code, bar_format=BAR) as bar:
        progress = Progress(bar)
        client = NotebookClient(
            notebook,
            timeout=LIMIT_S,
            store_widget_state=False,  # the picture beside the widget is what a reader sees
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--log-level=ERROR"],  # a warning would cut the bar in two
            on_cell_start=progress.start,
            on_cell_executed=progress.advance,
        )
        asyncio.run(progress.around(client))


class Progress:
    """The bar: cells that are done, and for how long the present one has been running."""

    def __init__(self, bar: tqdm[Any]) -> None:
        self._bar = bar
        self._cell = "starting the kernel"
        self._since = monotonic()

    def start(self, cell: nbformat.NotebookNode, cell_index: int) -> None:
        self._cell, self._since = f"cell '{cell.id}'", monotonic()

    def advance(self, cell: nbformat.NotebookNode, **_: Any) -> None:
        self._bar.update()

    async def around(self, client: NotebookClient) -> None:
        """Run the notebook, refreshing the bar twice a second."""
        ticking = asyncio.ensure_future(self._tick())
        try:
            await client.async_execute()
        finally:
            ticking.cancel()
            self._bar.set_description_str("")

    async def _tick(self) -> None:
        while True:
            self._bar.set_description_str(f"{self._cell}, {monotonic() - self._since:.0f} s")
            await asyncio.sleep(0.5)


def export(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write the notebook as one page that needs no network: its pictures inside it."""
    exporter = HTMLExporter(embed_images=True, raw_template=WITHOUT_SCRIPTS)
    page, _ = exporter.from_notebook_node(without_widgets(notebook))
    path.write_text(page, encoding="utf-8")


def without_widgets(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out what only a kernel can draw; the picture below each widget stays."""
    still = copy.deepcopy(notebook)
    for cell in still.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output for output in cell.outputs if WIDGET not in output.get("data", ())
            ]
    return still


def table(record: Path) -> Iterator[str]:
    """Lines that say what a record holds, read as anybody would, with xarray."""
    streams = xr.open_datatree(record, group="scalars", engine="zarr")
    nbytes = sum(file.stat().st_size for file in record.rglob("*") if file.is_file())
    yield f"{'stream':<12}{'steps':>8}{'modules':>9}  quantities"
    for name, stream in streams.children.items():
        data = stream.to_dataset()
        counts = f"{name:<12}{data.sizes['step']:>8,}{data.sizes['module']:>9,}  "
        quantities = ", ".join(map(str, data.data_vars))
        yield from wrap(
            quantities, width=96, initial_indent=counts, subsequent_indent=" " * len(counts)
        )
    yield f"{nbytes / 1e6:.1f} MB in {record.relative_to(ROOT)}"


def main() -> int:
    """Run, export, report; 1 when a cell fails."""
    BUILD.mkdir(exist_ok=True)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    print(f"running {NOTEBOOK.relative_to(ROOT)}")
    try:
        execute(notebook, BUILD)
    except CellExecutionError as error:
        print(f"a cell failed, so there is nothing to show:\n{error}", file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, BUILD / "quickstart.ipynb")
    export(notebook, BUILD / "quickstart.html")
    record = max((BUILD / "runs").glob("*.zarr"), key=lambda path: path.stat().st_mtime)

    print("\nrecorded while it trained:")
    print("\n".join(table(record)))
    print("\nlook at it:   build/quickstart.html")
    print(f'read it:      xr.open_zarr("{record.relative_to(ROOT)}", group="scalars/every_1")')
    print("see it live:  make lab")
    return 0


if __name__ == "__main__":
    sys.exit(main())
