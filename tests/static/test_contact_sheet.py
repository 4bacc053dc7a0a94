"""The contact sheet of broken trainings: current, small, and only of notebooks that are there."""

from __future__ import annotations

import pytest

from tools.contact_sheet import FOLDER, INDEX, notebooks, page

pytestmark = pytest.mark.static


def test_the_page_is_what_the_notebooks_say_now() -> None:
    assert INDEX.read_text("utf-8") == page()


def test_a_picture_is_of_a_notebook_and_small() -> None:
    pictures = {path.stem: path.stat().st_size for path in FOLDER.glob("*.png")}
    assert pictures.keys() <= {path.stem for path in notebooks()}
    assert {name: size for name, size in pictures.items() if size > 60_000} == {}
