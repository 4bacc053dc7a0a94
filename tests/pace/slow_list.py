"""Lists of cases in files: which are marked slow, and which should be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["FOUND", "LIMIT_S", "MARKED", "read", "write"]

LIMIT_S = 0.1
"""What a quick case may take, on an idle core of the reference machine."""
MARKED = Path("tests/slow_cases.txt")
"""The cases that the tool has marked slow, below the project's root."""
FOUND = Path("build/over_the_limit.txt")
"""The cases that the last checked run has found too slow."""


def read(file: Path) -> frozenset[str]:
    """Return the cases of a list, as pytest names them; none if there is no such file."""
    return frozenset(file.read_text("utf-8").splitlines()) if file.exists() else frozenset()


def write(cases: Iterable[str], file: Path) -> None:
    """Write a list: sorted, a case a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{case}\n" for case in sorted(set(cases))), encoding="utf-8")
