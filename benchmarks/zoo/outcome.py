"""Result of trying an architecture, and the page of many results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

__all__ = ["Outcome", "page_of", "read"]

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


def page_of(outcomes: list[Outcome]) -> str:
    """Return the page of the documentation: a row for each library, what differs, and all names."""
    tried = [one for one in outcomes if not one.skipped]
    n_equal = sum(not one.is_bad for one in tried)
    by_library: dict[str, list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda one: one.name.lower()):
        by_library.setdefault(one.library, []).append(one)
    n_values = sum(one.n_values for one in tried)
    head = HEAD.format(n_tried=len(tried), n_equal=n_equal, n_values=n_values)
    rows = [_row(library, by_library[library]) for library in sorted(by_library)]
    apart = [f"* {one.library} {one.name}: {one.told}" for one in tried if one.is_bad]
    lists = [_listed(library, by_library[library]) for library in sorted(by_library)]
    differing = ["## What differs", "\n".join(apart)] if apart else []
    return "\n\n".join([head, "\n".join([COLUMNS, *rows]), *differing, NAMES, *lists]) + "\n"


HEAD = """# Architectures that were tried

<!-- written by `python -m benchmarks zoo --save` -->

{n_tried:,} architectures of other libraries were trained for three steps, with and without a
run; {n_equal:,} show no difference. After both trainings all weights, buffers and optimizer
states, and the random generators of torch, Python and numpy are the same bit for bit. Calls,
mean and standard deviation of the outputs, and the norms of weights and gradients of every
module without children are those that float64 hooks of a twin find: {n_values:,} values.

Each has random weights, two small inputs or one, and AdamW; those of transformers, diffusers
and torch_geometric have small configurations. An architecture that does not train so, or is
larger than the limit, is counted and not tried."""

COLUMNS = """| library | tried | no difference | modules | values compared | not tried |
|---|---|---|---|---|---|"""
NAMES = "## Their names"


def _row(library: str, its: list[Outcome]) -> str:
    tried = [one for one in its if not one.skipped]
    why = Counter(one.skipped.partition(":")[0] for one in its if one.skipped)
    cells = (
        library,
        f"{len(tried):,}",
        f"{sum(not one.is_bad for one in tried):,}",
        f"{sum(one.n_modules for one in tried):,}",
        f"{sum(one.n_values for one in tried):,}",
        ", ".join(f"{n:,} {reason}" for reason, n in why.most_common()),
    )
    return f"| {' | '.join(cells)} |"


def _listed(library: str, its: list[Outcome]) -> str:
    names = [one.name for one in its if not one.skipped]
    return fill(f"**{library}**: {', '.join(names)}", 120, break_on_hyphens=False)
