"""The pages of docs/ and those at the root, and checks that read them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import notebook_probe as nbp
from tests.static.offenders import ROOT, at, read

DOCS = ROOT / "docs"
AT_THE_ROOT = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", flags=re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
OWNERS = {"nbp": nbp, "run": nbp.Run}

Check: TypeAlias = Callable[[Path], Iterator[str]]
"""What is wrong on a page, a line for each."""


@cache
def in_docs() -> tuple[Path, ...]:
    return tuple(sorted(DOCS.rglob("*.md")))


def pages() -> tuple[Path, ...]:
    return (*AT_THE_ROOT, *in_docs())


@cache
def nodes(page: Path) -> Sequence[tuple[str, ast.AST]]:
    """Return everything in the page's Python with its place.

    Raises
    ------
    SyntaxError
        A block is no Python.
    """
    found: list[tuple[int, ast.AST]] = []
    for match in BLOCK.finditer(read(page)):
        above = read(page).count("\n", 0, match.start(1))
        tree = ast.parse("\n" * above + dedent(match[1]), str(page))  # lines are the page's
        found += [(getattr(node, "lineno", above + 1), node) for node in ast.walk(tree)]
    found.sort(key=itemgetter(0))
    return [(f"{shown(page)}:{line}", node) for line, node in found]


def shown(page: Path) -> str:
    return at(page).rpartition(":")[0]


def unknown_names(page: Path) -> Iterator[str]:
    """Find attributes of the package and of a run that do not exist."""
    for place, node in nodes(page):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = OWNERS.get(node.value.id)
            if owner is not None and not hasattr(owner, node.attr):
                yield f"{place}: {node.value.id}.{node.attr} does not exist"


def unknown_options(page: Path) -> Iterator[str]:
    """Find options in calls of the package's functions that these do not have."""
    for place, node in nodes(page):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="nbp"), attr=name)):
                allowed = inspect.signature(getattr(nbp, name)).parameters
                for one in node.keywords:
                    if one.arg not in {*allowed, None}:
                        yield f"{place}: nbp.{name}({one.arg}=); allowed: {', '.join(allowed)}"


def dead_links(page: Path) -> Iterator[str]:
    """Find relative links to a file or a section that does not exist."""
    for match in LINK.finditer(read(page)):
        file, _, section = match[1].partition("#")
        path = page.parent / file if file else page
        if not path.exists():
            yield f"{at(page, read(page), match.start())}: there is no file {file}"
        elif section and section not in sections(path):
            allowed = ", ".join(sorted(sections(path)))
            yield f"{at(page, read(page), match.start())}: {match[1]}; sections: {allowed}"


@cache
def sections(page: Path) -> frozenset[str]:
    """Return the names by which GitHub links the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", read(page), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings)
