"""Where logged scalars go: a few have arrays of their own, the others share one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.probes.step.measured import MeasuredStep
from notebook_probe.record.format.missing import MEASURED_NAN
from notebook_probe.record.format.schema import LOGGED_BY, check_scalar, is_variable
from notebook_probe.record.format.source import ROOT, Floats, Variable
from notebook_probe.record.write.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.rows.layout import NamedRow

__all__ = ["LoggedScalars"]

HANDFUL = 16
"""Scalars that are variables of every step's stream; an array of its own costs each its files."""


@dataclass(frozen=True, slots=True)
class _Split:
    """Scalars that are logged together: which of them are variables, and where the others are."""

    names: tuple[str, ...]
    variables: tuple[str, ...]
    others: npt.NDArray[np.intp]
    """Which of ``names`` they are."""
    columns: npt.NDArray[np.intp]


class LoggedScalars:
    """Chooses a place for each name, and never moves it.

    Parameters
    ----------
    writer : RecordWriter
    every_step : callable
        Gives the stream of every step, whose variables are the first few.
    """

    def __init__(self, writer: RecordWriter, every_step: Callable[[], StreamWriter]) -> None:
        self._writer, self._every_step = writer, every_step
        self._known: set[str] = set()
        self._variables: set[str] = set()
        """Those with an array of their own."""
        self._last = _Split((), (), np.empty(0, np.intp), np.empty(0, np.intp))

    def declare(self, names: Collection[str]) -> None:
        """Give each name its place.

        Raises
        ------
        QuantityError
            For a name that cannot be a scalar's.
        """
        if self._known.issuperset(names):
            return
        new = [name for name in names if name not in self._known]
        for name in new:
            check_scalar(name)
        few = self._few(new)
        if few:
            self._every_step().extend([ROOT], [_variable(name) for name in new if name in few])
        others = [name for name in new if name not in few]
        if others:
            self._writer.named().extend(others)
        self._variables |= few
        self._known.update(new)

    def _few(self, new: Iterable[str]) -> set[str]:
        """Those that are variables already, and those that become some."""
        variables, others = self._every_step().variables, self._writer.scalar_names
        taken = {one.name for one in variables}
        folded = {name.casefold() for name in taken}
        free = HANDFUL - sum(one.long_name == LOGGED_BY for one in variables)
        few = set()
        for name in new:
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
        """What was logged in a step: those that are variables, and the row of the others."""
        split, logged = self._split(step.logged), step.logged
        few = {name: logged[name] for name in split.variables}
        if not len(split.others):
            return few, None
        floats = _floats(logged.values())[split.others]
        return few, NamedRow(self._writer.named(), step.step, step.time_ms, split.columns, floats)

    def _split(self, logged: Iterable[str]) -> _Split:
        """Mostly that of the step before: a loop logs the same names again."""
        names = tuple(logged)
        if names != self._last.names:
            variables = tuple(name for name in names if name in self._variables)
            others = [place for place, name in enumerate(names) if name not in self._variables]
            index = self._writer.named().module_index if others else {}
            columns = [index[names[place]] for place in others]
            self._last = _Split(
                names, variables, np.array(others, np.intp), np.array(columns, np.intp)
            )
        return self._last


def _variable(name: str) -> Variable:
    return Variable(name, "1", LOGGED_BY)


def _floats(numbers: Collection[float]) -> Floats:
    """As float32; a NaN that was measured differs from a cell that nobody wrote."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite
        floats = np.fromiter(numbers, np.float64, len(numbers)).astype(np.float32)
    floats[np.isnan(floats)] = MEASURED_NAN
    return floats
