"""The pages of docs/quantities: complete, current, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from notebook_probe.quantities.table import built_in
from tools.quantity_pages import FOLDER, INDEX, PICTURES, ROOT, pages
from tools.svg import lines

PAGES = pages()


def test_the_pages_are_what_the_docstrings_say_now() -> None:
    behind = [
        str(path)
        for path, text in PAGES.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text("utf-8") != text
    ]
    assert behind == [], "run `python -m tools.quantity_pages`"


def test_there_is_no_page_of_a_family_that_is_gone() -> None:
    assert {path.name for path in (ROOT / FOLDER).glob("*.md")} == {
        path.name for path in PAGES if path != INDEX
    }


def test_every_quantity_has_a_small_picture_and_no_picture_is_left_over() -> None:
    pictures = {path.stem: path for path in (ROOT / PICTURES).iterdir()}
    wanted = {quantity.name for quantity in built_in()}
    assert set(pictures) == wanted, "run `python -m tools.quantity_pictures`"
    for path in pictures.values():
        assert path.stat().st_size < 6000, path.name
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_heading(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([\w/.]*)#(\w+)\)", PAGES[page]):
        home = PAGES[page.parent / target] if target else PAGES[page]
        assert f"\n## {anchor}\n" in home, (page, target, anchor)


def test_a_quantity_s_section_tells_everything() -> None:
    page = PAGES[FOLDER / "ranks.md"]
    section = page.split("\n## effective_rank\n")[1].split("\n## ")[0]
    for part in (
        "![effective_rank](pictures/effective_rank.svg)",
        "**Formula:** `exp(-sum p ln p), p = s / sum(s) + 1e-7`",
        "**Answers:** Do representations collapse?",
        "needs `output`; units `1`; cost `factorisation`; also called `RankMe`",
        "<https://arxiv.org/abs/2210.02885>",
        "**How to read it.** `s` are the singular values",
        "**Pitfalls.** Not more than the rows",
    ):
        assert part in section


def drawn(text: str) -> list[str]:
    """The polylines of a picture."""
    paths = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}path")
    return [path.get("d", "") for path in paths][1:]  # the first is the frame


def test_a_line_goes_from_end_to_end_and_is_lifted_where_nothing_is() -> None:
    x, y = np.arange(5.0), np.array([0.0, 1.0, np.nan, 1.0, 2.0])
    (path,) = drawn(lines({"fc": (x, y)}, "step"))
    assert path == "M62 112.0L149 67.0M323 67.0L410 22.0"


def test_positive_values_of_many_decades_are_on_a_log_axis() -> None:
    x, y = np.arange(3.0), np.array([1e-4, 1e-2, 1.0])
    text = lines({"fc": (x, y)}, "step")
    assert drawn(text) == ["M62 112.0L236 67.0L410 22.0"]
    assert ">log<" in text


def test_a_constant_is_drawn_in_the_middle() -> None:
    assert drawn(lines({"fc": (np.arange(2.0), np.zeros(2))}, "step")) == ["M62 67.0L410 67.0"]


def test_a_name_cannot_break_the_picture() -> None:
    text = lines({"<script>&": (np.arange(2.0), np.arange(2.0))}, "step")
    assert "<script>" not in text
    ElementTree.fromstring(text)
