"""The wheel in empty environments: all it depends on at its lowest, and at its newest.

On the Python that runs the tests, or on those that NOTEBOOK_PROBE_PYTHONS names.
Where pip finds no CPU build of torch it takes the one with CUDA: some gigabytes for each.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.explorer_page import MODEL, Panel
from tests.browser.lab import Notebook
from tests.release.conftest import ROOT
from tests.release.environments import (
    Environment,
    InstalledLab,
    floors,
    pythons,
    version_of,
)

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]

SMOKE = Path(__file__).parent / "smoke.py"
IMPORTED = "import notebook_probe.explorer as e; e.Explorer; print('panel')"
QUICKSTART = """
import nbclient, nbformat
notebook = nbformat.read("quickstart.ipynb", as_version=4)
nbclient.NotebookClient(notebook, timeout=600, store_widget_state=False).execute()
code = [cell for cell in notebook.cells if cell.cell_type == "code"]
assert all(cell.execution_count for cell in code)
print("every cell has run")
"""
THREE_LINES = (
    "import notebook_probe as nbp; print(nbp.__file__)",
    "run = nbp.watch(model, optimizer, budget=None); run.explore()",
)
BOUNDS = ("lowest", "newest")


@pytest.fixture(scope="module", params=pythons())
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=BOUNDS)
def installed(
    request: pytest.FixtureRequest,
    python: str,
    tmp_path_factory: pytest.TempPathFactory,
    wheel: Path,
) -> Environment:
    """The plain installation."""
    constraints = [*floors(version_of(python))] if request.param == "lowest" else []
    environment = Environment(tmp_path_factory.mktemp(request.param), python, constraints)
    environment.install(str(wheel))
    return environment


def test_the_plain_installation_trains_records_reads_and_reports(installed: Environment) -> None:
    done = installed.run(str(SMOKE))
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout


@pytest.fixture(scope="module")
def with_panel(installed: Environment, wheel: Path) -> Environment:
    """The same with the extra of the panel: the plain one is tried above."""
    installed.install(f"{wheel}[lab]")
    return installed


def test_with_the_extra_there_is_a_panel(with_panel: Environment) -> None:
    done = with_panel.run("-c", IMPORTED)
    assert (done.returncode, done.stdout) == (0, "panel\n"), done.stderr


def test_the_quickstart_runs_with_the_extra_of_the_demo(
    with_panel: Environment, wheel: Path
) -> None:
    with_panel.install(f"{wheel}[demo]")
    shutil.copy(ROOT / "notebooks" / "quickstart.ipynb", with_panel.folder)
    done = with_panel.run("-c", QUICKSTART)
    assert (done.returncode, done.stdout) == (0, "every cell has run\n"), done.stderr[-3000:]
    assert [*with_panel.folder.rglob("*.zarr")], "it leaves a record"


@pytest.fixture
def fresh_notebook(with_panel: Environment, tmp_path: Path, page: Page) -> Iterator[Notebook]:
    """A new notebook in the JupyterLab of that environment, opened in a folder with a space."""
    folder = tmp_path / "my project"
    folder.mkdir()
    lab = InstalledLab(folder, with_panel)
    yield Notebook(page, lab, lab.add([MODEL, *THREE_LINES, "train()"]))
    lab.end_kernels()
    lab.close()


def test_three_lines_in_a_fresh_notebook_bring_a_panel_that_lives(
    fresh_notebook: Notebook,
) -> None:
    imported, shown, training = range(1, 4)
    fresh_notebook.run(0, imported, shown)
    assert "site-packages" in fresh_notebook.text(imported), "the wheel, not the checkout"
    panel = Panel(fresh_notebook, shown)
    fresh_notebook.start(training)
    fresh_notebook.wait_running(training)
    panel.wait_state("training")
    panel.attach("0", "input_std", "every(2)")
    panel.wait_attached()
    panel.wait_points("0 · input_std", 5)
    assert fresh_notebook.is_running(training), "all of this happened while the cell was blocking"
    fresh_notebook.interrupt()
    fresh_notebook.wait_finished(training)
