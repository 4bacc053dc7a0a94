"""Differences of a run from its references, and the report that lists them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, overload

from notebook_probe.compare.deviation import told
from notebook_probe.json_numbers import json_value
from notebook_probe.record.format.source import ROOT
from notebook_probe.tabular import html_table

__all__ = ["ReferenceDifference", "ReferenceDifferences"]

MOST_LINES = 12


@dataclass(frozen=True, slots=True)
class ReferenceDifference:
    """A module at which a quantity differs from the references, from a step on.

    Attributes
    ----------
    module, quantity : str
    step : int
        Step of the first row that differs.
    began : int
        First step at which it may have begun: the one after the last row without it.
    distance : float
        Ratio to the references there, in decades, smoothed; NaN where this run has no value.
    here, there : float
        Value of this run at that row, and the geometric mean of the references.
    n_rows : int
        Number of consecutive rows that differ from there on.
    """

    module: str
    quantity: str
    step: int
    began: int
    distance: float
    here: float
    there: float
    n_rows: int

    @property
    def is_absent(self) -> bool:
        """True if only the references have values, as for a frozen weight."""
        return math.isnan(self.distance)

    @property
    def size(self) -> str:
        """Size of the difference in words: ``×5.0 (12.1 against 2.42)``."""
        if self.is_absent:
            return f"without a value ({self.there:.3g} in the references)"
        return f"{told(self.distance)} ({self.here:.3g} against {self.there:.3g})"

    @property
    def place(self) -> str:
        """Path of the module, or ``the model``."""
        return "the model" if self.module == ROOT else self.module

    def __str__(self) -> str:
        return f"{self.place}: {self.quantity} {self.size} from step {self.step} on"


@dataclass(frozen=True, slots=True, repr=False)
class ReferenceDifferences(Sequence[ReferenceDifference]):
    """Differences of a run from its references, the first one first.

    Attributes
    ----------
    this : str
    references : tuple of str
        Names of the runs.
    found : tuple of ReferenceDifference
        Differences in the order of their steps; of one step weights before outputs, the loss,
        gradients and updates, each in the order in which they are computed.
    compared : tuple of str
        Quantities that were compared.
    skipped : tuple of str
        Reasons why others were not, a sentence each.
    modules : tuple of str
        Differences between the modules of the models, a sentence each.
    last_step : int
        Last step up to which runs were compared; -1 if there is none yet.

    Examples
    --------
    >>> found = ReferenceDifferences("mine", ("good-0",), (
    ...     ReferenceDifference("fc2", "weight_norm", 0, 0, 0.7, 12.1, 2.42, 90),
    ... ), ("grad_norm", "weight_norm"), (), (), 99)
    >>> found
    Differs from good-0 first at step 0: fc2, weight_norm ×5.0 (12.1 against 2.42)
    compared up to step 99: grad_norm, weight_norm
    """

    this: str
    references: tuple[str, ...]
    found: tuple[ReferenceDifference, ...]
    compared: tuple[str, ...]
    skipped: tuple[str, ...]
    modules: tuple[str, ...]
    last_step: int

    @property
    def first(self) -> ReferenceDifference | None:
        """The first difference; None without any."""
        return self.found[0] if self.found else None

    @property
    def named(self) -> str:
        """References in words: ``good-0``, or ``4 reference runs``."""
        n = len(self.references)
        return self.references[0] if n == 1 else f"{n} reference runs"

    @property
    def title(self) -> str:
        """The first difference, or that there is none, in a sentence."""
        if self.first is not None:
            one = self.first
            return (
                f"Differs from {self.named} first at step {one.step}: {one.place}, "
                f"{one.quantity} {one.size}"
            )
        if self.last_step < 0:
            return f"Nothing could be compared with {self.named} yet"
        n = len(self.compared)
        what = self.compared[0] if n == 1 else f"{n} quantities"
        return f"No difference from {self.named} in {what} up to step {self.last_step}"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON; what is not finite as text."""
        found = [
            {key: json_value(value) for key, value in asdict(one).items()} for one in self.found
        ]
        return {
            "title": self.title,
            "this": self.this,
            "references": [*self.references],
            "found": found,
            "compared": [*self.compared],
            "skipped": [*self.skipped],
            "modules": [*self.modules],
            "last_step": self.last_step,
        }

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def lines(self) -> Iterator[str]:
        """Yield the report, line by line."""
        yield self.title
        rest = self.found[1:]
        yield from (f"  {one}" for one in rest[:MOST_LINES])
        if len(rest) > MOST_LINES:
            yield f"  and {len(rest) - MOST_LINES} more"
        yield from self._notes()

    def _notes(self) -> Iterator[str]:
        yield from self.modules
        if self.compared:
            yield f"compared up to step {self.last_step}: {', '.join(self.compared)}"
        yield from (f"not compared: {one}" for one in self.skipped)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[ReferenceDifference]:
        return iter(self.found)

    @overload
    def __getitem__(self, place: int) -> ReferenceDifference: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ReferenceDifference]: ...
    def __getitem__(
        self, place: int | slice
    ) -> ReferenceDifference | Sequence[ReferenceDifference]:
        return self.found[place]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        head = {"step": "", "module": "8em", "quantity": "", "this run": "12em"}
        rows = [
            [str(one.step), escape(one.place), escape(one.quantity), escape(one.size)]
            for one in self.found
        ]
        table = html_table(head, rows) if rows else ""
        notes = "".join(f"<p>{escape(one)}</p>" for one in self._notes())
        return f"<p>{escape(self.title)}</p>{table}{notes}"
