"""Texts are in plain English: no turn of tools/language.toml is in pages and notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.static.language import Section, Turn, banned, section, texts_of_notebook, written
from tests.static.offenders import refuse

pytestmark = pytest.mark.static


def test_no_page_and_no_notebook_has_a_banned_turn() -> None:
    texts = [*written()]
    assert len(texts) > 90
    listed = section("texts")
    refuse(
        (one for path, text in texts for one in banned(path, text, listed)),
        "texts are in plain English (tools/language.toml)",
    )


def test_every_allowed_exception_is_still_in_its_text() -> None:
    texts = {path.name: text for path, text in written()}
    for file, parts in section("texts").allowed.items():
        for part in parts:
            assert part in texts[Path(file).name], f"{file} no longer has {part!r}: remove it"


LISTED = Section(
    (Turn.of("goes on", "continues"), Turn.of("What", "begin with the subject", True)),
    {"page.md": ["As he said, life goes on"]},
)


def test_all_banned_turns_of_a_text_are_found_with_what_to_write() -> None:
    text = "# What it does\n\nIt goes\non, and `goes on` is code.\n\n* What it does is good.\n"
    assert [*banned(Path("page.md"), text, LISTED)] == [
        "page.md:3: 'goes on'; write: continues",
        "page.md:6: 'What'; write: begin with the subject",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "What does it do?",
        "As he said, life goes on.",
        "```\ngoes on\n```",
        "See [this](goes-on.md).",
        "<!-- goes on -->",
        "## What goes where",
    ],
)
def test_questions_code_links_headings_and_quotations_are_no_offenders(text: str) -> None:
    assert [*banned(Path("page.md"), text, LISTED)] == []


def test_a_notebook_is_searched_in_its_text_cells_and_reported_by_line() -> None:
    notebook = """{
 "cells": [
  {
   "cell_type": "code",
   "source": [
    "goes on = 1"
   ]
  },
  {
   "cell_type": "markdown",
   "source": [
    "# Title\\n",
    "It goes on."
   ]
  }
 ]
}"""
    [found] = banned(Path("a.ipynb"), texts_of_notebook(notebook), LISTED)
    assert found == "a.ipynb:13: 'goes on'; write: continues"
