"""The pages of docs/quantities: complete, current, and every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from notebook_probe.quantities.table import built_in
from tests.static.offenders import at, refuse
from tools.pictures.scenes import SCENES, UNSEEN, caption
from tools.quantity_pages import FOLDER, INDEX, PICTURES, ROOT, pages

pytestmark = pytest.mark.static

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
    wanted = {quantity.name for quantity in built_in()} - {*UNSEEN}
    assert set(pictures) == wanted, "run `python -m tools.quantity_pictures`"
    for path in pictures.values():
        assert path.stat().st_size < 16_000, path.name
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_scenes_show_quantities_that_there_are_and_each_in_one_scene() -> None:
    named = [name for scene in SCENES.values() for name in scene.shown]
    assert len(named) == len(set(named))
    assert set(named) <= {quantity.name for quantity in built_in()}


def dead_links(pages: Mapping[Path, str]) -> Iterator[str]:
    """Find links between the pages to a page or a heading that does not exist."""
    for page, text in pages.items():
        for match in re.finditer(r"\]\(([\w/.]*)#(\w+)\)", text):
            target, anchor = match.groups()
            home = pages.get(page.parent / target if target else page, "")
            if f"\n## {anchor}\n" not in home:
                yield f"{at(page, text, match.start())}: {target}#{anchor} is no heading"


def test_every_link_leads_to_a_heading() -> None:
    assert sum(text.count("#") for text in PAGES.values()) > 500
    refuse(dead_links(PAGES), "a link leads to a heading")


def test_a_link_to_no_heading_and_one_to_no_page_are_found_at_once() -> None:
    text = "# Page\n\n## here\n\n[a](#here) [b](a.md#here)\n[c](a.md#gone) [d](gone.md#here)\n"
    assert [*dead_links({Path("a.md"): text})] == [
        "a.md:6: a.md#gone is no heading",
        "a.md:6: gone.md#here is no heading",
    ]


def test_a_quantity_s_section_tells_everything() -> None:
    page = PAGES[FOLDER / "ranks.md"]
    section = page.split("\n## effective_rank\n")[1].split("\n## ")[0]
    for part in (
        "![effective_rank](pictures/effective_rank.svg)",
        f"*{caption('effective_rank')}*",
        "**Formula:** `exp(-sum p ln p), p = s / sum(s) + 1e-7`",
        "**Answers:** Do representations collapse?",
        "needs `output`; units `1`; cost `factorisation`; also called `RankMe`",
        "<https://arxiv.org/abs/2210.02885>",
        "**How to read it.** `s` are the singular values",
        "**Pitfalls.** Not more than the rows",
    ):
        assert part in section


def test_the_index_leads_by_question_by_family_and_by_the_name_elsewhere() -> None:
    index = PAGES[INDEX]
    home = "quantities/ranks.md#effective_rank"
    by_question, by_family = index.split("\n## By family\n")
    by_family, by_name = by_family.split("\n## By another name\n")
    asked = by_question.split("### Do representations collapse?")[1].split("\n### ")[0]
    assert asked.split("Begin with ")[1].startswith(f"[`effective_rank`]({home})")
    assert f"\n| [`effective_rank`]({home}) |" in asked
    assert home in by_family
    assert f"| `RankMe` | [`effective_rank`]({home}) |" in by_name
    for quantity in built_in():
        for alias in quantity.aliases:
            assert f"| `{alias}` | [`{quantity.name}`]" in by_name
