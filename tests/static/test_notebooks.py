"""Notebooks as they are committed; tests/notebooks runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebooks.claims import CLAIMS
from tests.notebooks.claims_broken import CLAIMS_BROKEN
from tests.static.notebooks import PARTS, badly_told, broken, notebooks, uncommittable
from tests.static.offenders import refuse
from tools.colab import COLAB, QUICKSTART, derived

pytestmark = pytest.mark.static


def test_there_are_notebooks() -> None:
    named = {path.stem for path in notebooks()}
    assert {"quickstart", *CLAIMS, *CLAIMS_BROKEN} <= named


def test_a_notebook_is_committed_without_outputs_and_with_named_cells() -> None:
    refuse(
        (one for path in notebooks() for one in uncommittable(path)),
        "a notebook is committed without outputs and with named cells",
    )


def test_a_broken_training_is_told_from_its_symptom_to_the_same_picture_healthy() -> None:
    refuse(
        (one for path in broken() for one in badly_told(path, CLAIMS_BROKEN)),
        "a broken training is told from its symptom to the same picture healthy",
    )


def test_the_notebook_for_colab_is_what_the_quickstart_gives() -> None:
    assert nbformat.read(COLAB, as_version=4) == derived(), "python -m tools.colab"


def test_the_notebook_for_colab_is_the_quickstart_below_one_cell() -> None:
    own = nbformat.read(QUICKSTART, as_version=4).cells
    title, first, *others = derived().cells
    assert [title, *others] == own
    assert first.id == "colab"


def planted(folder: Path, *cells: Any) -> Path:
    path = folder / "planted.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells)), path)
    return path


def test_outputs_and_a_cell_without_a_name_are_found_at_once(tmp_path: Path) -> None:
    code = nbformat.v4.new_code_cell("1", id="one", outputs=[nbformat.v4.new_output("stream")])
    path = planted(tmp_path, code, nbformat.v4.new_markdown_cell("a", id="22"))
    assert [*uncommittable(path)] == [
        "planted.ipynb: cell one has outputs; nbstripout removes them",
        "planted.ipynb: cell 22 has no name; allowed: an id in words",
    ]


def test_a_broken_training_that_lacks_a_part_is_found(tmp_path: Path) -> None:
    title = nbformat.v4.new_markdown_cell("# Title\n\nNo full stop", id="title")
    parts = [nbformat.v4.new_code_cell("1", id=part) for part in PARTS[2:]]
    found = [*badly_told(planted(tmp_path, title, *parts), ())]
    assert len(found) == 3
    assert found[0].startswith("planted.ipynb: cells title, panel, alert")
    assert found[1].startswith("planted.ipynb: cell title; allowed:")
    sound = nbformat.v4.new_markdown_cell("# Title\n\nA full stop.", id="title")
    symptom = nbformat.v4.new_code_cell("1", id="symptom")
    assert [*badly_told(planted(tmp_path, sound, symptom, *parts), {"planted"})] == []
