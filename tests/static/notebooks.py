"""The committed notebooks, and checks that read them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import nbformat

from tests.static.offenders import ROOT

FOLDER = ROOT / "notebooks"
PARTS = ("title", "symptom", "panel", "alert", "fix", "healthy", "picture", "check")


@cache
def broken() -> tuple[Path, ...]:
    return tuple(sorted(FOLDER.glob("broken/*.ipynb")))


@cache
def notebooks() -> tuple[Path, ...]:
    return (*sorted(FOLDER.glob("*.ipynb")), *broken())


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def uncommittable(path: Path) -> Iterator[str]:
    """Find what a notebook must not be committed with: outputs, cells without names, faults."""
    notebook = nbformat.read(path, as_version=4)
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        yield f"{shown(path)}: {error}"
    for cell in notebook.cells:
        if cell.get("outputs"):
            yield f"{shown(path)}: cell {cell.id} has outputs; nbstripout removes them"
        if cell.id.isdigit():
            yield f"{shown(path)}: cell {cell.id} has no name; allowed: an id in words"


def badly_told(path: Path, claimed: Collection[str]) -> Iterator[str]:
    """Find what a notebook of a broken training lacks, from its symptom to its check."""
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    named = [name for name in cells if name in PARTS]
    if named != list(PARTS):
        yield f"{shown(path)}: cells {', '.join(named)}; allowed: {', '.join(PARTS)}"
    heading, between, symptom, *_ = f"{cells['title'].source}\n\n\n".split("\n")
    if not heading.startswith("# ") or between or not symptom.endswith("."):
        yield f"{shown(path)}: cell title; allowed: '# Heading', an empty line, one sentence"
    if path.stem not in claimed:
        yield f"{shown(path)}: tests/notebooks/claims_broken.py claims nothing of it"
