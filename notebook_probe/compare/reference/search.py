"""Search for differences from references, in all quantities that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from notebook_probe.checks import is_number
from notebook_probe.compare.axes import look_again
from notebook_probe.compare.members import Members, names_apart
from notebook_probe.compare.reference.differences import (
    ReferenceDifference,
    ReferenceDifferences,
)
from notebook_probe.compare.reference.quantity import QuantitySearch
from notebook_probe.compare.reference.stages import Stage, stage_of
from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.loss_names import loss_name
from notebook_probe.record.format.source import Source, Variable
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ReferenceSearch"]

OF_THE_MACHINE = ("s", "1/s", "B")
"""Units of what depends on the machine."""

OF_SEEDS = (Stage.FORWARD, Stage.BACKWARD, Stage.UPDATE)
"""Stages whose quantities show how far seeds are apart at a module, and are bound by it.

Weights, which many numbers average, and the loss are far steadier than these.
"""


class ReferenceSearch:
    """Comparison of a run with its references, as often as it is asked for; new rows are read once.

    Parameters
    ----------
    this : Source
        A run or an opened record; it may be growing.
    references : sequence of Source
        One to four runs of the same kind, such as healthy seeds.
    quantities : collection of str, optional
        By default the loss, and all that is measured of the model and does not depend on the
        machine.
    factor : float, optional
        Smallest ratio that counts; by default as many references allow.

    Raises
    ------
    ValueError
        For a factor of 1 or less.
    UnknownNameError
        None of the references can be compared.

    Examples
    --------
    >>> search = ReferenceSearch(run, opened_references("runs/good-*.zarr"))  # doctest: +SKIP
    >>> search.found().title  # doctest: +SKIP
    'No difference from 4 reference runs in 9 quantities up to step 812'
    """

    def __init__(
        self,
        this: RunSource,
        references: Sequence[RunSource],
        quantities: Collection[str] | None = None,
        factor: float | None = None,
    ) -> None:
        if factor is not None and not (is_number(factor) and factor > 1):
            raise ValueError(f"factor={factor!r}; a number above 1 is expected")
        self._this, self._factor = this, factor
        self._wanted = None if quantities is None else {*map(this.recorded_name, quantities)}
        self._references = Members(this, references, "step")
        self._searches: dict[str, QuantitySearch] = {}
        self._unread: dict[str, RecordFormatError] = {}
        self._noise: dict[str, float] = {}

    def look(self) -> None:
        """Compare the rows that have come since the last look.

        A quantity that is damaged in the record is left out, and all others are compared.

        Raises
        ------
        ProbeError, OSError
            None of the references can be read any more.
        """
        look_again([self._this, *self._references.runs])
        variables = _variables(self._this)
        for variable in self._chosen(variables):
            if variable.name not in self._searches:
                self._searches[variable.name] = QuantitySearch(
                    self._this, self._references.copy(), variable, self._factor
                )
        self._unread = {}
        searches = self._readable(self._searches, QuantitySearch.begin)
        while reading := self._readable(searches, QuantitySearch.read):
            for name, one in reading.items():
                if stage_of(variables[name]) in OF_SEEDS:
                    self._add_noise(one.spreads)
            for name, one in reading.items():
                one.compare(self._noise if stage_of(variables[name]) in OF_SEEDS else {})

    def _readable(
        self, searches: Mapping[str, QuantitySearch], read: Callable[[QuantitySearch], bool]
    ) -> dict[str, QuantitySearch]:
        """Return the searches that have read something; keep the errors of damaged quantities."""
        found = {}
        for name, one in searches.items():
            try:
                if name not in self._unread and read(one):
                    found[name] = one
            except RecordFormatError as error:
                self._unread[name] = error
        return found

    def _add_noise(self, spreads: Mapping[str, float]) -> None:
        for module, spread in spreads.items():
            self._noise[module] = max(spread, self._noise.get(module, 0.0))

    def found(self) -> ReferenceDifferences:
        """Look again, and return all differences so far."""
        self.look()
        this, *references = names_apart([self._this, *self._references.runs])
        searches = self._searches.values()
        return ReferenceDifferences(
            this=this,
            references=tuple(references),
            found=tuple(sorted(self._found(), key=self._order())),
            compared=tuple(
                sorted(name for name, one in self._searches.items() if _is_compared(one))
            ),
            skipped=(*self._skipped(), *self._references.left_out, *self._damaged()),
            modules=tuple(self._modules_that_differ()),
            last_step=max((one.last_step for one in searches), default=-1),
        )

    def _found(self) -> Iterator[ReferenceDifference]:
        for search in self._searches.values():
            yield from () if search.is_signed else search.found.values()

    def _chosen(self, variables: Mapping[str, Variable]) -> list[Variable]:
        """Return quantities that this run and a reference have, and that may be compared."""
        there = set[str]().union(*map(_variables, self._references.runs))
        if self._wanted is not None:
            names = self._wanted
        else:
            names = {name for name, one in variables.items() if _is_of_the_model(one)}
            names.add(loss_name(variables))
        return [one for name, one in variables.items() if name in names & there]

    def _damaged(self) -> Iterator[str]:
        """Yield the quantities that are damaged in this run, in a reference, or in all."""
        for name, one in sorted(self._searches.items()):
            if name in self._unread:
                after = f" after step {one.last_step}" if one.last_step >= 0 else ""
                yield f"{name}{after}: {self._unread[name]}"
            for why in one.left_out:
                if why not in self._references.left_out:
                    yield f"{name}: {why}"

    def _skipped(self) -> Iterator[str]:
        searches = sorted(self._searches.items())
        if signed := [name for name, one in searches if one.is_signed]:
            yield f"negative or zero in places, so that a ratio tells nothing: {', '.join(signed)}"
        empty = [name for name, one in searches if one.last_step < 0 and not one.is_signed]
        empty = [name for name in empty if name not in self._unread]
        if empty:
            yield f"without rows in common: {', '.join(empty)}"
        here = {name for name, one in _variables(self._this).items() if _is_of_the_model(one)}
        if missing := sorted(here - self._searches.keys()) if self._wanted is None else []:
            yield f"not in the references: {', '.join(missing)}"

    def _order(self) -> _Order:
        return _Order(self._this, _variables(self._this))

    def _modules_that_differ(self) -> Iterator[str]:
        """Yield modules that are of another class or size than in every reference."""
        here = {row.name: (row.class_name, row.n_own_params) for row in self._this.modules}
        tables = [
            {row.name: (row.class_name, row.n_own_params) for row in run.modules}
            for run in self._references.runs
        ]
        for name in dict.fromkeys([*here, *(name for table in tables for name in table)]):
            there = [table.get(name) for table in tables]
            if here.get(name) not in there:
                before, now = _in_words(there[0]), _in_words(here.get(name))
                yield f"{name} is {now}, in the references {before}"


class _Order:
    """Order of differences: by step, and within a step as a training computes them."""

    def __init__(self, this: Source, variables: dict[str, Variable]) -> None:
        self._places = {row.name: i for i, row in enumerate(this.modules)}
        self._variables = variables

    def __call__(self, one: ReferenceDifference) -> tuple[int, int, int, str]:
        stage = stage_of(self._variables[one.quantity])
        place = self._places.get(one.module, 0)
        return one.step, stage, -place if stage is Stage.BACKWARD else place, one.quantity


def _is_of_the_model(variable: Variable) -> bool:
    return bool(variable.attrs.get("needs")) and variable.units not in OF_THE_MACHINE


def _is_compared(search: QuantitySearch) -> bool:
    return search.last_step >= 0 and not search.is_signed


def _variables(run: Source) -> dict[str, Variable]:
    return {one.name: one for stream in run.streams.values() for one in stream.variables}


def _in_words(module: tuple[str, int] | None) -> str:
    if module is None:
        return "missing"
    return f"{module[0]} with {module[1]:,} parameters" if module[1] else module[0]
