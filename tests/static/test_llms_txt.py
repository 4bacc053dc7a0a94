"""The list of pages for language models names pages that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.static.offenders import refuse
from tests.static.pages import DOCS

pytestmark = pytest.mark.static

LINK = re.compile(r"\]\(([^)]+)/\)")


def dangling(text: str) -> Iterator[str]:
    """Find links to pages that do not exist."""
    for page in LINK.findall(text):
        if not any((DOCS / name).is_file() for name in (f"{page}.md", f"{page}/index.md")):
            yield page


def test_every_page_that_it_lists_exists() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    assert len(LINK.findall(text)) == text.count("](")
    refuse(dangling(text), "llms.txt lists a page that docs/ does not have")


def test_a_page_that_does_not_exist_is_found() -> None:
    assert [*dangling("[a](how_to/script/) [b](how_to/scirpt/)")] == ["how_to/scirpt"]
