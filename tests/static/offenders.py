"""Report every offender of a static check at once, each with its place and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

__all__ = ["ROOT", "at", "read", "refuse"]

ROOT = Path(__file__).parents[2]


@cache
def read(path: Path) -> str:
    """Return the text of a file, which is read once for all checks."""
    return path.read_text("utf-8")


def at(path: Path | str, text: str = "", position: int = 0) -> str:
    """Return ``file:line`` of a position in a text, the file as seen from the project's root."""
    inside = isinstance(path, Path) and path.is_relative_to(ROOT)
    shown = Path(path).relative_to(ROOT) if inside else path
    return f"{shown}:{text.count(chr(10), 0, position) + 1}"


def refuse(offenders: Iterable[str], rule: str) -> None:
    """Fail with the rule and a line for each offender; pass if there is none."""
    found = list(offenders)
    if found:
        pytest.fail("\n  ".join([f"{rule} ({len(found)} offenders)", *found]), pytrace=False)
