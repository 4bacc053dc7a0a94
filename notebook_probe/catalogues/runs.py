"""The table of the runs that a catalogue has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.marks import read as read_marks
from notebook_probe.opened import Lineage
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["Runs"]


@dataclass(frozen=True, repr=False)
class Runs(Lineage):
    """Runs that were recorded, a row each; what `Catalogue.runs` gives.

    Prints the columns in which runs differ, draws parallel coordinates by ``picture()``, and its
    ``explore()`` is a widget that opens the run of a clicked row; while visible, it adds new runs
    that match the query.

    Attributes
    ----------
    asked_again : callable, optional
        Function that repeats the query.
    """

    asked_again: Callable[[], Iterable[Mapping[str, Any]]] | None = field(
        default=None, compare=False
    )

    def where(self, column: str, is_wanted: Callable[[Any], Any] | object) -> Self:
        """Return the runs with this value, or for which a function is true; new runs are not added.

        Raises
        ------
        UnknownNameError

        Examples
        --------
        >>> cat.runs().where("state", "finished")  # doctest: +SKIP
        """
        return replace(super().where(column, is_wanted), asked_again=None)

    @property
    def _again(self) -> Callable[[], Iterable[Mapping[str, Any]]] | None:
        return self.asked_again

    def _read_row(self, record: OpenedRecord) -> Mapping[str, Any]:
        return {**read_document(record.location).row, **read_marks(record.location)}
