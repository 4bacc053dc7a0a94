"""Search for differences in one quantity, which continues where it stopped as the run grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from notebook_probe.compare.deviation import is_signed
from notebook_probe.compare.first_rows import wanted
from notebook_probe.compare.members import Members
from notebook_probe.compare.partings import Parting
from notebook_probe.compare.reference.differences import ReferenceDifference
from notebook_probe.compare.reference.limits import apart_in_decades, center, far_modules, spreads
from notebook_probe.compare.row_pairs import SLIGHTLY, RowPairs, holding, row_pairs
from notebook_probe.compare.tables import Doubles
from notebook_probe.record.format.source import StreamView, Variable
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["QuantitySearch"]

MOST_VALUES = 500_000
"""Values of this run that are read at a time."""
SHARE = 0.5
"""Share of a median's distance that a row has which is counted as the first one."""
ROWS_OF_ABSENT = 10
"""Rows of the references, and of other modules here, after which a missing value counts."""


class QuantitySearch:
    """Differences of one quantity from the references, found as rows come.

    Parameters
    ----------
    this : Source
    references : Members
    variable : Variable
    factor : float, optional
        Smallest ratio that counts; by default as many references allow.

    Attributes
    ----------
    found : dict of str to ReferenceDifference
        By module.
    last_step : int
        Last step that was compared; -1 before any.
    is_signed : bool
        The references have negative values, or many zeros: ratios tell nothing.
    """

    def __init__(
        self,
        this: RunSource,
        references: Members,
        variable: Variable,
        factor: float | None = None,
    ) -> None:
        self._this, self._references = this, references
        self._variable, self._factor = variable, factor
        self.found: dict[str, ReferenceDifference] = {}
        self.last_step, self.is_signed = -1, False
        self._from = -np.inf
        self._rows: dict[str, _ModuleRows] = {}
        self._waiting: list[float] = []
        self._groups: list[RowPairs] = []

    @property
    def spreads(self) -> dict[str, float]:
        """Spread of the references in the rows that were read last, by module, in decades."""
        return {name: one for pairs in self._groups for name, one in spreads(pairs).items()}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Reasons why references are left out."""
        return self._references.left_out

    def begin(self) -> bool:
        """Begin to read the rows since the last look; False if there are none."""
        self._groups = []
        self._waiting = [] if self.is_signed else [*self._windows()]
        return bool(self._waiting)

    def read(self) -> bool:
        """Read the next rows, not too many; False if there are no more."""
        self._groups = []
        if not self._waiting:
            return False
        window = self._from, self._waiting.pop(0)
        modules = [one for one in self._modules if one not in self.found]
        groups = row_pairs(self._this, self._references, self._variable.name, modules, window)
        self.is_signed = is_signed(*(pairs.others for pairs in groups))
        if self.is_signed:
            self._waiting = []
            return False
        self._groups = groups
        return True

    def compare(self, noise: Mapping[str, float]) -> None:
        """Compare the rows that were read, with the spread of seeds at each module."""
        for pairs in self._groups:
            self._compare(pairs, noise)
        self._continue_after(self._groups)
        if not self._waiting and not self.is_signed:
            self._find_absent()

    @property
    def _modules(self) -> tuple[str, ...]:
        known = [row.name for row in self._this.modules]
        held = holding(self._this, self._variable.name)
        return tuple(dict.fromkeys([*known, *(one for each in held for one in each.modules)]))

    def _windows(self) -> Iterator[float]:
        """Yield ends of windows of steps with not too many values each; the last is infinite."""
        streams = [one for one in holding(self._this, self._variable.name) if one.n_rows]
        if not streams:
            return
        view = max(streams, key=lambda one: one.n_rows)
        size = max(100, MOST_VALUES // max(1, len(view.modules)))
        ends = [_step(view, row) for row in range(size, view.n_rows, size)]
        yield from (one for one in ends if one > self._from)
        yield np.inf

    def _compare(self, pairs: RowPairs, noise: Mapping[str, float]) -> None:
        far = far_modules(pairs, self._variable, self._factor, noise)
        for module, one in far.items():
            self.found[module] = self._difference(pairs, one)
        is_known = ~(np.isnan(pairs.this) | np.isnan(pairs.others).all(axis=0)).all(axis=0)
        if is_known.any():
            self.last_step = max(self.last_step, int(pairs.steps[is_known][-1]))
        for row, module in enumerate(pairs.modules):
            rows = self._rows.setdefault(module, _ModuleRows())
            rows.count(pairs.steps, pairs.this[row], pairs.others[:, row])

    def _difference(self, pairs: RowPairs, one: Parting) -> ReferenceDifference:
        """Return the difference that a median over rows has found, from its first own row on."""
        row = pairs.modules.index(one.module)
        this, there = pairs.this[row], center(pairs.others[:, row])
        far = apart_in_decades(this, there)
        at = int(np.searchsorted(pairs.steps, one.step + SLIGHTLY, "right")) - 1
        # The median at a row knows rows that follow: what begins a few steps later is there, too.
        is_far = np.sign(far) * np.sign(one.there) * np.abs(far) > SHARE * abs(one.there)
        at = next((i for i in np.flatnonzero(is_far).tolist() if i >= at), at)
        known = np.flatnonzero(~np.isnan(this[:at]))
        step = int(np.ceil(pairs.steps[at] - SLIGHTLY))
        began = int(pairs.steps[known[-1]]) + 1 if len(known) else step
        return ReferenceDifference(
            module=one.module,
            quantity=self._variable.name,
            step=step,
            began=began,
            distance=float(far[at]),
            here=float(this[at]),
            there=float(there[at]),
            n_rows=one.n_rows,
        )

    def _continue_after(self, groups: Sequence[RowPairs]) -> None:
        """Remember where the next look begins: before rows that the present end may cut short."""
        ends = [one.steps for one in groups if len(one.steps)]
        if ends:
            self._from = min(float(steps[-min(len(steps), 2 * wanted(steps))]) for steps in ends)

    def _find_absent(self) -> None:
        """Find modules without a value where the references have some, and this run has elsewhere.

        Only those of which this run has a column: at the others nothing was attached.
        """
        columns = {
            one for stream in holding(self._this, self._variable.name) for one in stream.modules
        }
        usual = max((rows.n_here for rows in self._rows.values()), default=0)
        if usual < ROWS_OF_ABSENT:
            return
        for module, rows in self._rows.items():
            if rows.is_absent and module in columns and module not in self.found:
                self.found[module] = rows.as_difference(module, self._variable.name)


@dataclass(slots=True)
class _ModuleRows:
    """Rows that were compared at one module."""

    n_here: int = 0
    n_there: int = 0
    """Rows with a value of a reference."""
    first: int = -1
    """Step of the first of them."""
    there: float = float("nan")
    """Mean of the references in it."""

    @property
    def is_absent(self) -> bool:
        return self.n_here == 0 and self.n_there >= ROWS_OF_ABSENT

    def count(self, steps: Doubles, here: Doubles, others: Doubles) -> None:
        """Count rows (row,) with the values of other runs (run, row)."""
        known = np.flatnonzero((~np.isnan(others)).any(axis=0))
        self.n_here += int((~np.isnan(here)).sum())
        self.n_there += len(known)
        if self.first < 0 and len(known):
            self.first = int(steps[known[0]])
            self.there = float(center(others[:, known[0]]))

    def as_difference(self, module: str, quantity: str) -> ReferenceDifference:
        """Return the difference of a module without values in this run."""
        nan = float("nan")
        return ReferenceDifference(
            module=module,
            quantity=quantity,
            step=self.first,
            began=self.first,
            distance=nan,
            here=nan,
            there=self.there,
            n_rows=self.n_there,
        )


def _step(view: StreamView, row: int) -> float:
    return float(view.steps(row, row + 1)[0])
