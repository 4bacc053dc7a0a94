"""The runs that one is compared with, as far as they can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from notebook_probe.compare.alignment import Alignment
from notebook_probe.compare.axes import Run, RunAxis
from notebook_probe.errors import ProbeError, UnknownNameError
from notebook_probe.record.store.location import called_apart

__all__ = ["Member", "Members", "names_apart"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Member:
    """One of them."""

    run: Run
    alignment: Alignment


class Members:
    """Others of a run on one axis; those that lack it, or cannot be read, are left out.

    Parameters
    ----------
    this : Source
    others : sequence of Source
    by : str
        As for `align`.

    Attributes
    ----------
    lost : list of (Source, str)
        Others that are not among them, each with a sentence why.

    Raises
    ------
    UnknownNameError
        This run lacks what the axis needs, or all others do; or there are none.
    """

    def __init__(self, this: Run, others: Sequence[Run], by: str) -> None:
        RunAxis(this, by)
        self._members: list[Member] = []
        self.lost: list[tuple[Run, str]] = []
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
        """Why others are not among them."""
        return tuple(why for _, why in self.lost)

    @property
    def runs(self) -> list[Run]:
        """Those that are left."""
        return [one.run for one in self._members]

    @property
    def alignments(self) -> list[Alignment]:
        """How each stands."""
        return [one.alignment for one in self._members]

    def each(self, read: Callable[[Member], T]) -> list[T]:
        """What is read of each; who cannot be read, by a damaged chunk, is left out from now on.

        Raises
        ------
        ProbeError, OSError
            None of them can be read.
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


def names_apart(runs: Sequence[Run]) -> list[str]:
    """What the runs are called; those that have one name by their places."""
    return called_apart([run.name for run in runs], [run.location for run in runs])
