"""Every page of the built site: its links lead somewhere, and it says what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from notebook_probe.quantities.table import built_in
from tests.site.built import SITE, name, pages, read

pytestmark = pytest.mark.docs


def leads_nowhere(page: Path) -> Iterator[str]:
    """Links of a page, within the site, to a file or a section that is not there."""
    for link in (*read(page).links, *read(page).loaded):
        target = urlsplit(link)
        if target.scheme in ("http", "https", "mailto"):
            continue
        path = (SITE if target.path.startswith("/") else page.parent) / unquote(target.path).lstrip(
            "/"
        )
        file = page if not target.path else path / "index.html" if path.is_dir() else path
        section = unquote(target.fragment)
        if not file.exists() or (section and section not in read(file).ids):
            yield f"{name(page)}: {link}"


def test_every_link_and_every_section_that_it_names_is_there() -> None:
    assert [link for page in pages() for link in leads_nowhere(page)] == []


def test_a_page_loads_nothing_from_elsewhere() -> None:
    outside = {url for page in pages() for url in read(page).loaded if urlsplit(url).netloc}
    assert outside == set()


def test_a_page_has_a_language_one_title_one_heading_and_a_description() -> None:
    wrong = [
        name(page)
        for page in pages()
        if (read(page).language, read(page).n_titles, read(page).n_h1) != ("en", 1, 1)
        or not read(page).description
    ]
    assert wrong == []


def test_pictures_and_frames_say_what_they_show() -> None:
    said = {
        name(page): (read(page).without_alt, read(page).frames_without_title) for page in pages()
    }
    assert {page: silent for page, silent in said.items() if silent != ([], [])} == {}


def test_every_broken_training_is_a_page_with_its_picture_and_leads_to_its_notebook() -> None:
    notebooks = sorted((SITE / "notebooks" / "broken").glob("*.ipynb"))
    assert len(notebooks) == 12
    for notebook in notebooks:
        page = read(SITE / "broken" / notebook.stem / "index.html")
        assert f"../{notebook.stem}.png" in page.loaded
        assert f"../../notebooks/broken/{notebook.name}" in page.links


def test_the_search_knows_every_quantity() -> None:
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))
    headings = {entry["title"] for entry in index["docs"]}
    assert {quantity.name for quantity in built_in()} - headings == set()
