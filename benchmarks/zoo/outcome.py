"""Result of trying an architecture, and the results that are in the file of a benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

__all__ = ["Outcome", "read"]

LONGEST = 160


class Outcome(NamedTuple):
    """Result of trying an architecture.

    Attributes
    ----------
    skipped : str
        Why it was not tried; empty if it was.
    different : list of str
        What differs after a watched training: a tensor, a generator or a value.
    n_values : int
        Number of values that were compared.
    """

    library: str
    name: str
    skipped: str = ""
    different: list[str] = []  # noqa: RUF012 - never changed
    n_weights: int = 0
    n_modules: int = 0
    n_values: int = 0
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        return bool(self.different)

    @property
    def told(self) -> str:
        if self.skipped:
            return f"not tried: {self.skipped}"[:LONGEST]
        if not self.different:
            return "equal"
        return f"{len(self.different)} differ: {'; '.join(self.different[:2])}"[:LONGEST]


def read(results: Path) -> list[Outcome]:
    """Return the outcomes in a file; of each architecture the last one."""
    if not results.exists():
        return []
    lines = results.read_text("utf-8").splitlines()
    every = [Outcome(**json.loads(line)) for line in lines]
    return [*{(one.library, one.name): one for one in every}.values()]
