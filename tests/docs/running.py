"""A page's Python, run from top to bottom as a reader would, in a folder of its own."""

from __future__ import annotations

import re
from pathlib import Path

from tests.run.programs import Programs

__all__ = ["DOCS", "READERS_OWN", "blocks_of", "run_page"]

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[str]:
    """The blocks of a page of docs/ that are marked as Python."""
    blocks = BLOCK.findall((DOCS / page).read_text("utf-8"))
    assert blocks, f"{page} has no Python"
    return blocks


READERS_OWN = "\n".join(blocks_of("how_to/model.md"))
"""What a page that shows no training takes from its reader: a model, a loop, the usual import."""


AT_ANY_SPEED = """
from notebook_probe.probes.step import budget
budget.WHOLE_S = float("inf")
del budget
"""
"""Set before a page: all that is due is measured, however slow the machine is, as in `conftest`."""


def run_page(
    page: str, programs: Programs, folder: Path, *, before: str = "", after: str = ""
) -> None:
    """Run a page's blocks in their order, without a warning or a word on stderr."""
    script = "\n".join([AT_ANY_SPEED, before, *blocks_of(page), after])
    ended = programs.run(script, folder=folder)
    assert ended == (0, ""), ended.stderr
