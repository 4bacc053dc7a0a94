"""All architectures that were ever tried, and the page that lists them.

tried.json has what the results of many runs add up to, as no machine keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import fill

from benchmarks.zoo.outcome import Outcome

__all__ = ["TRIED", "Tried", "page_of", "read_tried", "with_outcomes", "write_tried"]

TRIED = Path(__file__).with_name("tried.json")


@dataclass
class Tried:
    """Architectures of a library that were tried.

    Attributes
    ----------
    n_listed : int
        Number of those that the library lists, tried or not.
    equal : list of str
        Names of those that show no difference.
    different : dict of str to str
        What differs in the others, by name.
    n_modules, n_values : int
        Modules of all, and values that were compared.
    """

    n_listed: int = 0
    equal: list[str] = field(default_factory=list)
    different: dict[str, str] = field(default_factory=dict)
    n_modules: int = 0
    n_values: int = 0

    @property
    def names(self) -> list[str]:
        return sorted([*self.equal, *self.different], key=str.lower)

    def add(self, outcome: Outcome) -> None:
        """Add an outcome, which replaces an earlier one of that name."""
        if outcome.name not in self.names:
            self.n_modules += outcome.n_modules
            self.n_values += outcome.n_values
        self.different.pop(outcome.name, None)
        equal = {*self.equal} - {outcome.name}
        if outcome.is_bad:
            self.different[outcome.name] = outcome.told
        else:
            equal.add(outcome.name)
        self.equal = sorted(equal, key=str.lower)


def read_tried(path: Path) -> dict[str, Tried]:
    """Return what was tried, by library."""
    if not path.exists():
        return {}
    return {name: Tried(**its) for name, its in json.loads(path.read_text("utf-8")).items()}


def write_tried(path: Path, tried: Mapping[str, Tried]) -> None:
    """Write what `read_tried` reads: a line for each name."""
    told = {library: asdict(tried[library]) for library in sorted(tried)}
    path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def with_outcomes(tried: Mapping[str, Tried], outcomes: Iterable[Outcome]) -> dict[str, Tried]:
    """Add the outcomes of what was not skipped."""
    found = dict(tried)
    for outcome in outcomes:
        if not outcome.skipped:
            found.setdefault(outcome.library, Tried()).add(outcome)
    return found


def page_of(tried: Mapping[str, Tried]) -> str:
    """Return the page of the documentation: a row for each library, what differs, and all names."""
    libraries = sorted(tried)
    n_equal = sum(len(one.equal) for one in tried.values())
    n_tried = n_equal + sum(len(one.different) for one in tried.values())
    n_values = sum(one.n_values for one in tried.values())
    head = HEAD.format(n_tried=n_tried, n_equal=n_equal, n_values=n_values)
    rows = [_row(library, tried[library]) for library in libraries]
    apart = [
        f"* {library} {name}: {told}"
        for library in libraries
        for name, told in tried[library].different.items()
    ]
    lists = [
        fill(f"**{library}**: {', '.join(tried[library].names)}", 120, break_on_hyphens=False)
        for library in libraries
    ]
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
and torch_geometric have small configurations, and a network of transformers with a head for a
task computes its loss of labels. An architecture that does not train so, or has more than 24
million weights, is listed by its library and was not tried."""

COLUMNS = """| library | listed | tried | no difference | modules | values compared |
|---|---|---|---|---|---|"""
NAMES = "## Their names"


def _row(library: str, its: Tried) -> str:
    n_tried = len(its.equal) + len(its.different)
    counts = (its.n_listed, n_tried, len(its.equal), its.n_modules, its.n_values)
    return f"| {' | '.join([library, *(f'{n:,}' for n in counts)])} |"
