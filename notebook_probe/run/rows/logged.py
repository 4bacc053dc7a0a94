"""Storage of logged scalars: a few have separate arrays, the others share one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.quantities import quantities
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import LOGGED, LOGGED_BY, check_scalar, is_variable
from notebook_probe.record.format.source import ROOT, Variable
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.rows.columns import COUNTS
from notebook_probe.run.rows.layout import NamedRow

__all__ = ["LoggedScalars"]

HANDFUL = 16
"""Number of scalars in every step's stream; a separate array costs each its files."""


@dataclass(frozen=True, slots=True)
class _Split:
    """Scalars that are logged together: which of them are variables, and where the others are."""

    names: list[str]
    variables: tuple[str, ...]
    others: npt.NDArray[np.intp]
    """Indices of the other names in ``names``."""
    columns: npt.NDArray[np.intp]


class LoggedScalars:
    """Choose a place for each name, and never move it.

    Parameters
    ----------
    writer : RecordWriter
    variables : callable
        Gives the stream whose variables are the first few.
    name : str
        Name of the stream of the other scalars.
    """

    def __init__(
        self, writer: RecordWriter, variables: Callable[[], StreamWriter], name: str = LOGGED
    ) -> None:
        self._writer, self._name, self._of_variables = writer, name, variables
        self._known: set[str] = set()
        self._declared: list[str] = []
        self._few_names: set[str] = set()
        """Those with an array of their own."""
        self._last = _Split([], (), np.empty(0, np.intp), np.empty(0, np.intp))

    def declare(self, names: Collection[str]) -> list[str]:
        """Give each name its place; returns those that are new.

        Raises
        ------
        QuantityError
            For a name that cannot be a scalar's.
        """
        given = [*names]
        if given == self._declared:  # mostly, and a third of the time that looking them up takes
            return []
        if self._known.issuperset(given):
            self._declared = given
            return []
        new = [name for name in names if name not in self._known]
        for name in new:
            check_scalar(name)
        few = self._few(new)
        if few:
            self.variables.extend([ROOT], [_variable(name) for name in new if name in few])
        others = [name for name in new if name not in few]
        if others:
            self._named().extend(others)
        self._few_names |= few
        self._known.update(new)  # last: who is interrupted before declares them again
        self._declared = given
        return new

    def has_array(self, name: str) -> bool:
        """Return whether a name has an array, which nothing else may write."""
        return name in self._few_names

    @property
    def variables(self) -> StreamWriter:
        """Stream of the scalars with arrays; made if new."""
        return self._of_variables()

    @property
    def last_step(self) -> int:
        """Step of the last row of either kind; -1 without any."""
        others = [self._named().last_step] if self._known - self._few_names else []
        return max([self.variables.last_step, *others])

    def _named(self) -> StreamWriter:
        return self._writer.named(self._name)

    def _few(self, new: Iterable[str]) -> set[str]:
        """Return the names with arrays, old and new.

        A name that a quantity has, or may have, is a column instead.
        """
        variables, others = self.variables.variables, self._writer.scalar_names
        taken = {one.name for one in variables if one.long_name == LOGGED_BY}
        folded = {one.name.casefold() for one in variables}
        free = HANDFUL - sum(one.long_name == LOGGED_BY for one in variables)
        few = set()
        for name in new:
            if name in quantities or name in COUNTS:
                continue
            if name in taken:
                few.add(name)
            elif (
                free > 0
                and name not in others
                and is_variable(name)
                and name.casefold() not in folded  # some file systems would mix their arrays
            ):
                few.add(name)
                folded.add(name.casefold())
                free -= 1
        return few

    def split(self, step: MeasuredStep) -> tuple[dict[str, float], NamedRow | None]:
        """Split a step's logged scalars: those with arrays, and the row of the others."""
        split, logged = self._split(step.logged), step.logged
        few = {name: logged[name] for name in split.variables}
        if not len(split.others):
            return few, None
        numbers = np.fromiter(logged.values(), np.float64, len(logged))
        floats = as_measured(numbers)[split.others]
        return few, NamedRow(self._named(), step.step, step.time_ms, split.columns, floats)

    def _split(self, logged: Iterable[str]) -> _Split:
        """Return the split, mostly that of the step before: a loop logs the same names again."""
        names = [*logged]
        if names != self._last.names:
            variables = tuple(name for name in names if name in self._few_names)
            others = [place for place, name in enumerate(names) if name not in self._few_names]
            index = self._named().module_index if others else {}
            columns = [index[names[place]] for place in others]
            self._last = _Split(
                names, variables, np.array(others, np.intp), np.array(columns, np.intp)
            )
        return self._last


def _variable(name: str) -> Variable:
    return Variable(name, "1", LOGGED_BY)
