"""The pages of docs/quantities: complete, current, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from notebook_probe.quantities.table import built_in
from tools.pictures.scenes import SCENES, caption
from tools.quantity_pages import FOLDER, INDEX, PICTURES, ROOT, pages

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
        assert path.stat().st_size < 16_000, path.name
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_scenes_show_quantities_that_there_are_and_each_in_one_scene() -> None:
    named = [name for scene in SCENES.values() for name in scene.shown]
    assert len(named) == len(set(named))
    assert set(named) <= {quantity.name for quantity in built_in()}


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
