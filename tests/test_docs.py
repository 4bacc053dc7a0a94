"""What the pages of docs/ and the README say of the package is there; what can run runs elsewhere.

The README's blocks run in tests/test_readme.py. Those of docs/ may need servers and buckets: here
they are read.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import notebook_probe as nbp

ROOT = Path(__file__).parent.parent
AT_THE_ROOT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*AT_THE_ROOT, *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    """The page as a test calls it: two folders may have one of the same name."""
    return page.relative_to(ROOT).as_posix()


def leads_somewhere(page: Path, target: str) -> bool:
    """Whether a relative link has a file, and its section there is a heading."""
    file, _, section = target.partition("#")
    path = page.parent / file if file else page
    return path.exists() and (not section or section in sections(path))


@cache
def sections(page: Path) -> frozenset[str]:
    """The names by which GitHub links the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings)


def nodes(page: Path) -> Iterator[ast.AST]:
    """Everything in the page's Python; a block that is none raises SyntaxError."""
    for block in BLOCK.findall(page.read_text("utf-8")):
        yield from ast.walk(ast.parse(block, str(page)))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_name_that_a_page_uses_is_there(page: Path) -> None:
    owners = {"nbp": nbp, "run": nbp.Run}
    used = [
        (node.value.id, node.attr)
        for node in nodes(page)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    missing = [name for name in used if name[0] in owners and not hasattr(owners[name[0]], name[1])]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_option_that_a_page_names_is_one(page: Path) -> None:
    unknown = []
    for node in nodes(page):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "nbp":
                allowed = inspect.signature(getattr(nbp, node.func.attr)).parameters
                given = {keyword.arg for keyword in node.keywords}
                unknown += [(node.func.attr, name) for name in given - {*allowed, None}]
    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_files_and_sections_that_a_page_points_to_are_there(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8"))
    assert [target for target in targets if not leads_somewhere(page, target)] == []
