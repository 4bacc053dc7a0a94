"""Readable runs with which a run is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.axes import RunAxis
from notebook_probe.errors import ProbeError, UnknownNameError
from notebook_probe.record.store.location import called_apart
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["Member", "Members", "names_apart"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """One other run and its alignment."""

    run: RunSource
    alignment: Alignment


class Members:
    """Other runs on one axis; those that lack it, or cannot be read, are left out.

    Parameters
    ----------
    this : Source
    others : sequence of Source
    by : str
        Same as in `align`.

    Attributes
    ----------
    lost : list of (Source, str)
        Runs that were left out, each with the reason.

    Raises
    ------
    UnknownNameError
        This run, or every other run, has no record of a series that the axis needs; or there are no
        others.
    """

    def __init__(self, this: RunSource, others: Sequence[RunSource], by: str) -> None:
        RunAxis(this, by)
        self._members: list[Member] = []
        self.lost: list[tuple[RunSource, str]] = []
        for other in others:
            try:
                self._members.append(Member(other, Alignment(this, other, by)))
            except UnknownNameError as error:
                self.lost.append((other, str(error)))
        if not self._members:
            told = "; ".join(self.left_out) or "another run is expected to compare with"
            raise UnknownNameError(told)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Reasons why other runs are left out."""
        return tuple(why for _, why in self.lost)

    @property
    def runs(self) -> list[RunSource]:
        """Remaining runs."""
        return [one.run for one in self._members]

    @property
    def alignments(self) -> list[Alignment]:
        """Alignments of the runs."""
        return [one.alignment for one in self._members]

    def copy(self) -> Members:
        """Return the same runs; one that is left out of the copy stays here."""
        found = copy(self)
        found._members, found.lost = [*self._members], [*self.lost]
        return found

    def each(self, read: Callable[[Member], T]) -> list[T]:
        """Apply a function to each run; one that cannot be read is left out from now on.

        Raises
        ------
        ProbeError, OSError
            No run can be read.
        """
        kept, found, errors = [], [], []
        for member in self._members:
            try:
                found.append(read(member))
                kept.append(member)
            except (ProbeError, OSError) as error:
                errors.append((member.run, error))
        if not kept:
            raise errors[0][1]
        self._members = kept
        self.lost += [(run, f"{run.name} is left out: {error}") for run, error in errors]
        return found


def names_apart(runs: Sequence[RunSource]) -> list[str]:
    """Return distinct names of the runs; equal names are replaced by locations."""
    return called_apart([run.name for run in runs], [run.location for run in runs])
