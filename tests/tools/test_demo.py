"""What `make demo` leaves behind."""

from base64 import b64encode
from pathlib import Path

import nbformat
import numpy as np
import pytest
import xarray as xr
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import demo

PIXEL = b64encode(b"any picture").decode()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place where the demo thinks it lives."""
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "BUILD", tmp_path / "build")
    monkeypatch.setattr(demo, "NOTEBOOK", tmp_path / "quickstart.ipynb")
    return tmp_path


@pytest.mark.slow
def test_the_page_shows_pictures_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    panel = new_output("display_data", {demo.WIDGET: {"model_id": "1"}, "text/plain": "Panel(…)"})
    picture = new_output("display_data", {"image/png": PIXEL, "text/plain": ""})
    notebook = new_notebook(cells=[new_code_cell("run.explore()", outputs=[panel, picture])])

    demo.export(notebook, tmp_path / "page.html")

    page = (tmp_path / "page.html").read_text("utf-8")
    assert f'src="data:image/png;base64,{PIXEL}' in page
    assert "Panel(…)" not in page
    assert "<script" not in page
    assert "<link" not in page


def stream(n_steps: int, *quantities: str) -> xr.Dataset:
    values = (("step", "module"), np.zeros((n_steps, 2), np.float32))
    return xr.Dataset(
        dict.fromkeys(quantities, values), coords={"step": np.arange(n_steps), "module": [0, 1]}
    )


@pytest.mark.slow
def test_the_table_counts_what_the_record_holds(checkout: Path) -> None:
    record = checkout / "build" / "runs" / "one.zarr"
    xr.DataTree.from_dict(
        {"scalars/every_1": stream(12, "grad_norm", "loss"), "scalars/every_5": stream(3, "x")}
    ).to_zarr(record, zarr_format=2)

    heading, *rows, place = (line.split() for line in demo.table(record))

    assert heading == ["stream", "steps", "modules", "quantities"]
    assert rows == [["every_1", "12", "2", "grad_norm,", "loss"], ["every_5", "3", "2", "x"]]
    assert place[-1] == "build/runs/one.zarr"


@pytest.mark.slow
def test_a_failing_cell_is_shown_and_the_notebook_is_kept(
    checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nbformat.write(new_notebook(cells=[new_code_cell("print('so far')\n1 / 0")]), demo.NOTEBOOK)

    assert demo.main() == 1

    assert "ZeroDivisionError" in capfd.readouterr().err
    kept = nbformat.read(demo.BUILD / "quickstart.ipynb", as_version=4)
    assert kept.cells[0].outputs[0].text == "so far\n"
    assert not (demo.BUILD / "quickstart.html").exists()
